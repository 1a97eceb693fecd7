//! `etude script`: from traces, and from scripts to scripts.

mod change;
mod files;
mod foreign;
mod trace;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use etude_options::Failed;
use etude_quantity::counted;
use etude_terminal::{Escaping, complain, escaped};

use crate::model::Action;
use crate::world::World;

const PROGRAM: &str = "etude script";

/// A recorded program's I/O as a script that can be read, changed and replayed
#[derive(Parser)]
#[command(
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    override_usage = "TRACE [-o SCRIPT] [options]\n--events TRACE",
    after_help = "SCRIPT can be - for standard input. Times of calls that are left out become gaps. More, with examples: \
                  docs/howto/scripts.md.\n\nexit status: 0 done; 1 check: a call uses a descriptor that is not open; 2 \
                  usage; 3 an input is wrong; 5 the output cannot be written; 9 the trace is cut short, and the \
                  script has the part before"
)]
struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print each call of a trace as a line, as it was
    #[arg(long, value_name = "TRACE", exclusive = true)]
    events: Option<PathBuf>,
    #[command(flatten)]
    trace: Option<trace::TraceOptions>,
}

#[derive(Subcommand)]
enum Verb {
    /// Check whether it is a script, and report its contents
    Check { script: OsString },
    /// Keep calls of some time, or on some files
    Cut(change::Cut),
    /// Keep some calls
    Filter(change::Filter),
    /// N rounds, one after the other; between them, files that a round made are removed, and sizes are put back
    Repeat(change::Repeat),
    /// Side by side as processes, in a/, b/ ...
    Merge(change::Merge),
    /// K times at once, as processes in 1/ ... K/
    Clone(change::Clone),
    /// Larger or smaller files, longer or shorter gaps
    Scale(change::Scale),
    /// A script of what fio (iolog), blkparse or Darshan (DXT) recorded
    Import(foreign::Import),
    /// An iolog, which fio --read_iolog plays
    Export(foreign::Export),
}

/// Runs the verb; its exit status.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(PROGRAM, arguments, |options: Options| {
        match (options.verb, options.events, options.trace) {
            (Some(verb), ..) => run(verb),
            (None, Some(trace), _) => events(&trace),
            (None, None, Some(options)) => trace::script(&options),
            (None, None, None) => {
                Err(etude_options::usage(PROGRAM, "expected a trace, or a verb and a script"))
            }
        }
        .map(|()| 0)
    })
}

fn run(verb: Verb) -> Result<(), Failed> {
    match verb {
        Verb::Check { script } => check(&script),
        Verb::Cut(options) => change::cut(&options),
        Verb::Filter(options) => change::filter(&options),
        Verb::Repeat(options) => change::repeat(&options),
        Verb::Merge(options) => change::merge(&options),
        Verb::Clone(options) => change::clone(&options),
        Verb::Scale(options) => change::scale(&options),
        Verb::Import(options) => foreign::import(&options),
        Verb::Export(options) => foreign::export(&options),
    }
}

/// Prints the calls of a trace.
pub fn events(path: &Path) -> Result<(), Failed> {
    let mut out = Escaping(BufWriter::with_capacity(1 << 16, io::stdout().lock()));
    let printed = etude_trace::print(path, &mut out).map_err(|error| error.to_string()).and_then(|ending| {
        out.flush().map_err(|error| error.to_string())?;
        Ok(ending)
    });
    match printed {
        Ok(ending) => {
            if let Some(why) = ending.warning() {
                complain!("etude script: {}: {why}", path.display());
            }
            Ok(())
        }
        Err(error) if error.contains("Broken pipe") => Ok(()),
        Err(error) => Err((format!("{}: {error}", path.display()), 3)),
    }
}

/// The most lines that are said of one script.
const MOST_LINES: usize = 10;

fn check(name: &OsString) -> Result<(), Failed> {
    let parsed = files::read(name)?;
    let (script, name) = (&parsed.script, name.to_string_lossy());
    let mut world = World::new(script);
    let (mut calls, mut untimed, mut closed) = (0, 0, Vec::new());
    for (step, line) in script.steps.iter().zip(&parsed.lines) {
        let effect = world.step(step);
        if let Action::Call(called) = &step.action {
            calls += 1;
            untimed += u64::from(called.duration_ns.is_none());
            if let Some(descriptor) = effect.closed.filter(|_| !called.failed()) {
                closed.push(format!("{name}:{line}: descriptor {descriptor} is not open here"));
            }
        }
    }
    let length_ns = crate::times::times(script).iter().map(|span| span.end_ns).max().unwrap_or(0);
    let said = format!(
        "{name}: {}, {}, {} in {}, {} needed; {}.{:09} s{}\n",
        counted(script.steps.len() as u64, "step"),
        counted(calls, "call"),
        counted(world.threads.len() as u64, "thread"),
        counted(world.processes.len() as u64, "process"),
        script.needed.len(),
        length_ns / 1_000_000_000,
        length_ns % 1_000_000_000,
        match untimed {
            0 => String::new(),
            many => format!(" without {} whose times are not known", counted(many, "call")),
        }
    );
    io::stdout()
        .write_all(escaped(&said).as_bytes())
        .map_err(|error| (format!("standard output: {error}"), 5))?;
    if closed.is_empty() {
        return Ok(());
    }
    let more = closed.len().saturating_sub(MOST_LINES);
    closed.truncate(MOST_LINES);
    if more > 0 {
        closed.push(format!("{name}: and {more} more"));
    }
    Err((closed.join("\netude script: "), 1))
}
