//! What became of a trace: to be told to who made a script of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use etude_calls::{Moves, Outcome};
use etude_trace::Event;

use crate::from_trace::rules;
use crate::from_trace::stream::Survey;
use crate::model::{Dropped, UNCOUNTED};
use crate::names::{Substitution, Why};

/// What a script has not, or has otherwise than the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub steps: u64,
    /// Why the trace is not whole.
    pub warning: Option<String>,
    pub substitutions: Vec<Substitution>,
    /// Calls that are not in the script, by name and reason; their time is in `compute`.
    pub dropped: BTreeMap<(&'static str, &'static str), Dropped>,
    /// I/O that is not in the trace itself: stores through mappings, and calls that were lost.
    pub missing: Vec<Dropped>,
    /// Calls that stand for others, by what was done.
    pub replaced: BTreeMap<&'static str, u64>,
    /// Which share of the gaps was waiting for a CPU; None where the trace does not say.
    pub run_delay: Option<f64>,
    /// That was left out of the script.
    pub without_run_delay: bool,
    /// What could not be known, a line each.
    pub unknown: Vec<String>,
}

/// A smaller share of the gaps is not worth a line.
const RUN_DELAY: f64 = 0.05;

impl Report {
    pub(crate) fn drops(&mut self, event: &Event, why: &'static str) {
        self.drops_transfers(event, why, transfers(event));
    }

    /// As many bytes, and transfers whose bytes are not known, as are told.
    pub(crate) fn drops_transfers(
        &mut self,
        event: &Event,
        why: &'static str,
        (bytes, requests): (u64, u64),
    ) {
        let name = event.call.name();
        let new = || Dropped { call: name.into(), why: why.into(), ..Dropped::default() };
        let more = Dropped { calls: 1, bytes, requests, ns: event.duration_ns, ..Dropped::default() };
        self.dropped.entry((name, why)).or_insert_with(new).add(&more);
    }

    /// The bytes of a transfer that was dropped are known now.
    pub(crate) fn answers(&mut self, (name, why): (&'static str, &'static str), result: i64) {
        if let Some(dropped) = self.dropped.get_mut(&(name, why)).filter(|dropped| dropped.requests > 0) {
            dropped.requests -= 1;
            dropped.bytes = dropped.bytes.saturating_add(u64::try_from(result).unwrap_or(0));
        }
    }

    /// A mapping through which the program can change a file: the call is replayed, its stores are not.
    pub(crate) fn maps(&mut self, event: &Event) {
        let stores = Dropped { calls: 1, bytes: event.arguments[1], ..Dropped::default() };
        self.misses("mmap", "stores through a shared mapping", &stores);
    }

    pub(crate) fn misses(&mut self, call: &str, why: &str, more: &Dropped) {
        if let Some(found) =
            self.missing.iter_mut().find(|missing| missing.call == call && missing.why == why)
        {
            return found.add(more);
        }
        self.missing.push(Dropped { call: call.into(), why: why.into(), ..more.clone() });
    }

    /// All that the script has not.
    pub(crate) fn left_out(&self) -> Vec<Dropped> {
        self.dropped.values().chain(&self.missing).cloned().collect()
    }

    pub(crate) fn replaces(&mut self, what: &'static str) {
        *self.replaced.entry(what).or_default() += 1;
    }

    pub(crate) fn add_survey(&mut self, survey: &Survey) {
        if survey.dropped > 0 {
            self.unknown.push(format!("{} calls are missing in the trace", survey.dropped));
            let lost = Dropped { calls: survey.dropped, requests: survey.dropped, ..Dropped::default() };
            self.misses("any", "missing in the trace", &lost);
        }
        for why in &survey.unrecorded {
            self.unknown.push(format!("not recorded: {why}"));
            let lost = Dropped { requests: UNCOUNTED, ..Dropped::default() };
            self.misses("any", "of a process or thread that is not recorded", &lost);
        }
        self.unknown.extend(survey.by_stops.iter().map(|process| {
            format!("process {process} was recorded by stops: its gaps are some 20 µs longer each")
        }));
    }

    /// Says that gaps were longer because others had the CPU, where that is so.
    pub fn run_delay_warning(&self) -> Option<String> {
        let share = self.run_delay.filter(|share| *share >= RUN_DELAY && !self.without_run_delay)?;
        Some(format!(
            "{:.0} % of the gaps were waiting for a CPU (--without-run-delay leaves it out)",
            100.0 * share
        ))
    }

    /// Says what the script has not of its gaps.
    pub(crate) fn run_delay_left_out(&self) -> Option<String> {
        if !self.without_run_delay {
            return None;
        }
        Some(match self.run_delay {
            Some(share) => {
                format!("without run delay: {:.1} % of the gaps were waiting for a CPU", 100.0 * share)
            }
            None => "run delay is not known: gaps are as they were".into(),
        })
    }

    /// A line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.warning.iter().cloned().collect();
        lines.extend(self.run_delay_warning().or_else(|| self.run_delay_left_out()));
        lines.extend(self.dropped.iter().map(|((name, why), dropped)| {
            let [bytes, requests] =
                [(dropped.bytes, "bytes"), (dropped.requests, "requests")].map(|(many, unit)| match many {
                    0 => String::new(),
                    UNCOUNTED.. => format!(", {unit} of an unknown number"),
                    _ => format!(", {many} {unit}"),
                });
            let seconds = dropped.ns as f64 / 1e9;
            format!(
                "dropped: {name}: {why}: {} calls{bytes}{requests}, {seconds:.6} s, now compute",
                dropped.calls
            )
        }));
        let stores = self.missing.iter().filter(|missing| missing.call == "mmap");
        lines.extend(stores.map(|Dropped { why, calls, bytes, .. }| {
            format!("not recorded: {why}: {calls} mappings of {bytes} bytes")
        }));
        lines.extend(self.replaced.iter().map(|(what, many)| format!("replaced: {what}: {many} calls")));
        for Substitution { original, name, why } in &self.substitutions {
            let why = match why {
                Why::Stripped => "directory left out",
                Why::Mapped => "mapped",
                Why::Created => "created",
                Why::Hashed => "hashed",
            };
            let mut line = format!("renamed ({why}): ");
            write!(line, "{} = {}", original.escape_ascii(), name.escape_ascii()).expect("a string grows");
            lines.push(line);
        }
        lines.extend(self.unknown.iter().map(|what| format!("not known: {what}")));
        lines
    }
}

/// Bytes that a call moved, and transfers whose bytes are not recorded.
fn transfers(event: &Event) -> (u64, u64) {
    let result = u64::try_from(event.result).unwrap_or(0);
    let row = event.call.row();
    match row.outcome {
        // Its requests are made without a call: how many, nobody knows.
        _ if rules::is_polled(event) => (0, UNCOUNTED),
        _ if row.moves == Moves::Nothing => (0, 0),
        Outcome::Bytes => (result, 0),
        _ => (0, result),
    }
}
