//! Waiting for workers: their ends, their output, their time limit, and the wish to stop.

use std::os::fd::RawFd;

use crate::barrier::{common_start_ns, told_lead_ns};
use crate::capture::CHUNK_BYTES;
use crate::child::Report;
use crate::files::Streams;
use crate::inside_barrier::Inside;
use crate::kept_processes::Kept;
use crate::live_worker::Live;
use crate::prepare::Options;
use crate::{clock, sys, tree};

/// How often killed processes that are still there are killed again, ns.
const AGAIN_NS: u64 = clock::SECOND / 2;

/// What is polled: the control's two, the bell of the workers' own barrier, their ends, their streams.
const BELL: usize = 2;
const FIRST_LIFE: usize = BELL + 1;

/// Who may want a launch to stop.
pub trait Control {
    /// Descriptors that become readable when there is news; -1 for none.
    fn fds(&self) -> [RawFd; 2];
    /// Takes the news.
    fn look(&mut self);
    /// Whether the launch under way shall end.
    fn cancelled(&self) -> bool;
    /// Is told that so many workers stand at a barrier that is released from outside.
    fn ready(&mut self, _workers: usize) {}
    /// Takes the instant at which they shall start (monotonic, ns), once it is known.
    fn take_release(&mut self) -> Option<u64> {
        None
    }
}

/// Nobody wants a launch to stop.
pub struct Patient;

impl Control for Patient {
    fn fds(&self) -> [RawFd; 2] {
        [-1, -1]
    }

    fn look(&mut self) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// How far the ending of a launch has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// SIGTERM was sent; SIGKILL follows then.
    Asked(u64),
    /// SIGKILL was sent; it is sent again then.
    Forced(u64),
}

/// Why a launch is ended by us.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    TimedOut,
    Cancelled,
}

/// The watch over one trial.
pub(crate) struct Watch<'a> {
    control: &'a mut dyn Control,
    kept: &'a mut Kept,
    buffer: &'a mut [u8],
    deadline_ns: Option<u64>,
    grace_ns: u64,
    phase: Phase,
    inside: Option<&'a Inside>,
    /// When the workers' own barrier is opened, and the instant at which they then start.
    release: Option<(u64, u64)>,
    late_ns: Option<u64>,
    polled: Vec<libc::pollfd>,
}

impl<'a> Watch<'a> {
    /// `buffer` holds [`CHUNK_BYTES`].
    pub fn new(
        control: &'a mut dyn Control,
        kept: &'a mut Kept,
        buffer: &'a mut [u8],
        options: &Options,
        inside: Option<&'a Inside>,
    ) -> Self {
        debug_assert!(buffer.len() == CHUNK_BYTES);
        let (grace_ns, phase) = (options.grace_ns, Phase::Running);
        Watch {
            control,
            kept,
            buffer,
            deadline_ns: None,
            grace_ns,
            phase,
            inside,
            release: None,
            late_ns: None,
            polled: Vec::new(),
        }
    }

