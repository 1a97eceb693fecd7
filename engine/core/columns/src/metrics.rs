//! The metrics of a line. Most lines look like the one before, so its names and units are compared first.

use std::collections::{HashMap, HashSet};

use crate::rows::Metric;
use crate::scan::{Raw, Scan, Wrong};
use crate::texts::Texts;

/// Ways to join workers and commands that a line may ask for.
const JOINS: [&str; 4] = ["sum", "max", "mean", "min"];
const NO_METRIC: Wrong = "a metric is not [number, unit] or [null, unit, reason]";

/// The metrics of all lines so far, and what the last line looked like.
pub struct Metrics {
    wanted: Option<HashSet<String>>,
    codes: HashMap<String, u32>,
    names: Vec<Name>,
    pub found: Vec<Metric>,
    seen: Vec<Seen>,
    /// Of this line: metrics without a value, and the reason's code.
    pub nulls: Vec<(u32, u32)>,
    line: u64,
}

/// A name that is wanted: its metrics, one a unit and join, and the last line that had one.
#[derive(Default)]
struct Name {
    units: Vec<u32>,
    line: u64,
}

/// One entry of the last line, cut where its number was.
#[derive(Default)]
struct Seen {
    /// From the end of the entry before to the value: `,"user":[`.
    lead: Vec<u8>,
    /// From the end of the number: `,"s"]` or `,"s","mean"]`. Empty where there was none.
    tail: Vec<u8>,
    /// From null on: `null,"1","no such event"]`, and the reason's code. Empty where there was a number.
    null: Vec<u8>,
    reason: u32,
    /// None for a metric that is not wanted.
    metric: Option<u32>,
}

impl Metrics {
    /// Keeps the metrics of these names, or all.
    pub fn new(wanted: Option<HashSet<String>>) -> Self {
        let (codes, names, found, seen, nulls) = Default::default();
        Metrics { wanted, codes, names, found, seen, nulls, line: 0 }
    }

    /// Reads the object of a line, which is the chunk's row of this number.
    pub fn read(&mut self, scan: &mut Scan, row: usize, reasons: &mut Texts) -> Result<(), Wrong> {
        self.line += 1;
        self.nulls.clear();
        scan.need(b'{')?;
        let mut place = 0;
        loop {
            if !self.as_before(scan, place, row)? {
                if scan.has(b'}') {
                    return if place == 0 { Ok(()) } else { Err("it is no JSON") };
                }
                self.anew(scan, place, row, reasons)?;
            }
            place += 1;
            scan.blank();
            match scan.byte() {
                b',' => {} // belongs to the next entry
                b'}' => {
                    scan.eat(b"}");
                    return Ok(());
                }
                _ => return Err("it is no JSON"),
            }
        }
    }

    /// Passes an entry that looks as that of the last line; false where it does not.
    #[inline]
    fn as_before(&mut self, scan: &mut Scan, place: usize, row: usize) -> Result<bool, Wrong> {
        let Some(seen) = self.seen.get(place) else { return Ok(false) };
        let start = scan.at();
        if !scan.eat(&seen.lead) {
            return Ok(false);
        }
        if !seen.null.is_empty() && scan.eat(&seen.null) {
            if let Some(metric) = seen.metric {
                let reason = seen.reason;
                self.once(metric)?;
                self.nulls.push((metric, reason));
            }
            return Ok(true);
        }
        if !seen.tail.is_empty() && matches!(scan.byte(), b'-' | b'0'..=b'9') {
            let number = scan.number()?;
            if scan.eat(&seen.tail) {
                match seen.metric {
                    None => number.finite()?,
                    Some(metric) => {
                        let value = number.real()?;
                        self.once(metric)?;
                        self.set(metric, row, value);
                    }
                }
                return Ok(true);
            }
        }
        scan.go(start);
        Ok(false)
    }

