//! The verbs of traces: `record`, and `trace` for what stands in one.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use etude_options::Failed;
use etude_terminal::complain;

const PROGRAM: &str = "etude-engine trace";

/// What stands in a trace that etude record wrote
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Each call as a line: interval, call, result, duration
    Events { trace: PathBuf },
    /// The calls as columns into standard output, which must be a file
    Columns {
        /// Keep only what the replay played, in the trace of a replay
        #[arg(long)]
        replayed: bool,
        trace: PathBuf,
    },
    /// A new trace from what strace -f -ttt -T wrote
    Import { text: PathBuf, trace: PathBuf },
}

/// Reads or makes a trace; the exit status.
pub fn trace(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(PROGRAM, arguments, |options: Options| {
        let done = match &options.verb {
            Verb::Events { trace } => etude_script::events(trace),
            Verb::Columns { replayed, trace } => columns(trace, *replayed),
            Verb::Import { text, trace } => import(text, trace),
        };
        done.map_or_else(
            |(line, code)| {
                complain!("etude trace: {line}");
                Ok(code)
            },
            |()| Ok(0),
        )
    })
}

fn columns(path: &Path, replayed: bool) -> Result<(), Failed> {
    let out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let out = out.map_err(|error| (error.to_string(), 5))?;
    etude_trace::columns(path, out, replayed).map_err(|error| (format!("{}: {error}", path.display()), 3))
}

fn import(text: &Path, trace: &Path) -> Result<(), Failed> {
    let wrong = |error: io::Error| (format!("{}: {error}", text.display()), 3);
    let input = BufReader::new(etude_trace::ordinary::open(text).map_err(wrong)?);
    let made = OpenOptions::new().write(true).create_new(true).open(trace);
    let out = made.map_err(|error| (format!("{}: cannot be made: {error}", trace.display()), 5))?;
    let found = etude_trace::import::strace(input, out).map_err(|error| {
        let _ = std::fs::remove_file(trace);
        (format!("{}: {error}", text.display()), 3)
    })?;
    complain!(
        "etude trace: {}: {} calls; not understood: {} lines, {} arguments; without an end: {}",
        trace.display(),
        found.events,
        found.strange,
        found.strange_arguments,
        found.unfinished
    );
    Ok(())
}
