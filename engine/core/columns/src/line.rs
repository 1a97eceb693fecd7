//! One line: whether it is a measurement (docs/reference/formats.md), and what its members say.

use std::collections::HashSet;

use crate::metrics::Metrics;
use crate::rows::{CODED, REASON, Row, Rows, flag};
use crate::scan::{Scan, Wrong};
use crate::texts::Texts;

/// Members, by what is done with them: the first are those that a line must have.
const MEMBERS: [(&str, Member); 26] = {
    use Member::{Cache, Code, Command, Count, Flag, List, Metrics, Null, Rows, Stream, Text, Windows};
    [
        ("test", Code(0)),
        ("trial", Count(0)),
        ("block", Count(1)),
        ("order", Count(2)),
        ("worker", Count(3)),
        ("host", Code(1)),
        ("sitting", Count(4)),
        ("boot_id", Code(2)),
        ("command", Command),
        ("start", Text),
        ("start_ns", Null(5)),
        ("inner", Count(6)),
        ("exit_status", Null(7)),
        ("signal", Null(SIGNAL)),
        ("timed_out", Flag(flag::TIMED_OUT)),
        ("cancelled", Flag(flag::CANCELLED)),
        ("error", Code(5)),
        ("kept", Flag(flag::KEPT)),
        ("why", Code(4)),
        ("metrics", Metrics),
        ("cache", Cache),
        ("stdout", Stream),
        ("stderr", Stream),
        ("windows", Windows),
        ("notes", List),
        ("rows", Rows),
    ]
};
const REQUIRED: u32 = (1 << 20) - 1;
/// The columns of `Row::whole` whose numbers must leave room for a sum.
const TRIAL: usize = 0;
const WORKER: usize = 3;
const INNER: usize = 6;
const STATUS: usize = 7;
const SIGNAL: usize = 8;
const COMMAND: usize = 3;
const MOST: i64 = 1 << 62;
/// Codes that may be null: why, error.
const MAY_BE_NULL: [bool; CODED.len()] = [false, false, false, false, true, true];
const CACHE_WAYS: [&str; 8] =
    ["none", "warm", "chill", "drop", "remount", "remount+chill", "reboot", "reboot+chill"];

#[derive(Clone, Copy, PartialEq)]
enum Member {
    Count(usize),
    Null(usize),
    Code(usize),
    Flag(u8),
    Command,
    Text,
    Metrics,
    Cache,
    Stream,
    Windows,
    List,
    Rows,
}

/// Reads lines into rows.
pub struct Lines {
    pub rows: Rows,
    pub metrics: Metrics,
    pub texts: [Texts; CODED.len() + 1],
    /// First rows of a test in which a metric had no value: the metric, the test's code, the reason's.
    pub reasons: Vec<(u32, u32, u32)>,
    known_reasons: HashSet<(u32, u32)>,
    /// The names of the last line, in order: from the end of the value before to the value, and which it is.
    seen: Vec<(Vec<u8>, usize)>,
    /// The last raw value and its code, of each of `CODED`.
    last: [(Vec<u8>, u32); CODED.len()],
}

impl Lines {
    /// Keeps the metrics of these names, or all.
    pub fn new(wanted: Option<HashSet<String>>) -> Self {
        let (rows, texts, reasons, known_reasons, seen, last) = Default::default();
        Lines { rows, metrics: Metrics::new(wanted), texts, reasons, known_reasons, seen, last }
    }

