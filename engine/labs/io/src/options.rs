//! The command line: words of today, and the options that the lab's program had in 2015.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use etude_counters::SETS;
use etude_micro::exit::Fail;
use etude_micro::options::{self as read, Arg, Parser};
use etude_micro::report::Style;

use crate::blocks::Blocks;
use crate::help::{HELP, VERSION};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// A run, or a text to be printed.
#[derive(Debug, PartialEq)]
pub enum Asked {
    Run(Options),
    Text(String),
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
    const ALL: [Cool; 3] = [Cool::None, Cool::Warm, Cool::Drop];

    pub fn word(self) -> &'static str {
        Cool::WORDS[self as usize]
    }
}

/// The options as they stand, before they are looked at together.
#[derive(Default)]
struct Given {
    operation: Option<Operation>,
    values: Vec<OsString>,
    buffer: Option<u64>,
    total: Option<u64>,
    tail: bool,
    iterations: Option<u32>,
    direct: bool,
    sync: bool,
    bare: bool,
    quiet: bool,
    verbose: bool,
    json: bool,
    usage: bool,
    touch: bool,
    huge: Option<bool>,
    cpu: Option<usize>,
    cool: Option<Cool>,
    method: Option<String>,
    random: Option<bool>,
    seed: Option<u64>,
    counters: Option<&'static str>,
    /// Those that were given and that `create` has no use for.
    beyond_create: Vec<String>,
}

/// Reads a command line, the program's name not among its arguments.
///
/// # Errors
/// A usage error of one line.
pub fn parse(program: &str, arguments: impl Iterator<Item = OsString>) -> Result<Asked, Fail> {
    let mut parser = read::parser(arguments);
    let mut given = Given::default();
    loop {
        let name = match parser.next().map_err(|error| read::refused(&error))? {
            None => return Ok(Asked::Run(given.together(program)?)),
            Some(Arg::Value(value)) => {
                given.values.push(value);
                continue;
            }
            Some(Arg::Short(letter)) => format!("-{letter}"),
            Some(Arg::Long(name)) => format!("--{name}"),
        };
        match name.as_str() {
            "-h" | "--help" => return Ok(Asked::Text(HELP.replace("PROGRAM", program))),
            "-V" | "--version" => return Ok(Asked::Text(VERSION.to_owned())),
            name => given.option(name, &mut parser)?,
        }
    }
}

impl Given {
    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<(), Fail> {
        if !matches!(name, "-c" | "-r" | "-w" | "-b" | "-t" | "-j" | "--json" | "--tail") {
            self.beyond_create.push(name.to_owned());
        }
        match name {
            "-c" => self.choose(Operation::Create)?,
            "-r" => self.choose(Operation::Read)?,
            "-w" => self.choose(Operation::Write)?,
            "-d" => self.direct = true,
            "-s" => self.sync = true,
            "-B" | "--bare" => self.bare = true,
            "-q" => self.quiet = true,
            "-v" => self.verbose = true,
            "-j" | "--json" => self.json = true,
            "-g" => self.usage = true,
            "--touch" => self.touch = true,
            "--tail" => self.tail = true,
            _ => self.option_with_value(name, parser)?,
        }
        Ok(())
    }

    fn option_with_value(&mut self, name: &str, parser: &mut Parser) -> Result<(), Fail> {
        let sets = SETS.map(|(set, _)| set);
        match name {
            "-b" => self.buffer = Some(read::value(parser, name, etude_quantity::size)?),
            "-t" => self.total = Some(read::value(parser, name, etude_quantity::size)?),
            "-n" => {
                let most = u32::MAX.into();
                self.iterations = Some(read::value(parser, name, |text| read::number(text, 1, most))? as u32);
            }
            "--huge" => self.huge = Some(one_of(parser, name, &["on", "off"])? == 0),
            "--cpu" => {
                let most = u32::MAX.into();
                self.cpu = Some(read::value(parser, name, |text| read::number(text, 0, most))? as usize);
            }
            "--cool" => self.cool = Some(Cool::ALL[one_of(parser, name, &Cool::WORDS)?]),
            "--method" => self.method = Some(read::value(parser, name, |text| Ok(text.to_owned()))?),
            "--order" => self.random = Some(one_of(parser, name, &["sequential", "random"])? == 1),
            "--seed" => self.seed = Some(read::value(parser, name, |text| read::number(text, 0, u64::MAX))?),
            "--counters" | "-P" => self.counters = Some(sets[one_of(parser, name, &sets)?]),
            _ => return Err(Fail::usage(format!("there is no option {name}; --help lists the options"))),
        }
        Ok(())
    }

