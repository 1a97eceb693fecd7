//! Whose turn it is to wait for the next request (leader and followers), as data: who acts on it holds a lock around it.
//!
//! One thread leads: it waits for the next instant at which a request is due, and makes the call itself. A wake-up costs more
//! than a quick call, so it *keeps* the turn over a call that should be over before the next request is due, and only else hands
//! it to an idle thread first. Where a kept call overstays, whoever watches hands the turn on in its place; from then on
//! the turn is handed over before every call, until calls are quick again. So a stall makes one request late by at most
//! [`OVERSTAY_NS`] and the time between two looks, and the requests behind it by a wake-up.
//!
//! Invariants, checked by a random schedule below: a thread is the leader, idle or neither, never both; what is handed over
//! is handed to an idle thread, which has then to be woken; while something may come due, there is a leader, or every thread is
//! in a call.

use crate::files::quantile::Quantile;

/// A call that has kept the turn for so long is in the way of what is due.
pub(crate) const OVERSTAY_NS: u64 = 250_000;

/// A call that ends sooner never hands over: the wake-up would take as long.
pub(crate) const QUICK_NS: u64 = 40_000;

/// The oldest request that is due may be so late before a second thread is woken though calls are quick: one does not suffice.
const BEHIND_NS: u64 = 1_000_000;

/// So many quick calls in a row end the wariness that a stall brought.
const WARY: u32 = 64;

/// A thread, by its number.
pub(crate) type Thread = usize;

/// What is coming, as far as it is known before a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    pub now_ns: u64,
    /// When the next request is due; the past: it is late already.
    pub next_due_ns: u64,
}

pub(crate) struct Turn {
    leader: Option<Thread>,
    /// The leader is in a call, since then.
    kept_ns: Option<u64>,
    /// The last that came is woken first: its caches are warm.
    idle: Vec<Thread>,
    /// Quick calls that have to be seen before the turn is kept over one again.
    wary: u32,
    /// How long calls take, by kind: a high quantile.
    expected: Vec<Quantile>,
    /// What is due is never left to wait for a call.
    eager: bool,
}

impl Turn {
    /// Of requests of so many kinds, which are taken for quick until they are seen. `eager`: also the quickest call hands over
    /// what is due already.
    pub fn new(kinds: usize, eager: bool) -> Turn {
        let expected = vec![Quantile::new(QUICK_NS as f64); kinds];
        Turn { leader: None, kept_ns: None, idle: Vec::new(), wary: 0, expected, eager }
    }

    /// Nobody leads.
    pub fn is_vacant(&self) -> bool {
        self.leader.is_none()
    }

    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    pub fn leads(&self, thread: Thread) -> bool {
        self.leader == Some(thread)
    }

    /// A thread that is in no call would lead. True: it does, in place of a leader that is in a call, too.
    pub fn arrive(&mut self, thread: Thread) -> bool {
        if self.leader.is_none() || self.kept_ns.is_some() {
            (self.leader, self.kept_ns) = (Some(thread), None);
        }
        self.leads(thread)
    }

    /// A thread has nothing to do, and is idle until it is woken; if it led, nobody does.
    pub fn park(&mut self, thread: Thread) {
        if self.leads(thread) {
            (self.leader, self.kept_ns) = (None, None);
        }
        self.idle.push(thread);
    }

    /// An idle thread, which has to be woken: there is work besides what comes due.
    pub fn helper(&mut self) -> Option<Thread> {
        self.idle.pop()
    }

    /// Before a call: who leads instead and has to be woken.
    pub fn call(&mut self, thread: Thread, kind: usize, ahead: Ahead) -> Option<Thread> {
        if !self.leads(thread) {
            return None;
        }
        let found = if self.should_hand(kind, ahead) { self.idle.pop() } else { None };
        match found {
            Some(_) => self.leader = found,
            None => self.kept_ns = Some(ahead.now_ns),
        }
        found
    }

    fn should_hand(&self, kind: usize, ahead: Ahead) -> bool {
        let expected_ns = self.expected[kind].value() as u64;
        let behind = ahead.now_ns > ahead.next_due_ns.saturating_add(BEHIND_NS);
        let long = expected_ns > QUICK_NS && ahead.next_due_ns < ahead.now_ns + expected_ns;
        let clients_wait = self.eager && ahead.next_due_ns <= ahead.now_ns;
        self.wary > 0 || long || behind || clients_wait
    }

    /// After a call that took so long; true: the thread still leads.
    pub fn back(&mut self, thread: Thread, kind: usize, took_ns: u64) -> bool {
        self.expected[kind].see(took_ns as f64);
        self.wary = if took_ns <= QUICK_NS { self.wary.saturating_sub(1) } else { self.wary.min(1) * WARY };
        if self.leads(thread) {
            self.kept_ns = None;
        }
        self.leads(thread)
    }

    /// From time to time: who leads from now on and has to be woken, because nobody does, or the leader's call overstays
    /// while something is due.
    pub fn watch(&mut self, ahead: Ahead) -> Option<Thread> {
        let overstays = self.kept_ns.is_some_and(|since| since + OVERSTAY_NS <= ahead.now_ns);
        let wanted = ahead.next_due_ns <= ahead.now_ns;
        if self.leader.is_some() && !(overstays && wanted) {
            return None;
        }
        let found = self.idle.pop()?;
        if overstays {
            self.wary = WARY;
        }
        (self.leader, self.kept_ns) = (Some(found), None);
        Some(found)
    }
}

#[cfg(test)]
#[path = "leader_follower_tests.rs"]
mod tests;
