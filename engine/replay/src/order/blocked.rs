//! Calls that may have waited in the kernel for another thread, which stands below them in the script. What they did counts
//! from when they ended; then no thread waits for what comes after itself.

use std::collections::HashMap;

use etude_script::{Action, Called, Step};

use super::edges::Edge;
use super::pipes::{BROKEN, RESET};
use super::{Order, Point};

/// EWOULDBLOCK.
pub const REFUSED: i64 = -11;
const LOCK_EXCLUSIVE: u64 = 2;
const LOCK_NOT_WAITING: u64 = 4;
const LOCK_RELEASED: u64 = 8;

/// What has not ended.
pub struct Blocked<'a> {
    pub here: Point,
    pub process: u32,
    /// None for the end of the process.
    pub called: Option<&'a Called>,
    pub end_ns: u64,
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

/// What `flock` was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Release,
    Take { exclusive: bool, waits: bool },
}

pub fn asked(called: &Called) -> Option<Asked> {
    let [_, what, ..] = called.arguments;
    (called.call.name() == "flock").then_some(match what & LOCK_RELEASED {
        0 => Asked::Take { exclusive: what & LOCK_EXCLUSIVE != 0, waits: what & LOCK_NOT_WAITING == 0 },
        _ => Asked::Release,
    })
}

impl Order {
    /// Notes what has ended by now, and what a thread's next step shows to have ended.
    pub(super) fn settle(&mut self, blocked: &mut Vec<Blocked>, thread: Option<u32>, turn_ns: u64) {
        loop {
            let busy =
                |process: u32| blocked.iter().any(|each| each.process == process && each.called.is_some());
            let ended = |each: &Blocked| {
                Some(each.here.thread) == thread
                    // Who has a lock next is known exactly: that thread's next step is above those of all who still wait.
                    || each.called.is_none_or(|called| asked(called).is_none())
                        && each.end_ns <= turn_ns
                        && self.possible(each)
                        && (each.called.is_some() || !busy(each.process))
            };
            let first = (0..blocked.len())
                .filter(|index| ended(&blocked[*index]))
                .min_by_key(|index| blocked[*index].end_ns);
            let Some(each) = first.map(|index| blocked.remove(index)) else { return };
            self.ended(&each);
        }
    }

    /// A lock that was refused is had by another: by the first that may have it by now.
    pub(super) fn settle_lock(&mut self, blocked: &mut Vec<Blocked>, process: u32, refused: &Called) {
        let lock = |order: &Order, process: u32, called: &Called| {
            let slot = order.slots.get(&(process, called.arguments[0] as i64));
            asked(called).and(slot).map(|slot| order.opened[slot.description].file)
        };
        let Some(file) = lock(self, process, refused).filter(|_| refused.result == REFUSED) else { return };
        let of_it =
            |each: &Blocked| each.called.and_then(|called| lock(self, each.process, called)) == Some(file);
        let first = (0..blocked.len())
            .filter(|index| of_it(&blocked[*index]) && self.possible(&blocked[*index]))
            .min_by_key(|index| blocked[*index].end_ns);
        if let Some(each) = first.map(|index| blocked.remove(index)) {
            self.ended(&each);
        }
    }

    /// The script is at its end.
    pub(super) fn settle_all(&mut self, mut blocked: Vec<Blocked>) {
        self.settle(&mut blocked, None, u64::MAX);
        blocked.sort_by_key(|each| (each.called.is_none(), each.end_ns));
        blocked.iter().for_each(|each| self.ended(each));
    }

    fn ended(&mut self, blocked: &Blocked) {
        match blocked.called {
            Some(called) => self.call(blocked.here, called),
            None => self.end(blocked.here, blocked.process),
        }
    }

    /// Whether a call may have waited for another thread.
    pub(super) fn may_wait(&self, process: u32, called: &Called) -> bool {
        match self.pipe_end(process, called) {
            Some((_, true)) => called.result == BROKEN,
            Some((_, false)) => called.result >= 0 || called.result == RESET,
            None => called.result >= 0 && matches!(asked(called), Some(Asked::Take { waits: true, .. })),
        }
    }

    /// Whether what it waited for has come.
    fn possible(&self, blocked: &Blocked) -> bool {
        let Some(called) = blocked.called else { return true };
        if let Some(Asked::Take { exclusive, .. }) = asked(called) {
            let slot = self.slots.get(&(blocked.process, called.arguments[0] as i64));
            return slot.is_none_or(|slot| {
                self.contents[self.opened[slot.description].file].locks.free(slot.description, exclusive)
            });
        }
        match self.pipe_end(blocked.process, called) {
            Some((pipe, true)) => pipe.readers == 0 || pipe.shut,
            Some((pipe, false)) => pipe.has(called.result.max(0) as u64),
            None => true,
        }
    }

    /// `flock`: who has a lock, and who has to wait for it.
    pub(super) fn flock(&mut self, here: Point, process: u32, called: &Called) {
        let Some(asked) = asked(called) else { return };
        let Some(slot) = self.slots.get(&(process, called.arguments[0] as i64)) else { return };
        let description = slot.description;
        let locks = &mut self.contents[self.opened[description].file].locks;
        let mut others = Vec::new();
        match asked {
            Asked::Take { exclusive, .. } if called.result == 0 => {
                locks.take(here, description, exclusive, &mut others);
            }
            Asked::Take { exclusive, .. } if called.result == REFUSED => {
                locks.refuse(here, description, exclusive, &mut others);
            }
            Asked::Take { .. } => {}
            Asked::Release => locks.release(here, description, &mut others),
        }
        others.into_iter().for_each(|other| self.wait(here, other, Edge::Locks));
    }
}
