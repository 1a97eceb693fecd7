//! The command line.

use std::ffi::OsString;

use etude_counters::SETS;
use etude_micro::exit::Fail;
use etude_micro::options::{Arg, number, parser, refused, unexpected, value, word};
use etude_micro::report::Style;
use etude_quantity::size;

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub mode: Mode,
    pub transport: Transport,
    pub buffer_bytes: u64,
    pub total_bytes: u64,
    pub iterations: u64,
    /// 0: any that is free.
    pub port: u16,
    /// Both socket buffers get the size of the benchmark's own.
    pub set_socket_buffers: bool,
    /// Nobody waits for the receiver.
    pub bare: bool,
    pub style: Style,
    pub usage: bool,
    pub counters: Option<&'static str>,
    /// None, or that of the sender and that of the receiver; with one thread its own.
    pub cpus: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    OneThread,
    TwoThreads,
    TwoProcesses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Pipe,
    Local,
    Tcp,
}

pub(crate) enum Parsed {
    Help,
    Run(Options),
}

const MODES: [&str; 3] = ["1thread", "2thread", "2proc"];
const TRANSPORTS: [&str; 3] = ["pipe", "local", "tcp"];

impl Mode {
    const ALL: [Mode; 3] = [Mode::OneThread, Mode::TwoThreads, Mode::TwoProcesses];

    pub fn name(self) -> &'static str {
        MODES[self as usize]
    }
}

impl Transport {
    const ALL: [Transport; 3] = [Transport::Pipe, Transport::Local, Transport::Tcp];

    pub fn name(self) -> &'static str {
        TRANSPORTS[self as usize]
    }
}

pub(crate) fn help(program: &str) -> String {
    let sets: String =
        SETS.iter().map(|(name, what)| format!("                {name:<4} {what}\n")).collect();
    format!(
        "Usage: {program} [-Bqsvjg] [-b SIZE] [-t SIZE] [-i TYPE] [-p PORT] [-P SET] [-n N] [--cpu A[,B]] \
         1thread|2thread|2proc

Sends bytes through a pipe or a socket and prints how many arrived a second.

  1thread       one thread writes and reads in turn, without blocking
  2thread       one thread sends, another receives
  2proc         one process sends, another receives

  -b SIZE       bytes of each write and at most of each read [128K]
  -t SIZE       bytes to send; the last write may be shorter [16M]
  -i TYPE       pipe, local (a pair of Unix sockets) or tcp (over loopback) [pipe]
  -p PORT       port of -i tcp [any that is free]
  -s            set both buffers of the sockets to the size of -b
  -n N          iterations, one sample each [1]
  --cpu A[,B]   bind the sender (or the one thread) to CPU A, the receiver to B [to A]
  -B, --bare    do not wait until the receiver is ready
  -g            print the resource usage of each sample
  -P, --counters SET
                count hardware events of each sample, beside cycles and instructions:
{sets}  -v            print the configuration and the times, too
  -j, --json    print JSON
  -q            print nothing
  -h, --help    print this

SIZE is in bytes, or has K, M, G or T behind it (powers of 1024).
"
    )
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Parsed, Fail> {
    let mut found = Options {
        mode: Mode::OneThread,
        transport: Transport::Pipe,
        buffer_bytes: 128 << 10,
        total_bytes: 16 << 20,
        iterations: 1,
        port: 0,
        set_socket_buffers: false,
        bare: false,
        style: Style::Rates,
        usage: false,
        counters: None,
        cpus: Vec::new(),
    };
    let (mut quiet, mut verbose, mut json) = (false, false, false);
    let (mut mode, mut port) = (None, None);
    let mut parser = parser(arguments);
    while let Some(argument) = parser.next().map_err(|error| refused(&error))? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Parsed::Help),
            Arg::Short('B') | Arg::Long("bare") => found.bare = true,
            Arg::Short('q') => quiet = true,
            Arg::Short('v') => verbose = true,
            Arg::Short('j') | Arg::Long("json") => json = true,
            Arg::Short('g') => found.usage = true,
            Arg::Short('s') => found.set_socket_buffers = true,
            Arg::Short('b') => found.buffer_bytes = value(&mut parser, "-b", size)?,
            Arg::Short('t') => found.total_bytes = value(&mut parser, "-t", size)?,
            Arg::Short('n') => {
                found.iterations = value(&mut parser, "-n", |text| number(text, 1, 1_000_000))?
            }
            Arg::Short('p') => port = Some(value(&mut parser, "-p", |text| number(text, 1, 65535))?),
            Arg::Short('i') => {
                found.transport = Transport::ALL[value(&mut parser, "-i", |text| word(text, &TRANSPORTS))?];
            }
            Arg::Short('P') | Arg::Long("counters") => {
                let names = SETS.map(|(name, _)| name);
                found.counters = Some(names[value(&mut parser, "-P", |text| word(text, &names))?]);
            }
            Arg::Long("cpu") => found.cpus = value(&mut parser, "--cpu", cpus)?,
            Arg::Value(text) if mode.is_none() => {
                let text = text.to_string_lossy();
                let index = word(&text, &MODES).map_err(|why| Fail::usage(format!("mode {why}")))?;
                mode = Some(Mode::ALL[index]);
            }
            other => return Err(unexpected(other)),
        }
    }
    found.mode = mode.ok_or_else(|| {
        Fail::usage("no mode: expected 1thread, 2thread or 2proc; --help lists the options")
    })?;
    found.port = port.unwrap_or(0) as u16;
    found.style = match (quiet, json, verbose) {
        (true, _, _) => Style::Quiet,
        (_, true, _) => Style::Json,
        (_, _, true) => Style::Verbose,
        _ => Style::Rates,
    };
    check(&found)?;
    if let ([one], true) = (found.cpus.as_slice(), found.mode != Mode::OneThread) {
        found.cpus = vec![*one; 2];
    }
    Ok(Parsed::Run(found))
}

