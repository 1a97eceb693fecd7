//! `etude script TRACE`: a script of a trace.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use etude_terminal::complain;
use lexopt::prelude::*;

use super::{Failed, files, usage};
use crate::from_trace::{Kept, Options, Report, from_trace};
use crate::hash::random_key;

/// Lines that are said of what a script has not, or otherwise; `--report` has all.
const MOST_LINES: usize = 12;

/// The exit status for a trace that is cut short.
const CUT_SHORT: u8 = 9;

struct Asked {
    trace: PathBuf,
    output: Option<OsString>,
    report: Option<PathBuf>,
    quiet: bool,
    /// A trace that is cut short is no error.
    partial: bool,
    options: Options,
}

/// Makes it; `words` are all arguments.
pub fn script(words: Vec<OsString>) -> Result<(), Failed> {
    let asked = asked(words).map_err(|error| usage(&error.to_string()))?;
    let shown = asked.trace.display();
    if !asked.trace.exists() {
        let verbs = "check, cut, filter, repeat, merge, clone or scale";
        return Err((format!("{shown}: no such file; expected a trace, or {verbs} and a script"), 3));
    }
    let (script, mut report) =
        from_trace(&asked.trace, &asked.options).map_err(|error| (error.to_string(), 3))?;
    files::write(&script, asked.output.as_ref())?;
    let cut_short = report.warning.take_if(|_| !asked.partial);
    tell(&asked, &report)?;
    match cut_short {
        None => Ok(()),
        Some(what) => {
            let what =
                format!("{shown}: {what}; the script has what is there, and --partial makes this no error");
            Err((what, CUT_SHORT))
        }
    }
}

fn asked(words: Vec<OsString>) -> Result<Asked, lexopt::Error> {
    let mut found = Asked {
        trace: PathBuf::new(),
        output: None,
        report: None,
        quiet: false,
        partial: false,
        options: Options::default(),
    };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('o') | Long("output") => found.output = Some(parser.value()?),
            Long("report") => found.report = Some(parser.value()?.into()),
            Short('q') | Long("quiet") => found.quiet = true,
            Long("partial") => found.partial = true,
            Long("keep-names") => found.options.keep_names = true,
            Long("hash-names") => {
                found.options.hash_names = Some(random_key().map_err(|error| error.to_string())?);
            }
            Long("map") => found.options.maps.push(map(&parser.value()?)?),
            Long("waits") => found.options.waits = waits(&parser.value()?.string()?)?,
            Long("without-run-delay") => found.options.without_run_delay = true,
            Long("pipes") => found.options.pipes = pipes(&parser.value()?.string()?)?,
            // As earlier versions had it.
            Long("keep") => keep(&parser.value()?.string()?, &mut found.options)?,
            Value(trace) if found.trace.as_os_str().is_empty() => found.trace = trace.into(),
            _ => return Err(argument.unexpected()),
        }
    }
    if found.trace.as_os_str().is_empty() {
        return Err("expected a trace".into());
    }
    Ok(found)
}

fn map(word: &OsString) -> Result<(Vec<u8>, Vec<u8>), lexopt::Error> {
    let bytes = word.as_bytes();
    let wrong = || format!("--map {}: expected /FROM=TO", word.to_string_lossy());
    let equals = bytes.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
    let (from, to) = (&bytes[..equals], &bytes[equals + 1..]);
    if !from.starts_with(b"/") || to.starts_with(b"/") || to.is_empty() {
        return Err(wrong().into());
    }
    Ok((from.to_vec(), to.to_vec()))
}

fn waits(word: &str) -> Result<bool, lexopt::Error> {
    match word {
        "infer" => Ok(true),
        "none" => Ok(false),
        other => Err(format!("--waits {other}: expected infer or none").into()),
    }
}

fn pipes(word: &str) -> Result<Kept, lexopt::Error> {
    match word {
        "whole" => Ok(Kept::Whole),
        "all" => Ok(Kept::All),
        "none" => Ok(Kept::None),
        other => Err(format!("--pipes {other}: expected whole, all or none").into()),
    }
}

fn keep(word: &str, options: &mut Options) -> Result<(), lexopt::Error> {
    match word {
        "pipes" => options.pipes = Kept::All,
        other => return Err(format!("{other} cannot be kept: expected --pipes whole, all or none").into()),
    }
    Ok(())
}

/// What the script has not, or otherwise: on standard error, and all of it in a file where that is asked for.
fn tell(asked: &Asked, report: &Report) -> Result<(), Failed> {
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
