//! The text of `strace -f -ttt -T` as a trace.
//!
//! `line.rs` takes a line apart, `values.rs` makes numbers of arguments; here is what becomes of lines.

mod line;
mod threads;
mod values;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead};

use line::{Line, What};
use threads::Threads;

use crate::meta::{Clock, Header};
use crate::writer::Writer;

/// What came of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub events: u64,
    /// Calls that a trace does not hold, by name.
    pub others: BTreeMap<String, u64>,
    /// Lines that were not understood, and the first of them (from 1).
    pub strange: u64,
    pub first_strange: u64,
    /// Arguments that were not understood, which became 0.
    pub strange_arguments: u64,
    /// Calls without an end: of processes that were killed, or that went on elsewhere.
    pub unfinished: u64,
}

/// Writes what `strace -f -ttt -T` wrote as a trace into `out`, an empty file. Times may have any number of decimals.
///
/// The error, one line, is that of `out` or of `text`, or that the text is none of strace.
pub fn strace(mut text: impl BufRead, out: File) -> Result<Imported, String> {
    let (mut bytes, mut number) = (Vec::new(), 0);
    let (mut out, mut threads) = (Some(out), None::<Threads>);
    let (mut strange, mut first_strange) = (0, 0);
    loop {
        bytes.clear();
        let length = text.read_until(b'\n', &mut bytes).map_err(|error| error.to_string())?;
        if length == 0 {
            break;
        }
        number += 1;
        let Some(line) = Line::parse(bytes.trim_ascii_end()) else {
            if !line::says_nothing(&bytes) {
                strange += 1;
                first_strange = if strange == 1 { number } else { first_strange };
            }
            continue;
        };
        if threads.is_none() {
            let out = out.take().expect("it is taken once");
            let writer = Writer::create(out, &header(&line)).map_err(|error| error.to_string())?;
            threads = Some(Threads::new(writer, line.at_ns));
        }
        let understood = threads.as_mut().expect("it was made").line(&line);
        if !understood.map_err(|error| error.to_string())? {
            strange += 1;
            first_strange = if strange == 1 { number } else { first_strange };
        }
    }
    let Some(threads) = threads else {
        return Err(match number {
            0 => "is empty: there is nothing to import".into(),
            _ => {
                "is no text of strace -f -ttt -T: no line begins with a time such as 1700000000.123456".into()
            }
        });
    };
    let mut imported = Imported { strange, first_strange, ..Imported::default() };
    threads.finish(&mut imported).map_err(|error: io::Error| error.to_string())?;
    Ok(imported)
}

/// What the first line tells of the trace.
fn header(line: &Line) -> Header {
    let argv = match &line.what {
        What::Call(call) if call.name == b"execve" => values::strings(call.arguments.get(1).copied()),
        _ => Vec::new(),
    };
    Header {
        argv,
        start: time_of_day(line.at_ns),
        processor: "x86_64".into(),
        technique: "strace".into(),
        clock: Clock { kind: "strace".into(), ns_per_tick: 1.0 },
        ..Header::default()
    }
}

/// UTC, RFC 3339, ns.
fn time_of_day(ns: u64) -> String {
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the day that not all have is their last (Hinnant, days from civil).
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let (date, month) = (of_year - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month < 3);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{rest:09}Z")
}

#[cfg(test)]
mod tests;
