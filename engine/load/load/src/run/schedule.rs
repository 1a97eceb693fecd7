//! When the next request is due: by a process that knows nothing of answers, or by clients that wait for theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};

use crate::run::distribution::Arrivals;
use crate::run::plan::Load;

/// Instants are of CLOCK_MONOTONIC, ns.
pub(crate) enum Schedule {
    Open {
        instants: Box<dyn Iterator<Item = u64> + Send>,
        next_ns: Option<u64>,
    },
    /// The instants at which those clients send that think now.
    Closed {
        due: BinaryHeap<Reverse<u64>>,
        think: Think,
    },
}

/// How long a client thinks.
pub(crate) struct Think {
    mean_ns: u64,
    exponential: bool,
    random: Xoshiro256PlusPlus,
}

impl Think {
    fn draw(&mut self) -> u64 {
        if !self.exponential || self.mean_ns == 0 {
            return self.mean_ns;
        }
        let unit: f64 = Exp1.sample(&mut self.random);
        (unit * self.mean_ns as f64).round() as u64
    }
}

impl Schedule {
    pub fn new(load: Load, seed: u64, start_ns: u64) -> Schedule {
        match load {
            Load::Open { rate, process } => Schedule::at(Arrivals::new(process, rate, seed), start_ns),
            Load::Closed { clients, think_ns, exponential } => {
                let random = Xoshiro256PlusPlus::seed_from_u64(seed);
                let mut think = Think { mean_ns: think_ns, exponential, random };
                // Each begins by thinking; those that all think equally long are spread, as they would go in step for ever.
                let first = |client: usize| match exponential {
                    true => think.draw(),
                    false => (think_ns as f64 * client as f64 / clients as f64) as u64,
                };
                let due = (0..clients).map(first).map(|at| Reverse(start_ns + at)).collect();
                Schedule::Closed { due, think }
            }
        }
    }

    /// By instants from the beginning that never go back.
    pub fn at(instants: impl Iterator<Item = u64> + Send + 'static, start_ns: u64) -> Schedule {
        let mut instants = Box::new(instants.map(move |at| start_ns.saturating_add(at)));
        let next_ns = instants.next();
        Schedule::Open { instants, next_ns }
    }

    /// When the next one is due; `u64::MAX`: not before an answer comes, or never.
    pub fn next_ns(&self) -> u64 {
        match self {
            Schedule::Open { next_ns, .. } => next_ns.unwrap_or(u64::MAX),
            Schedule::Closed { due, .. } => due.peek().map_or(u64::MAX, |Reverse(at)| *at),
        }
    }

    /// The next one is being sent.
    pub fn advance(&mut self) {
        match self {
            Schedule::Open { instants, next_ns } => *next_ns = instants.next(),
            Schedule::Closed { due, .. } => drop(due.pop()),
        }
    }

    /// A request is over, well or not: its client thinks, and sends again.
    pub fn ended(&mut self, at_ns: u64) {
        if let Schedule::Closed { due, think } = self {
            due.push(Reverse(at_ns + think.draw()));
        }
    }

    /// Nothing more will ever be due.
    pub fn over(&self) -> bool {
        matches!(self, Schedule::Open { next_ns: None, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(schedule: &mut Schedule, count: usize) -> Vec<u64> {
        let next = || {
            let at = schedule.next_ns();
            schedule.advance();
            at
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn a_client_sends_again_when_it_has_thought_after_its_answer() {
        let load = Load::Closed { clients: 2, think_ns: 100, exponential: false };
        let mut schedule = Schedule::new(load, 0, 1000);
        assert_eq!(taken(&mut schedule, 3), [1000, 1050, u64::MAX]);
        schedule.ended(2000);
        schedule.ended(1900);
        assert_eq!(taken(&mut schedule, 3), [2000, 2100, u64::MAX]);
        assert!(!schedule.over());
    }

    #[test]
    fn thinking_has_the_mean_that_was_asked_for() {
        let load = Load::Closed { clients: 1, think_ns: 1_000_000, exponential: true };
        let mut schedule = Schedule::new(load, 5, 0);
        schedule.advance();
        let mut now = 0;
        for _ in 0..100_000 {
            schedule.ended(now);
            now = schedule.next_ns();
            schedule.advance();
        }
        assert!((now as f64 / 1e11 - 1.0).abs() < 0.015, "{now}");
    }

    #[test]
    fn instants_that_were_given_end() {
        let mut schedule = Schedule::at([1, 1, 7].into_iter(), 10);
        assert_eq!(taken(&mut schedule, 3), [11, 11, 17]);
        assert!(schedule.over() && schedule.next_ns() == u64::MAX);
    }
}
