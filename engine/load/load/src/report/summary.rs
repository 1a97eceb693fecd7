//! The whole of a run: what was asked, what became of it, and whether the generator was its limit.

use etude_clock::seconds;
use serde::Serialize;

use crate::report::tally::{Failures, Tally};
use crate::run::distribution::Process;
use crate::run::plan::{Load, Plan, Wait};

/// A generator that works for so much of the time has none left (of one CPU).
const BUSY: f64 = 0.8;
/// Lateness of sends that is so much of the median response is a part of the figures …
const SHARE: f64 = 0.1;
/// … and with so much, and so long, they are figures of the generator, whoever takes its CPU.
const MOST_SHARE: f64 = 0.5;
const MOST_LATE_S: f64 = 0.01;

/// What is loaded.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct About {
    /// `http`, `nfs`, `files` or `roll`.
    pub target: &'static str,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Where the files are that were made for it and stay, for the next run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_set: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roll: Option<RollAbout>,
}

/// A recorded program at another rate than its own.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct RollAbout {
    /// Calls per second, as recorded.
    pub natural_rate: f64,
    /// The rate that is offered, in natural rates.
    pub multiple: f64,
    /// How long the original's calls take on its schedule.
    pub run_s: f64,
    /// Of one pass.
    pub calls: u64,
    pub passes: u64,
    /// Directories in which it was played, and how long making them took.
    pub places: u64,
    pub prepared_s: f64,
    /// Files of each place: bytes of its own, and those that all places have in common.
    pub own_bytes: u64,
    pub shared_files: u64,
    pub shared_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Calls that could not be made: they count nowhere else.
    pub not_played: u64,
}

/// The part of a roll that `--only` has left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    /// Calls of one pass.
    pub calls: u64,
    pub files: u64,
    pub bytes: u64,
}

/// Counts are sums over windows and what was drained; times are in seconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    /// `whole` or `early`.
    pub ended: &'static str,
    #[serde(flatten)]
    pub about: About,
    /// Requests per second; null in a closed loop.
    pub asked_rate: Option<f64>,
    /// In a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_clients: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    pub arrivals: &'static str,
    pub wait: &'static str,
    pub duration_s: f64,
    pub offered: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    /// Without an answer when draining ended.
    pub abandoned: u64,
    pub failures: Failures,
    /// Of one CPU, all threads.
    pub cpu: f64,
    /// Of one CPU, what the thread that sends and listens wanted, without looks that found nothing.
    pub busy: f64,
    /// CPU time of the windows over the requests that were sent in them.
    pub cpu_per_request_s: Option<f64>,
    pub generator_limited: bool,
    pub drained_s: f64,
    /// At the end of some window something was due and not sent.
    #[serde(skip)]
    pub waited: bool,
    /// Whoever makes the requests knows that it was the limit itself.
    #[serde(skip)]
    pub own_limit: bool,
    /// `busy` at which the generator counts as saturated.
    #[serde(skip)]
    pub saturated_busy: f64,
}

impl Summary {
    pub fn new(plan: &Plan, about: About) -> Summary {
        let (asked_rate, asked_clients, think_s, arrivals) = match plan.load {
            Load::Open { rate, process: Process::Poisson } => (Some(rate), None, None, "poisson"),
            Load::Open { rate, process: Process::Constant } => (Some(rate), None, None, "constant"),
            Load::Closed { clients, think_ns, .. } => {
                (None, Some(clients), Some(seconds(think_ns)), "closed")
            }
        };
        let wait = match plan.wait {
            Wait::Sleep => "sleep",
            Wait::Hybrid => "hybrid",
            Wait::Spin => "spin",
        };
        Summary {
            ended: "whole",
            about,
            asked_rate,
            asked_clients,
            think_s,
            arrivals,
            wait,
            duration_s: 0.0,
            offered: 0,
            started: 0,
            completed: 0,
            failed: 0,
            abandoned: 0,
            failures: Failures::default(),
            cpu: 0.0,
            busy: 0.0,
            cpu_per_request_s: None,
            generator_limited: false,
            drained_s: 0.0,
            waited: false,
            own_limit: false,
            saturated_busy: BUSY,
        }
    }

    pub fn add(&mut self, tally: &Tally) {
        self.offered += tally.offered;
        self.started += tally.started;
        self.completed += tally.completed;
        self.failed += tally.failed;
        self.failures.add(&tally.failures);
    }

    /// Judges the generator by all windows, `whole`, to which it adds what was drained; the 99th percentile of lateness.
    pub fn judge(&mut self, whole: &mut Tally, drained: Option<&Tally>) -> Option<f64> {
        let lateness_p99_s = whole.lateness_p99_s();
        drained.inspect(|drained| whole.add(drained));
        self.generator_limited = self.limited(lateness_p99_s, whole.median_s());
        lateness_p99_s
    }

    /// The share of its capacity that the generator has left: 0 where it is saturated.
    pub fn headroom(&self) -> f64 {
        (1.0 - self.busy / self.saturated_busy).max(0.0)
    }

    /// Whether the figures are those of the generator: by how late 99 % of sends were at most, and the median response.
    ///
    /// It has no time left and is late, or lets wait what it may send; or it is so late that this is most of a response.
    pub fn limited(&self, late_s: Option<f64>, median_s: Option<f64>) -> bool {
        let (late_s, median_s) = (late_s.unwrap_or(0.0), median_s.unwrap_or(0.0));
        let out_of_time = self.busy >= BUSY && (self.waited || late_s > SHARE * median_s);
        self.own_limit || out_of_time || (late_s > MOST_LATE_S && late_s > MOST_SHARE * median_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_is_the_limit_where_it_has_no_time_left_or_is_most_of_the_response() {
        let plan = Plan::of_tests();
        let about = About { target: "http", workload: None, file_set: None, roll: None };
        let limited = |busy, waited, late_s, median_s| {
            let summary = Summary { busy, waited, ..Summary::new(&plan, about.clone()) };
            summary.limited(Some(late_s), Some(median_s))
        };
        assert!(limited(0.9, false, 0.002, 0.005), "busy and late");
        assert!(limited(0.9, true, 0.0, 0.005), "busy, and more waits than it can send");
        assert!(limited(0.3, false, 0.020, 0.025), "others take its CPU");
        assert!(!limited(0.9, false, 0.0004, 0.005), "busy and in time");
        assert!(!limited(0.3, true, 0.002, 0.005), "the server lets it wait");
        assert!(!limited(0.3, false, 0.000_06, 0.000_07), "a wake-up is long beside a quick answer");
        assert!(!limited(0.3, false, 0.020, 0.200));
        assert!(Summary::new(&plan, about).limited(Some(1.0), None), "late, and nothing was answered");
    }
}
