//! The command line.

use clap::{Parser, ValueEnum};
use etude_micro::exit::Fail;
use etude_micro::options::{counters, style};
use etude_micro::report::Style;
use etude_options::values;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// One thread writes and reads in turn, without blocking
    #[value(name = "1thread")]
    OneThread,
    /// One thread sends, another receives
    #[value(name = "2thread")]
    TwoThreads,
    /// One process sends, another receives
    #[value(name = "2proc")]
    TwoProcesses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    Pipe,
    Local,
    Tcp,
}

impl Mode {
    pub fn name(self) -> &'static str {
        ["1thread", "2thread", "2proc"][self as usize]
    }
}

impl Transport {
    pub fn name(self) -> &'static str {
        ["pipe", "local", "tcp"][self as usize]
    }
}

/// Sends bytes through a pipe or a socket and prints how many arrived a second
#[derive(Debug, Parser)]
#[command(
    override_usage = "[options] 1thread|2thread|2proc",
    after_help = "1thread: one thread writes and reads in turn, without blocking. 2thread: one thread sends, another receives. \
                  2proc: one process sends, another receives. SIZE is in bytes, or has K, M, G or T behind it (powers of 1024)."
)]
pub(crate) struct Words {
    /// Bytes of each write and at most of each read
    #[arg(short, value_name = "SIZE", value_parser = values::size, default_value = "128K")]
    buffer: u64,
    /// Bytes to send; the last write may be shorter
    #[arg(short, value_name = "SIZE", value_parser = values::size, default_value = "16M")]
    total: u64,
    /// pipe, local (a pair of Unix sockets) or tcp (over loopback)
    #[arg(short = 'i', value_name = "TYPE", default_value = "pipe")]
    transport: Transport,
    /// Port of -i tcp (default: any that is free)
    #[arg(short, value_parser = values::whole::<u16>(1..=65535))]
    port: Option<u16>,
    /// Set both buffers of the sockets to the size of -b
    #[arg(short)]
    set_socket_buffers: bool,
    /// Iterations, one sample each
    #[arg(short = 'n', value_name = "N", value_parser = values::whole::<u64>(1..=1_000_000), default_value = "1")]
    iterations: u64,
    /// Bind the sender (or the one thread) to CPU A, the receiver to B (default: to A)
    #[arg(long, value_name = "A[,B]", value_parser = cpus)]
    cpu: Option<Cpus>,
    /// Do not wait until the receiver is ready
    #[arg(short = 'B', long)]
    bare: bool,
    /// Print the resource usage of each sample
    #[arg(short = 'g')]
    usage: bool,
    /// Count hardware events of each sample, beside cycles and instructions: l1d, l1i, l2, mem or tlb
    #[arg(short = 'P', long, value_name = "SET", value_parser = counters)]
    counters: Option<&'static str>,
    /// Print the configuration and the times, too
    #[arg(short)]
    verbose: bool,
    /// Print JSON
    #[arg(short, long)]
    json: bool,
    /// Print nothing
    #[arg(short)]
    quiet: bool,
    mode: Mode,
}

#[derive(Debug, Clone)]
struct Cpus(Vec<usize>);

impl Words {
    /// The configuration that the options make together.
    ///
    /// # Errors
    /// A usage error.
    pub fn meaning(self) -> Result<Options, Fail> {
        let mut found = Options {
            mode: self.mode,
            transport: self.transport,
            buffer_bytes: self.buffer,
            total_bytes: self.total,
            iterations: self.iterations,
            port: self.port.unwrap_or(0),
            set_socket_buffers: self.set_socket_buffers,
            bare: self.bare,
            style: style(self.quiet, self.json, self.verbose),
            usage: self.usage,
            counters: self.counters,
            cpus: self.cpu.map_or_else(Vec::new, |Cpus(cpus)| cpus),
        };
        check(&found)?;
        if let ([one], true) = (found.cpus.as_slice(), found.mode != Mode::OneThread) {
            found.cpus = vec![*one; 2];
        }
        Ok(found)
    }
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
fn cpus(text: &str) -> Result<Cpus, String> {
    let found: Result<Vec<_>, _> = text.split(',').map(values::whole::<usize>(0..=65535)).collect();
    match found {
        Ok(cpus) if cpus.len() <= 2 => Ok(Cpus(cpus)),
        _ => Err(format!("{text:?}: expected one CPU, or two as in 0,1")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use etude_micro::exit::USAGE;
    use etude_micro::options::read;
    use proptest::prelude::*;

    use super::*;

    fn options(line: &str) -> Result<Options, Fail> {
        let words = read::<Words>("ipc", line.split_whitespace().map(OsString::from))?;
        words.unwrap_or_else(|| panic!("{line}: help")).meaning()
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
            ("", "MODE is missing"),
            ("3proc", "MODE \"3proc\": expected 1thread, 2thread or 2proc"),
            ("2proc 2proc", "one argument too many"),
            ("-i udp 2proc", "-i \"udp\": expected pipe, local or tcp"),
            ("-P axi 2proc", "--counters \"axi\": expected l1d, l1i, l2, mem, tlb"),
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

    proptest! {
        #[test]
        fn no_arguments_make_it_fall(words in proptest::collection::vec("\\PC{0,6}|-[a-zA-Z]{1,3}|1thread|[0-9]{1,25}[KMGT]?", 0..6)) {
            let words = words.iter().filter(|word| !word.contains('h'));
            if let Err(fail) = read::<Words>("ipc", words.map(OsString::from)) {
                prop_assert!(fail.code == USAGE && !fail.line.contains('\n'), "{}", fail.line);
            }
        }
    }
}
