//! A script from its text (docs/howto/scripts.md).
//!
//! `cursor.rs` goes along a line, `step.rs` makes a step of one; here is what is found on each line.

mod cursor;
mod step;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use cursor::{Cursor, Fault};
use etude_trace::{Policy, Scheduling, words};

use etude_calls::Call;

use crate::check::Threads;
use crate::model::{Dropped, Needed, Script, What};
use crate::playable::{Place, playable};
use crate::text::{HEAD, one_line};
use crate::wrong::Wrong;

/// A script, and where its parts stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub script: Script,
    /// The line of each step, from 1.
    pub lines: Vec<u32>,
    /// That of each thing that is needed.
    pub needed_lines: Vec<u32>,
}

/// Reads a script; `name` is what errors call it.
pub fn parse(name: &str, text: &[u8]) -> Result<Parsed, Wrong> {
    let mut reading = Reading::default();
    let mut number = 0;
    for line in text.split(|byte| *byte == b'\n') {
        number += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        reading.line(number, line).map_err(|fault| Wrong::new(name, number, line, fault.at, fault.what))?;
    }
    if !reading.begun {
        let what = format!("is empty: expected a script, whose first line is \"{HEAD}\"");
        return Err(Wrong::new(name, number, b"", 0, what));
    }
    Ok(reading.parsed)
}

#[derive(Default)]
struct Reading {
    parsed: Parsed,
    threads: Threads,
    /// Whether the first line was met.
    begun: bool,
}

impl Parsed {
    /// Whether it can be replayed; `name` is what the error calls it, before the line.
    ///
    /// # Errors
    /// It cannot.
    pub fn playable(&self, name: &str) -> Result<(), String> {
        playable(&self.script).map_err(|(place, what)| {
            let line = match place {
                Place::Step(index) => self.lines[index],
                Place::Needed(index) => self.needed_lines[index],
            };
            format!("{name}:{line}: {what}")
        })
    }
}

impl Reading {
    fn line(&mut self, number: usize, line: &[u8]) -> Result<(), Fault> {
        let mut cursor = Cursor::new(line);
        cursor.blanks();
        if cursor.at_end() {
            return Ok(());
        }
        if !self.begun {
            head(&mut cursor, line)?;
            self.begun = true;
            return Ok(());
        }
        if cursor.eat(b'#') {
            // Those above the first step are the script's own, those below somebody's remarks.
            if self.parsed.script.steps.is_empty() {
                let note = cursor.rest();
                let note = note.strip_prefix(b" ").unwrap_or(note);
                self.parsed.script.notes.push(one_line(&String::from_utf8_lossy(note)));
            }
            return Ok(());
        }
        let begin = cursor.at();
        let number = u32::try_from(number)
            .map_err(|_| Fault { at: begin, what: "a script has fewer than 2^32 lines".into() })?;
        if let Some(scheduling) = scheduling(&mut cursor)? {
            cursor.end()?;
            self.parsed.script.scheduling = Some(scheduling);
            return Ok(());
        }
        if let Some(needed) = need(&mut cursor)? {
            cursor.end()?;
            if !self.parsed.script.steps.is_empty() {
                let what = "what is needed stands above the first step: move this line up";
                return Err(Fault { at: begin, what: what.into() });
            }
            self.parsed.script.needed.push(needed);
            self.parsed.needed_lines.push(number);
            return Ok(());
        }
        if let Some(dropped) = dropped(&mut cursor)? {
            cursor.end()?;
            self.parsed.script.dropped.push(dropped);
            return Ok(());
        }
        let step = step::step(&mut cursor)?;
        cursor.end()?;
        self.threads.step(&step).map_err(|what| Fault { at: begin, what })?;
        self.parsed.script.steps.push(step);
        self.parsed.lines.push(number);
        Ok(())
    }
}

fn head(cursor: &mut Cursor, line: &[u8]) -> Result<(), Fault> {
    if line.trim_ascii() == HEAD.as_bytes() {
        return Ok(());
    }
    let what = if line.starts_with(b"etudetrc") {
        "this is a trace: make a script of it with etude script TRACE -o NEW.script".into()
    } else if line.starts_with(b"etude script ") {
        format!("a script of another version: expected \"{HEAD}\"")
    } else {
        format!("this is no script: expected \"{HEAD}\" as the first line")
    };
    Err(cursor.fault(&what))
}

