//! `etude capture`: a program's I/O, recorded and made ready for replay, in one directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use etude_quantity::counted;
use etude_replay::Edges;
use etude_replay::capture::{ROLL, SCRIPT, seal};
use etude_script::{Needed, Report, What};
use etude_terminal::say;
use lexopt::prelude::*;

const HELP: &str = "\
Record a program's I/O, ready for replay.

usage: etude capture -o CAPTURE [options] [--] COMMAND [ARGUMENT ...]
       etude replay CAPTURE

  -o, --output CAPTURE  the directory for the script and the roll; it must not be there yet, and best lies outside of
                        what COMMAND reads
      --technique HOW   as of etude record
      --left WAY        as of etude record
      --without-run-delay  as of etude script
      --order KINDS     as of etude compile
  -q, --quiet           say nothing but what is wrong
  -h, --help

The program runs as it would otherwise, with its own input, output and exit status. To keep its trace, to cut, scale or
merge: etude record, script, prepare and compile. More: docs/replay.md.

exit status: the program's; 128+n for signal n; 127 not found; 126 not executable; 2 usage; 5 it could not be recorded
or CAPTURE not be written, and there is none; 9 the trace was cut short, and CAPTURE has what is there
";

/// The exit status for a trace that is cut short.
const CUT_SHORT: u8 = 9;
const TRACE: &str = "io.trace";

struct Options {
    output: PathBuf,
    /// Options of `etude record`.
    recording: Vec<OsString>,
    script: etude_script::Options,
    order: Edges,
    quiet: bool,
    command: Vec<OsString>,
}

/// The error that ends the verb: its line, and the exit status.
type Failed = (String, u8);

/// Runs the verb; its exit status.
pub fn capture(arguments: impl Iterator<Item = OsString>) -> u8 {
    match options(arguments) {
        Ok(Some(options)) => captured(&options).unwrap_or_else(|(line, code)| {
            say(&format!("etude capture: {line}"));
            code
        }),
        Ok(None) => {
            print!("{HELP}");
            0
        }
        Err(error) => {
            say(&format!("etude capture: {error}; see etude capture --help"));
            2
        }
    }
}

fn options(arguments: impl Iterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    let (mut output, mut recording, mut quiet, mut command) = (None, Vec::new(), false, Vec::new());
    let (mut script, mut order) = (etude_script::Options::default(), Edges::ALL);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('o') | Long("output") => output = Some(PathBuf::from(parser.value()?)),
            Long("technique") => recording.extend(["--technique".into(), parser.value()?]),
            Long("left") => recording.extend(["--left".into(), parser.value()?]),
            Long("without-run-delay") => script.without_run_delay = true,
            Long("order") => order = Edges::asked(&parser.value()?)?,
            Short('q') | Long("quiet") => quiet = true,
            Short('h') | Long("help") => return Ok(None),
            Value(program) => {
                command.push(program);
                command.extend(parser.raw_args()?);
            }
            _ => return Err(argument.unexpected()),
        }
    }
    let output = output.ok_or("nowhere to write: name a new directory with -o")?;
    if command.is_empty() {
        return Err("nothing to capture: give a command".into());
    }
    Ok(Some(Options { output, recording, script, order, quiet, command }))
}

fn captured(options: &Options) -> Result<u8, Failed> {
    let (directory, shown) = (&options.output, options.output.display());
    fs::create_dir(directory).map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "remove it, or name another with -o",
            _ => "name another with -o",
        };
        (format!("{shown}: cannot be made: {error}; {advice}"), 5)
    })?;
    let status = recorded(options);
    if !directory.join(TRACE).exists() {
        let _ = fs::remove_dir(directory);
        return Ok(status);
    }
    let report = made(options).map_err(|(line, code)| {
        let _ = fs::remove_dir_all(directory);
        (format!("{line}; the program ended with {status}, and nothing is left of its capture"), code)
    })?;
    match report.warning {
        Some(why) => Err((format!("{shown}: {why}; the capture has what is there"), CUT_SHORT)),
        None => Ok(status),
    }
}

/// Records the program; its exit status, or that of `etude record` where there is no trace.
fn recorded(options: &Options) -> u8 {
    let mut words: Vec<OsString> = vec!["-q".into(), "-o".into(), options.output.join(TRACE).into()];
    words.extend(options.recording.iter().cloned());
    words.push("--".into());
    words.extend(options.command.iter().cloned());
    etude_record::main(words.into_iter())
}

/// Makes script and roll of the trace, and removes that.
fn made(options: &Options) -> Result<Report, Failed> {
    let directory = &options.output;
    let trace = directory.join(TRACE);
    let (script, report) = etude_script::from_trace(&trace, &options.script)
        .map_err(|error| (format!("{}: {error}", trace.display()), 5))?;
    let written =
        |name: &str, error: std::io::Error| (format!("{}: {error}", directory.join(name).display()), 5);
    let mut out = created(&directory.join(SCRIPT)).map_err(|error| written(SCRIPT, error))?;
    etude_script::write(&script, &mut out)
        .and_then(|()| out.into_inner().map(drop).map_err(std::io::IntoInnerError::into_error))
        .map_err(|error| written(SCRIPT, error))?;
    let out = created(&directory.join(ROLL)).map_err(|error| written(ROLL, error))?;
    let (out, compiled) =
        etude_replay::compile_with(&script, options.order, out).map_err(|error| written(ROLL, error))?;
    out.into_inner().map_err(|error| written(ROLL, error.into_error()))?;
    fs::remove_file(&trace).map_err(|error| written(TRACE, error))?;
    seal(directory, &options.command, report.run_delay).map_err(|error| written("capture.json", error))?;
    if !options.quiet {
        let (files, bytes) = to_prepare(&script.needed);
        say(&format!(
            "etude capture: {}: {} of {}, {}; it needs {} of {}",
            directory.display(),
            counted(compiled.calls, "call"),
            counted(compiled.threads as u64, "thread"),
            compiled.waits_text(),
            counted(files, "file"),
            counted(bytes, "byte")
        ));
        report.run_delay_warning().into_iter().for_each(|line| say(&format!("etude capture: {line}")));
    }
    Ok(report)
}

fn created(path: &Path) -> std::io::Result<BufWriter<File>> {
    File::options().write(true).create_new(true).open(path).map(BufWriter::new)
}

/// How many files a replay builds, and their bytes.
fn to_prepare(needed: &[Needed]) -> (u64, u64) {
    let sizes = needed.iter().filter_map(|each| match each.what {
        What::File { bytes, .. } => Some(bytes),
        _ => None,
    });
    sizes.fold((0, 0), |(files, all), bytes| (files + 1, all.saturating_add(bytes)))
}
