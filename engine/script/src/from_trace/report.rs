//! What became of a trace: to be told to who made a script of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use etude_trace::Event;

use crate::from_trace::stream::Survey;
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
    /// Calls that stand for others, by what was done.
    pub replaced: BTreeMap<&'static str, u64>,
    /// What could not be known, a line each.
    pub unknown: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub calls: u64,
    pub ns: u64,
}

impl Report {
    pub(crate) fn drops(&mut self, event: &Event, why: &'static str) {
        let dropped = self.dropped.entry((event.call.name(), why)).or_default();
        dropped.calls += 1;
        dropped.ns = dropped.ns.saturating_add(event.duration_ns);
    }

    pub(crate) fn replaces(&mut self, what: &'static str) {
        *self.replaced.entry(what).or_default() += 1;
    }

    pub(crate) fn add_survey(&mut self, survey: &Survey) {
        if survey.dropped > 0 {
            self.unknown.push(format!("{} calls are missing in the trace", survey.dropped));
        }
        self.unknown.extend(survey.unrecorded.iter().map(|why| format!("not recorded: {why}")));
    }

    /// A line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.warning.iter().cloned().collect();
        for ((name, why), dropped) in &self.dropped {
            lines.push(format!(
                "dropped: {name}: {why}: {} calls, {:.6} s, now compute",
                dropped.calls,
                dropped.ns as f64 / 1e9
            ));
        }
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
