//! What happened in a window: counts, and how long answers took.

use std::collections::BTreeMap;

use etude_clock::seconds;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::run::target::Failure;

/// Of response times.
const DIGITS: u8 = 3;
/// Longer ones count as this, an hour.
const HIGHEST_NS: u64 = 3600 * etude_clock::SECOND;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Failures {
    pub connect: u64,
    pub closed: u64,
    /// Answers that say that they failed.
    pub status: u64,
    pub malformed: u64,
    pub timeout: u64,
    /// Those of `status`, by what they say.
    pub errors: BTreeMap<&'static str, u64>,
}

impl Failures {
    fn count(&mut self, why: &Failure) {
        *match why {
            Failure::Connect => &mut self.connect,
            Failure::Closed => &mut self.closed,
            Failure::Status(name) => {
                *self.errors.entry(name).or_default() += 1;
                &mut self.status
            }
            Failure::Malformed => &mut self.malformed,
            Failure::Timeout => &mut self.timeout,
        } += 1;
    }

    pub fn add(&mut self, other: &Failures) {
        self.connect += other.connect;
        self.closed += other.closed;
        self.status += other.status;
        self.malformed += other.malformed;
        self.timeout += other.timeout;
        for (name, count) in &other.errors {
            *self.errors.entry(name).or_default() += count;
        }
    }
}

/// Of one window.
pub(crate) struct Tally {
    pub offered: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub failures: Failures,
    pub kinds: Vec<Kind>,
    lateness: Histogram<u64>,
}

/// Of the requests of one kind.
#[derive(Clone, Default)]
pub(crate) struct Kind {
    pub completed: u64,
    pub failed: u64,
    latency_s: f64,
    /// From the first answer on: most windows of most kinds would be a large table of nothing.
    pub latency: Option<Histogram<u64>>,
}

impl Kind {
    fn add(&mut self, other: &Kind) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.latency_s += other.latency_s;
        match (&mut self.latency, &other.latency) {
            (Some(own), Some(more)) => own.add(more).expect("of the same bounds"),
            (None, Some(more)) => self.latency = Some(more.clone()),
            (_, None) => {}
        }
    }

    pub fn mean_s(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.latency_s / self.completed as f64)
    }
}

impl Tally {
    /// Of a target with so many kinds of request.
    pub fn new(kinds: usize) -> Tally {
        Tally {
            offered: 0,
            started: 0,
            completed: 0,
            failed: 0,
            failures: Failures::default(),
            kinds: vec![Kind::default(); kinds],
            lateness: empty(2),
        }
    }

    pub fn answered(&mut self, kind: usize, ns: u64) {
        self.completed += 1;
        let kind = &mut self.kinds[kind];
        kind.completed += 1;
        kind.latency.get_or_insert_with(|| empty(DIGITS)).saturating_record(ns);
        kind.latency_s += seconds(ns);
    }

    /// `kind`: None where nobody can say what the request would have been.
    pub fn failed(&mut self, kind: Option<usize>, why: &Failure) {
        self.failed += 1;
        self.failures.count(why);
        if let Some(kind) = kind {
            self.kinds[kind].failed += 1;
        }
    }

    /// A request that could go at its time went so much later.
    pub fn late(&mut self, ns: u64) {
        self.late_many(ns, 1);
    }

    pub fn late_many(&mut self, ns: u64, count: u64) {
        self.lateness.saturating_record_n(ns, count);
    }

    /// Counts that others have made: times with how many there were, and their exact sum; ns.
    pub fn answered_many(&mut self, kind: usize, times: impl Iterator<Item = (u64, u64)>, sum_ns: u64) {
        let kind = &mut self.kinds[kind];
        kind.latency_s += seconds(sum_ns);
        for (ns, count) in times {
            self.completed += count;
            kind.completed += count;
            kind.latency.get_or_insert_with(|| empty(DIGITS)).saturating_record_n(ns, count);
        }
    }

    pub fn add(&mut self, other: &Tally) {
        self.offered += other.offered;
        self.started += other.started;
        self.completed += other.completed;
        self.failed += other.failed;
        self.failures.add(&other.failures);
        self.kinds.iter_mut().zip(&other.kinds).for_each(|(own, more)| own.add(more));
        self.lateness.add(&other.lateness).expect("of the same bounds");
    }

    /// How many took longer.
    #[cfg(test)]
    pub fn slower_than(&self, ns: u64) -> u64 {
        let all = self.all();
        all.latency.map_or(0, |latency| latency.len() - latency.count_between(0, ns))
    }

    /// All kinds together.
    pub fn all(&self) -> Kind {
        let mut all = Kind::default();
        self.kinds.iter().for_each(|kind| all.add(kind));
        all
    }

    pub fn lateness_p99_s(&self) -> Option<f64> {
        (!self.lateness.is_empty()).then(|| seconds(self.lateness.value_at_quantile(0.99)))
    }

    /// A quantile of all response times; None where so few came that it would be the slowest of them.
    pub fn quantile_s(&self, quantile: f64) -> Option<f64> {
        let latency = self.all().latency?;
        let known = latency.len() as f64 * (1.0 - quantile) >= 0.999;
        known.then(|| seconds(latency.value_at_quantile(quantile)))
    }

    pub fn slowest_s(&self) -> Option<f64> {
        self.all().latency.map(|latency| seconds(latency.max()))
    }

    pub fn median_s(&self) -> Option<f64> {
        self.all().latency.map(|latency| seconds(latency.value_at_quantile(0.5)))
    }
}

fn empty(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, digits).expect("good bounds")
}
