//! What has come of passes, as the tallies and the summary that all targets have.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use etude_clock::seconds;
use etude_replay::{Played, Sums};

use super::scored_roll::Piece;
use crate::report::summary::{About, RollAbout, Summary};
use crate::report::tally::Tally;
use crate::report::{Line, Own};
use crate::run::distribution::Process;
use crate::run::plan::{Load, Plan, Wait};
use crate::run::target::Failure;

/// Sends lines of what is new.
pub(super) struct Telling<'a> {
    lines: &'a Sender<Line>,
    kinds: Vec<&'static str>,
    multiple: f64,
    summary: Summary,
    /// What has been told.
    told: Played,
    offered: u64,
}

/// What is known at the end.
pub(super) struct Whole {
    pub ended: &'static str,
    pub duration_ns: u64,
    /// CPU time of the generator, as a share of one CPU.
    pub cpu: f64,
    pub cpu_ns: u64,
    pub drained_ns: u64,
}

impl<'a> Telling<'a> {
    pub fn new(piece: &Piece, plan: &Plan, lines: &'a Sender<Line>) -> Telling<'a> {
        let rate = piece.natural_rate * piece.multiple;
        // A thread of a replay sleeps until shortly before, and spins from there on.
        let plan = Plan {
            load: Load::Open { rate, process: Process::Constant },
            wait: Wait::Hybrid,
            ..plan.clone()
        };
        let about = About { target: "roll", workload: Some(piece.name.clone()), file_set: None, roll: None };
        let summary = Summary { arrivals: "recorded", ..Summary::new(&plan, about) };
        Telling {
            lines,
            kinds: piece.score.names.clone(),
            multiple: piece.multiple,
            summary,
            told: Played::default(),
            offered: 0,
        }
    }

    /// Tells of a window: `played` and `offered` are counts since the first one's beginning. False: nobody listens.
    pub fn window(&mut self, played: Played, offered: u64, duration_ns: u64, cpu_ns: u64) -> bool {
        let own = Own {
            cpu: cpu_ns as f64 / duration_ns.max(1) as f64,
            outstanding: played.begun.saturating_sub(played.ended()) as usize,
            waiting: offered.saturating_sub(played.begun) as usize,
            waited_s: None,
            multiple: Some(self.multiple),
        };
        self.summary.waited |= own.waiting > 0;
        let tally = Box::new(self.newly(played, offered));
        self.lines.send(Line::Window { duration_s: seconds(duration_ns), tally, own }).is_ok()
    }

    /// Tells of the whole.
    pub fn end(mut self, played: Played, offered: u64, about: RollAbout, whole: Whole) {
        let own_share = played.late_ns as f64 / (played.late_ns + played.spent_ns).max(1) as f64;
        let owed = offered.saturating_sub(self.told.ended()) > 0;
        let tally = self.newly(played, offered);
        let mut summary = Summary {
            ended: whole.ended,
            duration_s: seconds(whole.duration_ns),
            cpu: whole.cpu,
            busy: own_share,
            saturated_busy: HALF,
            drained_s: seconds(whole.drained_ns),
            ..self.summary
        };
        summary.about.roll = Some(about);
        // What is due is made at once where the one before has ended: the rest is what calls take.
        summary.own_limit = summary.waited && own_share > HALF;
        summary.abandoned = summary.offered.saturating_sub(summary.completed + summary.failed);
        summary.cpu_per_request_s =
            (summary.started > 0).then(|| seconds(whole.cpu_ns) / summary.started as f64);
        let drained = owed.then(|| (seconds(whole.drained_ns), Box::new(tally)));
        let _ = self.lines.send(Line::Summary { summary: Box::new(summary), drained });
    }

    /// What has not been told yet; sums go into the summary.
    fn newly(&mut self, played: Played, offered: u64) -> Tally {
        let (none, before) = (Sums::default(), &self.told);
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
        self.summary.add(&tally);
        self.offered = self.offered.max(offered);
        self.told = played;
        tally
    }
}

/// Of the time that calls wait for the player and take: more is the player's fault.
const HALF: f64 = 0.5;

/// New ones, by name: that of the error, or `mismatch` for a call that did not fail, but had another result.
fn failures(now: &BTreeMap<u16, u64>, then: &BTreeMap<u16, u64>) -> Vec<(&'static str, u64)> {
    let name = |number: u16| etude_calls::errors::name(number).unwrap_or("mismatch");
    let newly = now.iter().map(|(number, count)| (name(*number), count - then.get(number).unwrap_or(&0)));
    newly.filter(|(_, count)| *count > 0).collect()
}
