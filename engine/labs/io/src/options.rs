//! The command line: words of today, and the options that the lab's program had in 2015.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{ArgGroup, Parser, ValueEnum};
use etude_micro::exit::Fail;
use etude_micro::options::{counters, style};
use etude_micro::report::Style;
use etude_options::values;

use crate::blocks::Blocks;

/// One call moves no more than this (read(2): `MAX_RW_COUNT`, 2 GiB less a page).
const MOST_A_CALL: u64 = 0x7fff_f000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Read,
    Write,
    Describe,
}

/// By which call the bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// read(2), write(2)
    Plain,
    /// pread(2), pwrite(2)
    Positioned,
    /// Copies from or to a mapping.
    Mapped,
    /// One submission, one completion.
    Ring,
}

/// What is done before each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cool {
    None,
    Warm,
    Drop,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What messages tell the user to call.
    pub program: String,
    pub operation: Operation,
    pub path: PathBuf,
    pub blocks: Blocks,
    pub iterations: u32,
    pub direct: bool,
    pub sync: bool,
    pub bare: bool,
    pub style: Style,
    pub usage: bool,
    pub touch: bool,
    pub huge: Option<bool>,
    pub cpu: Option<usize>,
    pub cool: Cool,
    pub method: Method,
    /// The seed of a random order; None: from the beginning to the end.
    pub shuffle: Option<u64>,
    pub counters: Option<&'static str>,
}

impl Operation {
    const WORDS: [&str; 4] = ["create", "read", "write", "describe"];
    const ALL: [Operation; 4] = [Operation::Create, Operation::Read, Operation::Write, Operation::Describe];

    pub fn word(self) -> &'static str {
        Operation::WORDS[self as usize]
    }
}

impl Method {
    const READING: [&str; 4] = ["read", "pread", "mmap", "io_uring"];
    const WRITING: [&str; 4] = ["write", "pwrite", "mmap", "io_uring"];
    const ALL: [Method; 4] = [Method::Plain, Method::Positioned, Method::Mapped, Method::Ring];

    fn words(operation: Operation) -> [&'static str; 4] {
        match operation {
            Operation::Create | Operation::Write => Method::WRITING,
            Operation::Read | Operation::Describe => Method::READING,
        }
    }

    pub fn word(self, operation: Operation) -> &'static str {
        Method::words(operation)[self as usize]
    }
}

impl Cool {
    const WORDS: [&str; 3] = ["none", "warm", "drop"];

    pub fn word(self) -> &'static str {
        Cool::WORDS[self as usize]
    }
}

/// Reads or writes a file with one buffer size and prints the rate of that alone, in KBytes/sec (1024 bytes)
// The short options are those that the lab's program had.
#[derive(Debug, Parser)]
#[command(
    version,
    display_name = "etude-io",
    group = ArgGroup::new("operation").args(["create", "read", "write"]),
    override_usage = "create|read|write|describe [options] PATH\n-c|-r|-w [options] PATH",
    after_help = "create writes the file and prints the configuration; nothing is measured. read measures reading it, write \
                  writing over it. describe prints the machine, the system and what would be measured.\n\nExit status, as in \
                  sysexits(3): 0 done; 64 usage; 66 no such file, or too short; 71 the system refuses; 73 the file cannot be \
                  created; 74 a transfer failed; 77 not permitted."
)]
pub struct Words {
    #[arg(short, hide = true)]
    create: bool,
    #[arg(short, hide = true)]
    read: bool,
    #[arg(short, hide = true)]
    write: bool,
    /// Bytes a call, the buffer's size (default 16K); K, M, G, T are powers of 1024
    #[arg(short, value_name = "SIZE", value_parser = values::size, default_value = "16K")]
    buffer: u64,
    /// Bytes in all (default 16M), a multiple of -b
    #[arg(short, value_name = "SIZE", value_parser = values::size, default_value = "16M")]
    total: u64,
    /// They need not be a multiple: the last transfer is shorter
    #[arg(long)]
    tail: bool,
    /// Iterations, a sample each, with a buffer mapped afresh (default 1)
    #[arg(short = 'n', value_name = "N", value_parser = values::whole::<u32>(1..=u32::MAX.into()))]
    iterations: Option<u32>,
    /// No preparation: no fsync, no sync, no second of rest before the first iteration
    #[arg(short = 'B', long)]
    bare: bool,
    /// O_DIRECT
    #[arg(short)]
    direct: bool,
    /// fsync (mmap: msync) at the end of the timed part
    #[arg(short)]
    sync: bool,
    /// Print nothing, whatever other options are given
    #[arg(short)]
    quiet: bool,
    /// Print the configuration and the time, too
    #[arg(short)]
    verbose: bool,
    /// Print all as one JSON object
    #[arg(short, long)]
    json: bool,
    /// Resource usage of each iteration
    #[arg(short = 'g')]
    usage: bool,
    /// Write to every page of the buffer before the clock is read
    #[arg(long)]
    touch: bool,
    /// Huge pages for the buffer, or none (default: as the machine does)
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    huge: Option<String>,
    /// Run on this CPU only
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(0..=u32::MAX.into()))]
    cpu: Option<usize>,
    /// Before each iteration: read the file once, or drop it from the page cache (default none)
    #[arg(long, value_name = "none|warm|drop")]
    cool: Option<Cool>,
    /// read, pread, mmap or io_uring; to write: write, pwrite, mmap or io_uring
    #[arg(long)]
    method: Option<String>,
    /// random: every block once, not with read and write (default sequential)
    #[arg(long, value_name = "sequential|random", value_parser = ["sequential", "random"])]
    order: Option<String>,
    /// Seed of the random order (default 1)
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
    /// Count perf events: l1d, l1i, l2, mem or tlb, beside instructions and cycles
    #[arg(short = 'P', long, value_name = "SET", value_parser = counters)]
    counters: Option<&'static str>,
    #[arg(value_name = "PATH", hide = true)]
    words: Vec<OsString>,
}