/// A line of what has to be there before; None where it is none.
fn need(cursor: &mut Cursor) -> Result<Option<Needed>, Fault> {
    let begin = cursor.at();
    let word = cursor.word();
    // `link("a", "b") = 0` is a call.
    if !matches!(word, b"file" | b"directory" | b"link" | b"name") || cursor.peek() == Some(b'(') {
        cursor.back_to(begin);
        return Ok(None);
    }
    let path = path(cursor)?;
    let what = match word {
        b"file" => file(cursor)?,
        b"directory" => What::Directory,
        b"link" => {
            cursor.keyword("to", "expected to and what the link says, such as link \"a\" to \"b\"")?;
            What::Link(self::path(cursor)?)
        }
        _ => {
            cursor.keyword("of", "expected of and another name of the file, such as name \"a\" of \"b\"")?;
            What::HardLink(self::path(cursor)?)
        }
    };
    Ok(Some(Needed { path, what }))
}

/// The line of the scheduling class; None where it is another one.
fn scheduling(cursor: &mut Cursor) -> Result<Option<Scheduling>, Fault> {
    let begin = cursor.at();
    if cursor.word() != b"scheduling" {
        cursor.back_to(begin);
        return Ok(None);
    }
    cursor.blanks();
    let at = cursor.at();
    let word = cursor.word();
    let policy = Policy::ALL.into_iter().find(|(_, name, _)| name.as_bytes() == word);
    let Some((policy, ..)) = policy else {
        return Err(Fault { at, what: "expected a policy: other, fifo, rr, batch, idle or deadline".into() });
    };
    let mut number = |name: &str, range: RangeInclusive<i8>| {
        let what = || format!("expected {name} {} to {}", range.start(), range.end());
        cursor.keyword(name, &what())?;
        cursor.blanks();
        let at = cursor.at();
        let found = std::str::from_utf8(cursor.until(b" #")).ok().and_then(|word| word.parse().ok());
        found.filter(|number| range.contains(number)).ok_or_else(|| Fault { at, what: what() })
    };
    let (priority, nice) = (number("priority", 0..=99)? as u8, number("nice", Scheduling::NICE_VALUES)?);
    Ok(Some(Scheduling { policy, priority, nice }))
}

/// A line of what the recording has and the steps have not; None where it is none.
fn dropped(cursor: &mut Cursor) -> Result<Option<Dropped>, Fault> {
    let begin = cursor.at();
    if cursor.word() != b"dropped" || cursor.peek() == Some(b'(') {
        cursor.back_to(begin);
        return Ok(None);
    }
    cursor.blanks();
    let at = cursor.at();
    let call = String::from_utf8_lossy(cursor.word()).into_owned();
    if call != "any" && Call::named(&call).is_none() {
        return Err(Fault { at, what: "expected the name of a call, or any".into() });
    }
    cursor.blanks();
    if cursor.peek() != Some(b'"') {
        return Err(cursor.fault("expected the reason in quotes"));
    }
    let why = one_line(&String::from_utf8_lossy(&cursor.string()?));
    let mut count = |unit: &str| {
        let expected = format!("expected a number of {unit}, such as 12 {unit}");
        let many = cursor.bytes(&expected)?;
        cursor.keyword(unit, &expected).map(|()| many)
    };
    let (calls, bytes, requests) = (count("calls")?, count("bytes")?, count("requests")?);
    cursor.blanks();
    let at = cursor.at();
    let expected = "expected seconds with a point and at most nine decimals, such as 0.000004000";
    let ns = words::seconds_of(cursor.until(b" #")).ok_or(Fault { at, what: expected.into() })?;
    Ok(Some(Dropped { call, why, calls, bytes, requests, ns }))
}

fn file(cursor: &mut Cursor) -> Result<What, Fault> {
    let expected = "expected the file's size in bytes, such as file \"a\" 4096, or at least 4096";
    cursor.blanks();
    let seen = if cursor.peek() == Some(b'a') {
        cursor.keyword("at", expected)?;
        cursor.keyword("least", expected)?;
        false
    } else {
        true
    };
    let bytes = cursor.bytes(expected)?;
    cursor.blanks();
    let allocated = if cursor.peek() == Some(b's') {
        cursor.keyword("sparse", "expected sparse, or the end of the line")?;
        Some(cursor.bytes("expected how many bytes it has on disk")?)
    } else {
        None
    };
    Ok(What::File { bytes, allocated, seen })
}

fn path(cursor: &mut Cursor) -> Result<Arc<[u8]>, Fault> {
    cursor.blanks();
    let begin = cursor.at();
    if cursor.peek() != Some(b'"') {
        return Err(cursor.fault("expected a path in quotes"));
    }
    let path = cursor.string()?;
    match path.is_empty() || path.contains(&0) {
        true => Err(Fault { at: begin, what: "a path has at least one byte, and none that is zero".into() }),
        false => Ok(path.into()),
    }
}