    /// Reads an entry, and remembers what it looks like.
    fn anew(&mut self, scan: &mut Scan, place: usize, row: usize, reasons: &mut Texts) -> Result<(), Wrong> {
        let start = scan.at();
        if place > 0 {
            scan.need(b',')?;
        }
        let name = scan.string()?;
        scan.need(b':')?;
        if !scan.has(b'[') {
            return Err(NO_METRIC);
        }
        scan.blank();
        let mut seen = Seen { lead: scan.since(start).to_vec(), ..Seen::default() };
        let value = scan.at();
        let number = match scan.byte() {
            b'n' if scan.eat(b"null") => None,
            b'-' | b'0'..=b'9' => Some(scan.number()?.real()?),
            _ => return Err(NO_METRIC),
        };
        let after = scan.at();
        let (unit, reason, join) = rest(scan, number.is_none())?;
        seen.metric = self.metric(name, unit, join)?;
        if let Some(reason) = reason {
            seen.null = scan.since(value).to_vec();
            seen.reason = if seen.metric.is_some() { reasons.code(&reason.text()) } else { 0 };
        } else {
            seen.tail = scan.since(after).to_vec();
        }
        match (seen.metric, number) {
            (Some(metric), Some(value)) => self.set(metric, row, value),
            (Some(metric), None) => self.nulls.push((metric, seen.reason)),
            (None, _) => {}
        }
        if place < self.seen.len() {
            self.seen[place] = seen;
        } else if self.seen.len() < 4096 {
            self.seen.push(seen);
        }
        Ok(())
    }

    /// The metric of this name, unit and join, new or known; None if it is not wanted.
    fn metric(&mut self, name: Raw, unit: Raw, join: Option<Raw>) -> Result<Option<u32>, Wrong> {
        let (name, unit) = (name.text(), unit.text());
        let join = join.map(|join| join.text()).filter(|join| JOINS.contains(&&**join)).unwrap_or_default();
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&*name)) {
            return Ok(None);
        }
        let code = self.codes.get(&*name).copied().unwrap_or_else(|| {
            let code = u32::try_from(self.names.len()).expect("fewer names than codes");
            self.names.push(Name::default());
            self.codes.insert(name.to_string(), code);
            code
        });
        let known = &mut self.names[code as usize];
        let fits = |metric: &Metric| metric.unit == unit && metric.join == join;
        let there = known.units.iter().copied().find(|&metric| fits(&self.found[metric as usize]));
        let metric = there.unwrap_or_else(|| {
            let metric = u32::try_from(self.found.len()).expect("fewer metrics than codes");
            let (name, unit, join) = (name.to_string(), unit.into_owned(), join.into_owned());
            self.found.push(Metric { name, code, unit, join, values: Vec::new() });
            known.units.push(metric);
            metric
        });
        self.once(metric)?;
        Ok(Some(metric))
    }

    /// Refuses a second metric of one name in a line.
    #[inline]
    fn once(&mut self, metric: u32) -> Result<(), Wrong> {
        let name = &mut self.names[self.found[metric as usize].code as usize];
        if std::mem::replace(&mut name.line, self.line) == self.line {
            return Err("a metric stands twice in it");
        }
        Ok(())
    }

    #[inline]
    fn set(&mut self, metric: u32, row: usize, value: f64) {
        let values = &mut self.found[metric as usize].values;
        values.resize(row, f64::NAN);
        values.push(value);
    }

    /// Makes all columns of this length.
    pub fn fill(&mut self, rows: usize) {
        for metric in &mut self.found {
            metric.values.resize(rows, f64::NAN);
        }
    }

    /// Forgets all values, and keeps their memory.
    pub fn clear(&mut self) {
        self.found.iter_mut().for_each(|metric| metric.values.clear());
    }
}

/// The parts of a metric after its value: its unit, the reason where the value is null, how it is joined where the line
/// says so, and whatever else.
fn rest<'a>(scan: &mut Scan<'a>, null: bool) -> Result<Rest<'a>, Wrong> {
    let text = |scan: &mut Scan<'a>| {
        if !scan.has(b',') {
            return Err(NO_METRIC);
        }
        scan.blank();
        if scan.byte() == b'"' { scan.string() } else { Err(NO_METRIC) }
    };
    let unit = text(scan)?;
    let reason = if null { Some(text(scan)?) } else { None };
    let mut join = None;
    if scan.has(b',') {
        scan.blank();
        if scan.byte() == b'"' {
            join = Some(scan.string()?);
        } else {
            scan.skip()?;
        }
    }
    while !scan.has(b']') {
        scan.need(b',')?;
        scan.skip()?;
    }
    Ok((unit, reason, join))
}

type Rest<'a> = (Raw<'a>, Option<Raw<'a>>, Option<Raw<'a>>);