    /// Forgets the rows of the last chunk.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.metrics.clear();
        self.reasons.clear();
    }

    /// Reads the line that begins where `scan` is, and passes its end.
    pub fn read(&mut self, scan: &mut Scan) -> Result<(), Wrong> {
        let mut row = Row::default();
        row.whole[STATUS] = -1;
        let mut signal = -1;
        let mut there = 0u32;
        let mut place = 0;
        loop {
            let member = self.name(scan, place)?;
            let Some(member) = member else { break };
            place += 1;
            if let Some((_, kind)) = MEMBERS.get(member) {
                if there & (1 << member) != 0 {
                    return Err("a member stands twice in it");
                }
                there |= 1 << member;
                self.value(scan, *kind, &mut row, &mut signal)?;
            } else {
                row.flags |= flag::UNCOMMON;
                scan.skip()?;
            }
        }
        scan.end()?;
        if there & REQUIRED != REQUIRED {
            return Err("a member is missing");
        }
        self.add(row, signal)
    }

    /// The index of the next member, behind its colon; None at the object's end. Unknown ones have an index, too.
    #[inline]
    fn name(&mut self, scan: &mut Scan, place: usize) -> Result<Option<usize>, Wrong> {
        if let Some((lead, member)) = self.seen.get(place)
            && scan.eat(lead)
        {
            return Ok(Some(*member));
        }
        let start = scan.at();
        if place == 0 {
            scan.need(b'{')?;
        }
        if scan.has(b'}') {
            return Ok(None);
        }
        if place > 0 {
            scan.need(b',')?;
        }
        let name = scan.string()?;
        scan.need(b':')?;
        scan.blank();
        let member = MEMBERS.iter().position(|(known, _)| name.is(known)).unwrap_or(MEMBERS.len());
        let seen = (scan.since(start).to_vec(), member);
        if place < self.seen.len() {
            self.seen[place] = seen;
        } else if self.seen.len() < 256 {
            self.seen.push(seen);
        }
        Ok(Some(member))
    }

    #[inline]
    fn value(&mut self, scan: &mut Scan, kind: Member, row: &mut Row, signal: &mut i64) -> Result<(), Wrong> {
        match kind {
            Member::Count(column) => row.whole[column] = count(scan)?,
            Member::Null(column) => {
                let value = if scan.eat(b"null") { -1 } else { count(scan)? };
                *(if column == SIGNAL { signal } else { &mut row.whole[column] }) = value;
            }
            Member::Code(column) => row.codes[column] = self.code(scan, column)?,
            Member::Command => row.codes[COMMAND] = self.command(scan)?,
            Member::Flag(bit) if scan.eat(b"true") => row.flags |= bit,
            Member::Flag(_) if scan.eat(b"false") => {}
            Member::Flag(_) => return Err("a member is not true or false"),
            Member::Text => text_or_null(scan)?,
            Member::Metrics if scan.byte() == b'{' => {
                self.metrics.read(scan, self.rows.count, &mut self.texts[REASON])?
            }
            Member::Metrics => return Err("metrics is no object"),
            Member::Cache | Member::Stream if scan.eat(b"null") => {}
            Member::Cache => {
                row.flags |= flag::UNCOMMON;
                cache(scan)?
            }
            Member::Stream => {
                row.flags |= flag::UNCOMMON;
                stream(scan)?
            }
            Member::Windows if scan.eat(b"null") => {}
            Member::Windows | Member::List if scan.byte() != b'[' => return Err("a member is no list"),
            Member::Windows => {
                let mut any = false;
                scan.items(|scan| {
                    any = true;
                    scan.skip()
                })?;
                row.flags |= if any { flag::WINDOWS | flag::UNCOMMON } else { 0 };
            }
            Member::List => scan.skip()?,
            Member::Rows => match count(scan)? {
                0 => return Err("rows is 0"),
                lines => {
                    row.flags |= flag::UNCOMMON;
                    row.lines = Some(lines.unsigned_abs());
                }
            },
        }
        Ok(())
    }

    #[inline]
    fn code(&mut self, scan: &mut Scan, column: usize) -> Result<u32, Wrong> {
        let (last, code) = &self.last[column];
        if !last.is_empty() && scan.eat(last) {
            return Ok(*code);
        }
        if MAY_BE_NULL[column] && scan.eat(b"null") {
            return Ok(0);
        }
        let start = scan.at();
        if scan.byte() != b'"' {
            return Err("a member is no text");
        }
        let code = self.texts[column].code(&scan.string()?.text());
        self.last[column] = (scan.since(start).to_vec(), code);
        Ok(code)
    }

    fn command(&mut self, scan: &mut Scan) -> Result<u32, Wrong> {
        let (last, code) = &self.last[COMMAND];
        if !last.is_empty() && scan.eat(last) {
            return Ok(*code);
        }
        let start = scan.at();
        if scan.byte() != b'[' {
            return Err("command is no list");
        }
        let mut words = Vec::new();
        scan.items(|scan| {
            scan.blank();
            if scan.byte() != b'"' {
                return Err("command is no list of texts");
            }
            words.push(scan.string()?.text());
            Ok(())
        })?;
        let code = self.texts[COMMAND].code(&serde_json::to_string(&words).unwrap_or_default());
        self.last[COMMAND] = (scan.since(start).to_vec(), code);
        Ok(code)
    }

    fn add(&mut self, mut row: Row, signal: i64) -> Result<(), Wrong> {
        if row.whole[INNER] < 1 {
            return Err("inner is 0");
        }
        if row.whole[TRIAL] >= MOST || row.whole[WORKER] >= MOST || signal >= MOST {
            return Err("a number in it is too large");
        }
        if signal >= 0 {
            row.whole[STATUS] = 128 + signal;
            row.flags |= flag::SIGNALLED;
        }
        for &(metric, reason) in &self.metrics.nulls {
            if self.known_reasons.insert((metric, row.codes[0])) {
                self.reasons.push((metric, row.codes[0], reason));
            }
        }
        self.rows.push(&row);
        Ok(())
    }
}