    /// Sets the end of the workers' time, ns on the monotonic clock.
    pub fn limit(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    /// Whether the launch shall end, or is being ended.
    pub fn is_ending(&self) -> bool {
        self.phase != Phase::Running || self.control.cancelled()
    }

    /// Descriptors that become readable when somebody may want the launch to stop.
    pub fn news_fds(&self) -> [RawFd; 2] {
        self.control.fds()
    }

    /// Takes that news.
    pub fn look(&mut self) {
        self.control.look();
    }

    /// Says that so many workers stand at a barrier that is released from outside.
    pub fn say_ready(&mut self, workers: usize) {
        self.control.ready(workers);
    }

    /// The instant at which they shall start, once it is known.
    pub fn take_release(&mut self) -> Option<u64> {
        self.control.take_release()
    }

    /// By how much an instant at which the workers' own barrier was to open had passed, if one had.
    pub fn late_ns(&self) -> Option<u64> {
        self.late_ns
    }

    /// Waits until all of `lives` have ended and are reaped.
    pub fn wait(&mut self, lives: &mut [Live], streams: &mut [&mut Streams], reports: &[&Report]) {
        if self.control.cancelled() {
            self.ask(lives, Why::Cancelled, clock::monotonic_ns());
        }
        while lives.iter().any(|live| !live.has_ended()) {
            self.list(lives, streams);
            let timeout = self.next_ns().map(|next| next.saturating_sub(clock::monotonic_ns()));
            // Nothing can be done about a poll that fails but to look at everything once more.
            let _ = sys::poll(&mut self.polled, timeout);
            let now = clock::monotonic_ns();
            self.hear(lives, now);
            for index in 0..lives.len() {
                if self.polled[FIRST_LIFE + index].revents != 0 {
                    lives[index].reap(now);
                    if reports[index].failure().is_some() {
                        self.ask(lives, Why::Cancelled, now);
                    }
                    self.break_up(Some(index));
                }
            }
            self.drain(lives.len(), streams);
            if self.polled[0].revents != 0 || self.polled[1].revents != 0 {
                self.control.look();
            }
            self.release(lives);
            self.advance(lives, now);
        }
    }

    /// Until when what lives on after the workers has time to end by itself: only after SIGTERM, and only that long.
    pub fn grace_until_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Running => None,
            Phase::Asked(kill_at) => Some(kill_at),
            Phase::Forced(_) => Some(0),
        }
    }

    fn list(&mut self, lives: &[Live], streams: &[&mut Streams]) {
        self.polled.clear();
        self.polled.extend(self.control.fds().map(sys::wanted));
        self.polled.push(sys::wanted(self.inside.map_or(-1, Inside::bell)));
        self.polled.extend(lives.iter().map(|live| sys::wanted(live.fd())));
        let captures = streams.iter().flat_map(|streams| streams.captures.iter().flatten());
        let captures = captures.chain(&self.kept.captures);
        self.polled.extend(captures.map(|capture| sys::wanted(capture.read_end())));
    }

    /// Ends the launch if somebody was sent away from the workers' own barrier. To be called before anybody
    /// is reaped: those who were sent away tell first and end then, so that they are found alive.
    fn hear(&mut self, lives: &mut [Live], now: u64) {
        let Some(inside) = self.inside else {
            return;
        };
        if self.polled[BELL].revents != 0 {
            inside.hush();
        }
        if inside.has_sent_away() {
            self.ask(lives, Why::Cancelled, now);
        } else if inside.is_newly_full() {
            self.control.ready(lives.len());
        }
    }

    /// Opens the workers' own barrier shortly before the instant that was told for it.
    fn release(&mut self, lives: &mut [Live]) {
        let Some(inside) = self.inside.filter(|_| self.phase == Phase::Running) else {
            return;
        };
        let now = clock::monotonic_ns();
        if self.release.is_none() {
            let Some(start) = self.control.take_release() else {
                return;
            };
            if let Some(late_ns) = now.checked_sub(start) {
                self.late_ns = Some(late_ns);
                self.ask(lives, Why::Cancelled, now);
                return;
            }
            self.release = Some((start.saturating_sub(told_lead_ns(lives.len())), start));
        }
        if let Some((_, start)) = self.release.take_if(|(open, _)| now >= *open) {
            inside.release(if now < start { start } else { common_start_ns(lives.len()) });
        }
    }

    /// Breaks the workers' own barrier, if there is one.
    fn break_up(&self, ended: Option<usize>) {
        if let Some(inside) = self.inside {
            inside.break_up(ended);
        }
    }

    fn drain(&mut self, workers: usize, streams: &mut [&mut Streams]) {
        let captures = streams.iter_mut().flat_map(|streams| streams.captures.iter_mut().flatten());
        for (capture, polled) in
            captures.chain(&mut self.kept.captures).zip(&self.polled[FIRST_LIFE + workers..])
        {
            if polled.revents != 0 {
                capture.drain(self.buffer);
            }
        }
    }

    fn next_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Running => {
                [self.deadline_ns, self.release.map(|(open, _)| open)].into_iter().flatten().min()
            }
            Phase::Asked(at) | Phase::Forced(at) => Some(at),
        }
    }

    fn advance(&mut self, lives: &mut [Live], now: u64) {
        match self.phase {
            Phase::Running if self.control.cancelled() => self.ask(lives, Why::Cancelled, now),
            Phase::Running if self.deadline_ns.is_some_and(|deadline| now >= deadline) => {
                self.ask(lives, Why::TimedOut, now);
            }
            Phase::Asked(at) | Phase::Forced(at) if now >= at => {
                self.phase = Phase::Forced(now + AGAIN_NS);
                tree::signal(libc::SIGKILL, &leaders(lives), self.kept);
            }
            _ => {}
        }
    }

    /// Begins the end: SIGTERM to the whole tree. Those that live are marked with the reason.
    fn ask(&mut self, lives: &mut [Live], why: Why, now: u64) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Asked(now.saturating_add(self.grace_ns));
        self.break_up(None);
        for live in lives.iter_mut().filter(|live| !live.has_ended()) {
            match why {
                Why::TimedOut => live.outcome.timed_out = true,
                Why::Cancelled => live.outcome.cancelled = true,
            }
        }
        tree::signal(libc::SIGTERM, &leaders(lives), self.kept);
    }
}

fn leaders(lives: &[Live]) -> Vec<libc::pid_t> {
    lives.iter().filter(|live| !live.has_ended()).map(|live| live.pid).collect()
}
