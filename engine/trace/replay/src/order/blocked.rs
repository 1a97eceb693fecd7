//! Calls that may have waited in the kernel for another thread, which stands below them in the script. What they did counts
//! from when they ended; then no thread waits for what comes after itself.

use std::collections::HashMap;

use etude_script::{Action, Called, Step};

use super::Order;
use super::locks::{Asked, Owner, REFUSED, What, is_about_locks};
use super::pipes::{BROKEN, RESET};
use super::waits::Point;

/// What has not ended.
pub struct Blocked<'a> {
    pub here: Point,
    pub process: u32,
    /// None for the end of the process.
    pub called: Option<&'a Called>,
    pub end_ns: u64,
    /// An end by which locks are given back: who has them next shows it.
    pub gives_back: bool,
}

/// When steps began and ended in the original: each thread as soon as it could.
#[derive(Default)]
pub struct Clocks {
    threads: HashMap<u32, u64>,
    /// The beginning of the last step: none begins before it.
    pub turn_ns: u64,
}

impl Clocks {
    /// When a step ended.
    pub fn end(&mut self, step: &Step) -> u64 {
        let begin = *self.threads.entry(step.thread).or_default();
        self.turn_ns = self.turn_ns.max(begin);
        let end = match &step.action {
            Action::Compute(ns) => begin.saturating_add(*ns),
            Action::Call(called) => begin.saturating_add(called.duration_ns.unwrap_or(0)),
            Action::Start(other) | Action::Fork(other) => *self.threads.entry(*other).or_insert(begin),
            Action::Wait(other) => self.threads.get(other).copied().unwrap_or(0).max(begin),
            Action::Exec => begin,
        };
        self.threads.insert(step.thread, end);
        end
    }
}

/// Whether a thread of a process may be within a call.
fn is_busy(blocked: &[Blocked], process: u32) -> bool {
    blocked.iter().any(|each| each.process == process && each.called.is_some())
}

impl Order {
    /// Notes what has ended by now, and what a thread's next step shows to have ended.
    pub(super) fn settle(&mut self, blocked: &mut Vec<Blocked>, thread: Option<u32>, turn_ns: u64) {
        loop {
            let ended = |each: &Blocked| {
                each.called.is_some() && Some(each.here.thread) == thread
                    // Who has a lock next is known exactly: that thread's next step is above those of all who still wait.
                    || each.called.is_none_or(|called| !is_about_locks(called))
                        && each.end_ns <= turn_ns
                        && self.possible(each)
                        && (each.called.is_some() || !each.gives_back && !is_busy(blocked, each.process))
            };
            let first = (0..blocked.len())
                .filter(|index| ended(&blocked[*index]))
                .min_by_key(|index| blocked[*index].end_ns);
            let Some(each) = first.map(|index| blocked.remove(index)) else { return };
            self.ended(blocked, &each);
        }
    }

    /// A lock that was had at once was given back before; one that was refused is had by another, by the first that may have
    /// it by now.
    pub(super) fn settle_lock(&mut self, blocked: &mut Vec<Blocked>, process: u32, called: &Called) {
        let own = self.asked(process, called).filter(|own| own.what == What::TakesOrFails);
        match (own, called.result) {
            (Some(own), 0) => self.settle_free(blocked, process, &own),
            (Some(own), REFUSED) => {
                let of_it = |each: &Blocked| {
                    let other = each.called.and_then(|called| self.asked(each.process, called));
                    other.is_some_and(|other| other.file == own.file && other.lock.bars(&own.lock))
                };
                let first = (0..blocked.len())
                    .filter(|index| of_it(&blocked[*index]) && self.possible(&blocked[*index]))
                    .min_by_key(|index| blocked[*index].end_ns);
                if let Some(each) = first.map(|index| blocked.remove(index)) {
                    self.ended(blocked, &each);
                }
            }
            _ => {}
        }
    }

    /// Processes that bar a lock, and make no more calls, have ended before it was had.
    fn settle_free(&mut self, blocked: &mut Vec<Blocked>, process: u32, asked: &Asked) {
        while let Some(owner) = self.contents[asked.file].locks.barring(&asked.lock) {
            let has = |each: &Blocked| match owner {
                Owner::Process(process) => each.process == process,
                Owner::Flock(description) | Owner::Description(description) => {
                    self.slots_of(each.process).any(|slot| slot.description == description)
                }
            };
            let ended = |each: &Blocked| {
                each.called.is_none()
                    && each.process != process
                    && !is_busy(blocked, each.process)
                    && has(each)
            };
            let first = (0..blocked.len())
                .filter(|index| ended(&blocked[*index]))
                .min_by_key(|index| blocked[*index].end_ns);
            let Some(each) = first.map(|index| blocked.remove(index)) else { return };
            self.ended(blocked, &each);
        }
    }

    /// A process has ended, since another waited for that.
    pub(super) fn settle_end(&mut self, blocked: &mut Vec<Blocked>, process: u32) {
        let of_it = |each: &Blocked| each.process == process && each.gives_back;
        if let Some(index) = blocked.iter().position(of_it).filter(|_| !is_busy(blocked, process)) {
            let each = blocked.remove(index);
            self.ended(blocked, &each);
        }
    }

    /// The script is at its end.
    pub(super) fn settle_all(&mut self, mut blocked: Vec<Blocked>) {
        self.settle(&mut blocked, None, u64::MAX);
        blocked.sort_by_key(|each| (each.called.is_none(), each.end_ns));
        while !blocked.is_empty() {
            let each = blocked.remove(0);
            self.ended(&mut blocked, &each);
        }
    }

    fn ended(&mut self, blocked: &mut Vec<Blocked>, each: &Blocked) {
        let Some(called) = each.called else { return self.end(each.here, each.process) };
        if let Some(asked) = self.asked(each.process, called) {
            self.settle_free(blocked, each.process, &asked);
        }
        self.call(each.here, called);
    }

    /// Whether a call may have waited for another thread.
    pub(super) fn may_wait(&self, process: u32, called: &Called) -> bool {
        match self.pipe_end(process, called) {
            Some((_, true)) => called.result == BROKEN,
            Some((_, false)) => called.result >= 0 || called.result == RESET,
            None => {
                is_about_locks(called)
                    && called.result >= 0
                    && self.asked(process, called).is_some_and(|asked| asked.what == What::Waits)
            }
        }
    }

    /// Whether what it waited for has come.
    fn possible(&self, blocked: &Blocked) -> bool {
        let Some(called) = blocked.called else { return true };
        if let Some(asked) = self.asked(blocked.process, called) {
            return self.contents[asked.file].locks.barring(&asked.lock).is_none();
        }
        match self.pipe_end(blocked.process, called) {
            Some((pipe, true)) => pipe.readers == 0 || pipe.shut,
            Some((pipe, false)) => pipe.has(called.result.max(0) as u64),
            None => true,
        }
    }
}