impl Words {
    /// The configuration that the options make together.
    ///
    /// # Errors
    /// A usage error.
    pub fn meaning(self, program: &str) -> Result<Options, Fail> {
        let (operation, path) = self.operation_and_path(program)?;
        let beyond = self.beyond_create();
        if operation == Operation::Create && !beyond.is_empty() {
            let options = beyond.join(", ");
            return Err(Fail::usage(format!(
                "create measures nothing, so it takes no {options}; leave it out"
            )));
        }
        let method = self.method(operation)?;
        let blocks = Blocks::cut(self.total, self.buffer, self.tail)?;
        if blocks.size > MOST_A_CALL && method != Method::Mapped {
            let line = format!("-b {}: one call moves at most {MOST_A_CALL} bytes; lower it", blocks.size);
            return Err(Fail::usage(line));
        }
        Ok(Options {
            program: program.to_owned(),
            operation,
            path,
            blocks,
            iterations: self.iterations.unwrap_or(1),
            direct: self.direct,
            sync: self.sync || operation == Operation::Create,
            bare: self.bare || operation == Operation::Create,
            style: style(self.quiet, self.json, self.verbose),
            usage: self.usage,
            touch: self.touch,
            huge: self.huge.as_ref().map(|word| word == "on"),
            cpu: self.cpu,
            cool: self.cool.unwrap_or(Cool::None),
            method,
            shuffle: self.shuffle(method, operation)?,
            counters: self.counters,
        })
    }

    /// The options that were given and that `create` has no use for.
    fn beyond_create(&self) -> Vec<&'static str> {
        let given = [
            (self.iterations.is_some(), "-n"),
            (self.bare, "-B"),
            (self.direct, "-d"),
            (self.sync, "-s"),
            (self.quiet, "-q"),
            (self.verbose, "-v"),
            (self.usage, "-g"),
            (self.touch, "--touch"),
            (self.huge.is_some(), "--huge"),
            (self.cpu.is_some(), "--cpu"),
            (self.cool.is_some(), "--cool"),
            (self.method.is_some(), "--method"),
            (self.order.is_some(), "--order"),
            (self.seed.is_some(), "--seed"),
            (self.counters.is_some(), "-P"),
        ];
        given.into_iter().filter_map(|(given, name)| given.then_some(name)).collect()
    }

    fn operation_and_path(&self, program: &str) -> Result<(Operation, PathBuf), Fail> {
        let expected = || format!("expected {program} read [options] PATH (or create, write, describe)");
        let mut words = self.words.iter();
        let operation = match (self.create, self.read, self.write) {
            (true, ..) => Operation::Create,
            (_, true, _) => Operation::Read,
            (_, _, true) => Operation::Write,
            _ => {
                let word =
                    words.next().ok_or_else(|| Fail::usage(format!("{}; --help says more", expected())))?;
                let index = Operation::WORDS.iter().position(|known| OsStr::new(known) == word);
                let unknown = || Fail::usage(format!("there is no operation {word:?}: {}", expected()));
                Operation::ALL[index.ok_or_else(unknown)?]
            }
        };
        let word = operation.word();
        let missing = || Fail::usage(format!("no PATH: expected {program} {word} [options] PATH"));
        let path = words.next().filter(|path| !path.is_empty()).ok_or_else(missing)?;
        match words.next() {
            Some(more) => Err(Fail::usage(format!("one argument too many: {more:?}; {word} takes one PATH"))),
            None => Ok((operation, path.into())),
        }
    }

    fn method(&self, operation: Operation) -> Result<Method, Fail> {
        let words = Method::words(operation);
        let text = self.method.as_deref().unwrap_or(words[0]);
        let index = words.iter().position(|word| *word == text);
        let index =
            index.ok_or_else(|| Fail::usage(format!("--method {text:?}: expected {}", words.join(", "))))?;
        let method = Method::ALL[index];
        if method == Method::Mapped && self.direct {
            return Err(Fail::usage(
                "-d has no effect on a mapping; leave it out, or choose another --method",
            ));
        }
        Ok(method)
    }

    fn shuffle(&self, method: Method, operation: Operation) -> Result<Option<u64>, Fail> {
        let random = self.order.as_deref() == Some("random");
        if !random && self.seed.is_some() {
            return Err(Fail::usage("--seed is that of a random order; add --order random"));
        }
        if random && method == Method::Plain {
            let [plain, others @ ..] = Method::words(operation);
            return Err(Fail::usage(format!(
                "--order random: {plain} continues at its position; add --method {}",
                others.join(" or ")
            )));
        }
        Ok(random.then_some(self.seed.unwrap_or(1)))
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
pub mod tests;
