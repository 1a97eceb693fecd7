//! What has come of passes, as the tallies and the summary that all targets have.

use std::collections::BTreeMap;

use etude_replay::{Played, Sums};

use super::scored_roll::Piece;
use crate::report::summary::{About, Summary};
use crate::report::tally::Tally;
use crate::run::distribution::Process;
use crate::run::plan::{Load, Plan, Wait};
use crate::run::target::Failure;

/// Largest share of the calls' time that may be waiting for the player: more is the player's fault.
const HALF: f64 = 0.5;

/// The summary of a run of that roll, before it.
pub(super) fn summary(piece: &Piece, plan: &Plan) -> Summary {
    let rate = piece.natural_rate * piece.multiple;
    // A thread of a replay sleeps until shortly before, and spins from there on.
    let plan =
        Plan { load: Load::Open { rate, process: Process::Constant }, wait: Wait::Hybrid, ..plan.clone() };
    let about = About { target: "roll", workload: Some(piece.name.clone()), file_set: None, roll: None };
    Summary { arrivals: "recorded", saturated_busy: HALF, ..Summary::new(&plan, about) }
}

/// The counts that have been reported, since the first window's beginning.
pub(super) struct Told<'a> {
    kinds: &'a [&'static str],
    played: Played,
    offered: u64,
}

impl<'a> Told<'a> {
    pub fn new(kinds: &'a [&'static str]) -> Told<'a> {
        Told { kinds, played: Played::default(), offered: 0 }
    }

    /// The counts after the last window, if anything could come.
    pub fn end(&mut self, played: Played, offered: u64, summary: &mut Summary) -> Option<Box<Tally>> {
        summary.busy = played.late_ns as f64 / (played.late_ns + played.spent_ns).max(1) as f64;
        // What is due is made at once where the one before has ended: the rest is what calls take.
        summary.own_limit = summary.waited && summary.busy > HALF;
        let owed = offered > self.played.ended();
        let tally = Box::new(self.newly(played, offered));
        owed.then_some(tally)
    }

    /// The counts that have not been reported yet.
    pub fn newly(&mut self, played: Played, offered: u64) -> Tally {
        let (none, before) = (Sums::default(), &self.played);
        let mut tally = Tally::new(self.kinds.len());
        // Calls that could not be made were offered before that was known.
        tally.offered = offered.saturating_sub(self.offered);
        tally.started = played.begun.saturating_sub(before.begun);
        for (ns, count) in played.lateness.since(&before.lateness) {
            tally.late_many(ns, count);
        }
        for (kind, name) in self.kinds.iter().enumerate() {
            let Some(now) = played.by.get(name) else { continue };
            let then = before.by.get(name);
            let times = now.responses.since(then.map_or(&none, |then| &then.responses));
            tally.answered_many(kind, times, now.ns - then.map_or(0, |then| then.ns));
            tally.kinds[kind].failed += now.failed - then.map_or(0, |then| then.failed);
        }
        for (name, count) in failures(&played.errors, &before.errors) {
            (0..count).for_each(|_| tally.failed(None, &Failure::Status(name)));
        }
        self.offered = self.offered.max(offered);
        self.played = played;
        tally
    }
}

/// New ones, by name: that of the error, or `mismatch` for a call that did not fail, but had another result.
fn failures(now: &BTreeMap<u16, u64>, then: &BTreeMap<u16, u64>) -> Vec<(&'static str, u64)> {
    let name = |number: u16| etude_calls::errors::name(number).unwrap_or("mismatch");
    let newly = now.iter().map(|(number, count)| (name(*number), count - then.get(number).unwrap_or(&0)));
    newly.filter(|(_, count)| *count > 0).collect()
}