/// What fits none of the options alone.
fn check(options: &Options) -> Result<(), Fail> {
    let transport = options.transport.name();
    let wrong = if options.port != 0 && options.transport != Transport::Tcp {
        format!("-p {}: -i {transport} has no port; leave it out, or take -i tcp", options.port)
    } else if options.set_socket_buffers && options.transport == Transport::Pipe {
        "-s: a pipe has no socket buffers; leave it out, or take -i local or -i tcp".to_owned()
    } else if options.cpus.len() > 1 && options.mode == Mode::OneThread {
        "--cpu: 1thread has one thread; name one CPU, or take 2thread or 2proc".to_owned()
    } else {
        return Ok(());
    };
    Err(Fail::usage(wrong))
}

/// `0` or `0,1`.
fn cpus(text: &str) -> Result<Vec<usize>, String> {
    let one = |text: &str| number(text, 0, 65535).map(|cpu| cpu as usize);
    let found: Result<Vec<_>, _> = text.split(',').map(one).collect();
    match found {
        Ok(cpus) if cpus.len() <= 2 => Ok(cpus),
        _ => Err(format!("{text:?}: expected one CPU, or two as in 0,1")),
    }
}

#[cfg(test)]
mod tests {
    use etude_micro::exit::USAGE;
    use proptest::prelude::*;

    use super::*;

    fn options(line: &str) -> Result<Options, Fail> {
        match parse(line.split_whitespace().map(OsString::from))? {
            Parsed::Run(options) => Ok(options),
            Parsed::Help => Err(Fail::usage("help")),
        }
    }

    #[test]
    fn defaults_are_the_labs() {
        let found = options("1thread").expect("a mode is all that is needed");
        assert_eq!((found.mode, found.transport), (Mode::OneThread, Transport::Pipe));
        assert_eq!((found.buffer_bytes, found.total_bytes, found.iterations), (131_072, 16_777_216, 1));
        assert_eq!((found.style, found.bare, found.port), (Style::Rates, false, 0));
    }

    #[test]
    fn options_stand_before_the_mode_or_behind_it() {
        let found =
            options("-Bsvg -i tcp -p 5001 2proc -b 1K -t1M -n 3 -P l1d --cpu 0,1").expect("all are known");
        assert_eq!((found.mode, found.transport, found.port), (Mode::TwoProcesses, Transport::Tcp, 5001));
        assert_eq!((found.buffer_bytes, found.total_bytes, found.iterations), (1024, 1 << 20, 3));
        assert_eq!((found.counters, found.cpus.as_slice()), (Some("l1d"), &[0, 1][..]));
        assert!(found.bare && found.set_socket_buffers && found.usage && found.style == Style::Verbose);
    }

    #[test]
    fn one_cpu_is_that_of_both() {
        assert_eq!(options("2thread --cpu 1").expect("fits").cpus, [1, 1]);
        assert_eq!(options("1thread --cpu 1").expect("fits").cpus, [1]);
    }

    #[test]
    fn what_does_not_fit_is_a_usage_error_that_says_what_would() {
        for (line, said) in [
            ("", "no mode: expected 1thread, 2thread or 2proc"),
            ("3proc", "mode \"3proc\": expected 1thread, 2thread, 2proc"),
            ("2proc 2proc", "one argument too many"),
            ("-i udp 2proc", "-i \"udp\": expected pipe, local, tcp"),
            ("-P axi 2proc", "-P \"axi\": expected l1d, l1i, l2, mem, tlb"),
            ("-b 0 2proc", "-b \"0\": expected 1 B or more"),
            ("-t -1 2proc", "-t \"-1\": expected a size"),
            ("-n 0 2proc", "-n \"0\": expected a whole number, 1 to 1000000"),
            ("-p 5001 2proc", "-i pipe has no port"),
            ("-i tcp -p 0 2proc", "-p \"0\": expected a whole number, 1 to 65535"),
            ("-s 2proc", "a pipe has no socket buffers"),
            ("--cpu 0,1 1thread", "name one CPU"),
            ("--cpu 0,1,2 2proc", "--cpu \"0,1,2\": expected one CPU, or two"),
            ("-x 2proc", "there is no option -x"),
            ("2proc -b", "-b needs a value"),
        ] {
            let fail = options(line).expect_err(line);
            assert!(fail.code == USAGE && fail.line.contains(said), "{line}: {}", fail.line);
        }
    }

    #[test]
    fn help_names_every_option_and_set() {
        let text = help("ipc");
        for option in
            ["-B", "-q", "-s", "-v", "-j", "-g", "-b", "-t", "-i", "-p", "-P", "-n", "--cpu", "l1i", "tlb"]
        {
            assert!(text.contains(&format!(" {option}")) || text.contains(option), "{option}");
        }
    }

    proptest! {
        #[test]
        fn no_arguments_make_it_fall(words in proptest::collection::vec("\\PC{0,6}|-[a-zA-Z]{1,3}|1thread|[0-9]{1,25}[KMGT]?", 0..6)) {
            if let Err(fail) = parse(words.iter().map(OsString::from)) {
                prop_assert!(fail.code == USAGE && !fail.line.contains('\n'), "{}", fail.line);
            }
        }
    }
}