#[inline]
fn count(scan: &mut Scan) -> Result<i64, Wrong> {
    if !matches!(scan.byte(), b'-' | b'0'..=b'9') {
        return Err("a member is no number");
    }
    scan.number()?.count().ok_or("a member is no whole number, or below 0")
}

fn text_or_null(scan: &mut Scan) -> Result<(), Wrong> {
    match scan.byte() {
        b'"' => scan.string().map(|_| ()),
        _ if scan.eat(b"null") => Ok(()),
        _ => Err("a member is neither a text nor null"),
    }
}

/// `{declared, performed}`.
fn cache(scan: &mut Scan) -> Result<(), Wrong> {
    if scan.byte() != b'{' {
        return Err("cache is no object");
    }
    let (mut declared, mut performed) = (false, true);
    scan.members(|scan, name| {
        scan.blank();
        if name.is("declared") {
            declared = way(scan)?;
        } else if name.is("performed") {
            performed = scan.eat(b"null") || way(scan)?;
        } else {
            scan.skip()?;
        }
        Ok(())
    })?;
    if declared && performed { Ok(()) } else { Err("cache holds no known state") }
}

fn way(scan: &mut Scan) -> Result<bool, Wrong> {
    if scan.byte() == b'"' {
        let way = scan.string()?;
        return Ok(CACHE_WAYS.iter().any(|known| way.is(known)));
    }
    scan.skip().map(|()| false)
}

/// `{bytes, sha256, tail}`.
fn stream(scan: &mut Scan) -> Result<(), Wrong> {
    if scan.byte() != b'{' {
        return Err("a captured stream is no object");
    }
    let mut good = [false; 3];
    scan.members(|scan, name| {
        scan.blank();
        match ["bytes", "sha256", "tail"].iter().position(|known| name.is(known)) {
            None => scan.skip()?,
            Some(0) if matches!(scan.byte(), b'-' | b'0'..=b'9') => {
                let number = scan.number()?;
                number.finite()?;
                good[0] = number.is_whole();
            }
            Some(member) => {
                good[member] = member > 0 && scan.byte() == b'"';
                scan.skip()?;
            }
        }
        Ok(())
    })?;
    if good == [true; 3] { Ok(()) } else { Err("a captured stream must hold bytes, sha256 and tail") }
}
