//! The options of the micro-benchmarks: all errors are usage errors of one line.

use std::ffi::OsString;

use clap::Parser;
use etude_counters::SETS;
use etude_options::Ended;

use crate::exit::Fail;
use crate::report::{Style, say};

/// The options of `program`; None where its help or version was printed instead.
///
/// # Errors
/// A usage error.
pub fn read<T: Parser>(program: &str, arguments: impl Iterator<Item = OsString>) -> Result<Option<T>, Fail> {
    match etude_options::read(program, arguments) {
        Ok(options) => Ok(Some(options)),
        Err(Ended::Text(text)) => say(&text).map(|()| None),
        Err(Ended::Wrong(line)) => Err(Fail::usage(format!("{line}; --help lists the options"))),
    }
}

/// A set of counters, as the value of an option.
///
/// # Errors
/// One line with all of them.
pub fn counters(text: &str) -> Result<&'static str, String> {
    let names = SETS.map(|(name, _)| name);
    let set = names.into_iter().find(|name| *name == text);
    set.ok_or_else(|| format!("{text:?}: expected {}", names.join(", ")))
}

/// How the report is printed; the quietest wins.
pub fn style(quiet: bool, json: bool, verbose: bool) -> Style {
    match (quiet, json, verbose) {
        (true, ..) => Style::Quiet,
        (_, true, _) => Style::Json,
        (_, _, true) => Style::Verbose,
        _ => Style::Rates,
    }
}