    fn choose(&mut self, operation: Operation) -> Result<(), Fail> {
        match self.operation.replace(operation) {
            Some(other) if other != operation => Err(Fail::usage("give one of -c, -r and -w")),
            _ => Ok(()),
        }
    }

    fn together(mut self, program: &str) -> Result<Options, Fail> {
        let (operation, path) = self.operation_and_path(program)?;
        if operation == Operation::Create && !self.beyond_create.is_empty() {
            let options = self.beyond_create.join(", ");
            return Err(Fail::usage(format!(
                "create measures nothing, so it takes no {options}; leave it out"
            )));
        }
        let method = self.method(operation)?;
        let blocks = Blocks::cut(self.total.unwrap_or(16 << 20), self.buffer.unwrap_or(16 << 10), self.tail)?;
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
            style: self.style(),
            usage: self.usage,
            touch: self.touch,
            huge: self.huge,
            cpu: self.cpu,
            cool: self.cool.unwrap_or(Cool::None),
            method,
            shuffle: self.shuffle(method, operation)?,
            counters: self.counters,
        })
    }

    fn operation_and_path(&mut self, program: &str) -> Result<(Operation, PathBuf), Fail> {
        let expected = || format!("expected {program} read [options] PATH (or create, write, describe)");
        let mut values = std::mem::take(&mut self.values).into_iter();
        let operation = match self.operation {
            Some(operation) => operation,
            None => {
                let word =
                    values.next().ok_or_else(|| Fail::usage(format!("{}; --help says more", expected())))?;
                let index = Operation::WORDS.iter().position(|known| OsStr::new(known) == word);
                let unknown = || Fail::usage(format!("there is no operation {word:?}: {}", expected()));
                Operation::ALL[index.ok_or_else(unknown)?]
            }
        };
        let word = operation.word();
        let missing = || Fail::usage(format!("no PATH: expected {program} {word} [options] PATH"));
        let path = values.next().filter(|path| !path.is_empty()).ok_or_else(missing)?;
        match values.next() {
            Some(more) => Err(Fail::usage(format!("one argument too many: {more:?}; {word} takes one PATH"))),
            None => Ok((operation, path.into())),
        }
    }

    fn method(&self, operation: Operation) -> Result<Method, Fail> {
        let words = Method::words(operation);
        let index = match &self.method {
            None => 0,
            Some(text) => read::word(text, &words).map_err(|why| Fail::usage(format!("--method {why}")))?,
        };
        let method = Method::ALL[index];
        if method == Method::Mapped && self.direct {
            return Err(Fail::usage(
                "-d has no effect on a mapping; leave it out, or choose another --method",
            ));
        }
        Ok(method)
    }

    fn shuffle(&self, method: Method, operation: Operation) -> Result<Option<u64>, Fail> {
        let random = self.random == Some(true);
        if !random && self.seed.is_some() {
            return Err(Fail::usage("--seed is that of a random order; add --order random"));
        }
        if random && method == Method::Plain {
            let [plain, others @ ..] = Method::words(operation);
            return Err(Fail::usage(format!(
                "--order random: {plain} goes on where it was; add --method {}",
                others.join(" or ")
            )));
        }
        Ok(random.then_some(self.seed.unwrap_or(1)))
    }

    fn style(&self) -> Style {
        match (self.quiet, self.json, self.verbose) {
            (true, ..) => Style::Quiet,
            (_, true, _) => Style::Json,
            (_, _, true) => Style::Verbose,
            _ => Style::Rates,
        }
    }
}

fn one_of(parser: &mut Parser, name: &str, words: &[&str]) -> Result<usize, Fail> {
    read::value(parser, name, |text| read::word(text, words))
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
