//! `etude script TRACE`: a script of a trace.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use etude_options::Failed;
use etude_terminal::complain;

use super::files;
use crate::from_trace::{Kept, Options, Report, from_trace};
use crate::hash::random_key;

/// Lines that are said of what a script has not, or otherwise; `--report` has all.
const MOST_LINES: usize = 12;

/// The exit status for a trace that is cut short.
const CUT_SHORT: u8 = 9;

#[derive(Args)]
pub struct TraceOptions {
    /// File of the new script (default, and -: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<OsString>,
    /// Files that the program created keep their names
    #[arg(long)]
    keep_names: bool,
    /// Files below FROM are below TO in the replay; may be given again
    #[arg(long = "map", value_name = "/FROM=TO", value_parser = OsStringValueParser::new().try_map(map))]
    maps: Vec<Map>,
    /// Replace every name by a hash with a random key that is not stored
    #[arg(long)]
    hash_names: bool,
    /// Which pipes and Unix sockets are replayed: whole (default; those both of whose ends are in the program), all, none
    #[arg(long, value_name = "KIND")]
    pipes: Option<Kept>,
    /// infer: a process that does nothing while one that it started ends waited for that (default)
    #[arg(long, value_name = "infer|none", value_parser = ["infer", "none"], default_value = "infer")]
    waits: String,
    /// Gaps are shorter by what threads waited for a CPU while others had it
    #[arg(long)]
    without_run_delay: bool,
    /// Accept a truncated trace: the script has the part before
    #[arg(long)]
    partial: bool,
    /// Write what was renamed, left out or is unknown, a line each
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    /// As earlier versions had --pipes all
    #[arg(long, hide = true, value_parser = ["pipes"])]
    keep: Option<String>,
    trace: PathBuf,
}

/// A directory of the recorded program, and the one that it becomes.
type Map = (Vec<u8>, Vec<u8>);

impl TraceOptions {
    fn rules(&self) -> Result<Options, Failed> {
        let hash_names = self.hash_names.then(random_key).transpose();
        Ok(Options {
            keep_names: self.keep_names,
            maps: self.maps.clone(),
            hash_names: hash_names.map_err(|error| (error.to_string(), 5))?,
            pipes: self.pipes.or(self.keep.as_ref().map(|_| Kept::All)).unwrap_or_default(),
            waits: self.waits == "infer",
            without_run_delay: self.without_run_delay,
        })
    }
}

/// Makes a script of a trace.
pub fn script(asked: &TraceOptions) -> Result<(), Failed> {
    let shown = asked.trace.display();
    if !asked.trace.exists() {
        let verbs = "check, cut, filter, repeat, merge, clone or scale";
        return Err((format!("{shown}: no such file; expected a trace, or {verbs} and a script"), 3));
    }
    let (script, mut report) =
        from_trace(&asked.trace, &asked.rules()?).map_err(|error| (error.to_string(), 3))?;
    files::write(&script, asked.output.as_ref())?;
    let cut_short = report.warning.take_if(|_| !asked.partial);
    tell(asked, &report)?;
    match cut_short {
        None => Ok(()),
        Some(what) => {
            let what =
                format!("{shown}: {what}; the script has what is there, and --partial makes this no error");
            Err((what, CUT_SHORT))
        }
    }
}

fn map(word: OsString) -> Result<Map, String> {
    let bytes = word.as_bytes();
    let equals = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
    let (from, to) = (&bytes[..equals], bytes.get(equals + 1..).unwrap_or_default());
    if !from.starts_with(b"/") || to.starts_with(b"/") || to.is_empty() {
        return Err(format!("{:?}: expected /FROM=TO", word.to_string_lossy()));
    }
    Ok((from.to_vec(), to.to_vec()))
}

/// What the script has not, or otherwise: on standard error, and all of it in a file where that is asked for.
fn tell(asked: &TraceOptions, report: &Report) -> Result<(), Failed> {
    let lines = report.lines();
    if let Some(path) = &asked.report {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(path, text).map_err(|error| (format!("{}: {error}", path.display()), 5))?;
    }
    if asked.quiet {
        return Ok(());
    }
    for line in lines.iter().take(MOST_LINES) {
        complain!("etude script: {line}");
    }
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        complain!("etude script: {more} more such lines: --report FILE has all of them");
    }
    Ok(())
}
