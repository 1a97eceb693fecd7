//! The client: requests go when they are due, to whatever target.
//!
//! One thread. What is due while as many are outstanding as may be waits, and its response time counts from when it was due
//! all the same. In a closed loop a request is due when its client has thought.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

use etude_clock::{monotonic_ns, own_cpu_ns, seconds};
use etude_launch::sys;

use crate::report::summary::{About, Summary};
use crate::report::tally::Tally;
use crate::report::{Line, Own};
use crate::run::cpu_demand::wanted_ns;
use crate::run::outstanding::UnderWay;
use crate::run::plan::{Plan, Wait};
use crate::run::schedule::Schedule;
use crate::run::target::{Ended, Failure, Target};
use crate::run::window::Window;

/// Before an instant a hybrid wait stops sleeping: more than a wake-up takes on an idle machine.
const SHORTLY_NS: u64 = 60_000;
/// How often is looked for signals: a call of the kernel for each request would be part of what it costs.
const LOOK_NS: u64 = 100_000_000;

pub(crate) struct Client<'a, T> {
    plan: &'a Plan,
    lines: &'a Sender<Line>,
    signals: OwnedFd,
    target: T,
    /// From the beginning of the run on.
    given: Option<Box<dyn Iterator<Item = u64> + Send>>,
    schedule: Schedule,
    /// Due and not sent.
    waiting: VecDeque<u64>,
    under_way: UnderWay,
    ended: Vec<Ended>,
    /// The first window's beginning. What was due before is warm-up, and counts nowhere.
    began_ns: u64,
    tally: Box<Tally>,
    summary: Summary,
    /// CPU time of the windows.
    cpu_ns: u64,
    /// Time in looks at the target that found nothing.
    vain_ns: u64,
    /// Signals that have come, and when to look again.
    told: u32,
    look_ns: u64,
}

impl<'a, T: Target> Client<'a, T> {
    pub fn new(plan: &'a Plan, about: About, lines: &'a Sender<Line>, signals: OwnedFd, target: T) -> Self {
        let tally = Box::new(Tally::new(target.kinds().len()));
        Client {
            plan,
            lines,
            signals,
            target,
            given: None,
            schedule: Schedule::at(std::iter::empty(), 0),
            waiting: VecDeque::new(),
            under_way: UnderWay::new(),
            ended: Vec::new(),
            began_ns: 0,
            tally,
            summary: Summary::new(plan, about),
            cpu_ns: 0,
            vain_ns: 0,
            told: 0,
            look_ns: 0,
        }
    }

    /// Requests are due at these instants, ns from the beginning, which never go back; with the last the run is over.
    #[cfg_attr(not(test), allow(dead_code, reason = "of targets with instants of their own"))]
    pub fn with_arrivals(mut self, instants: impl Iterator<Item = u64> + Send + 'static) -> Self {
        self.given = Some(Box::new(instants));
        self.summary.arrivals = "given";
        self
    }

    /// Offers the load, telling of each window, and of the whole at the end.
    ///
    /// # Errors
    /// The target's.
    pub fn run(mut self) -> io::Result<()> {
        wake_in_time();
        let (start_ns, cpu_ns, before_ns) = (monotonic_ns(), own_cpu_ns(), wanted_ns());
        self.began_ns = start_ns + self.plan.warm_up_ns;
        self.schedule = match self.given.take() {
            Some(instants) => Schedule::at(instants, start_ns),
            None => Schedule::new(self.plan.load, self.plan.seed, start_ns),
        };
        let ended_ns = self.offer()?;
        let span_ns = (monotonic_ns() - start_ns).max(1) as f64;
        self.summary.cpu = (own_cpu_ns() - cpu_ns) as f64 / span_ns;
        self.summary.busy = (wanted_ns() - before_ns).saturating_sub(self.vain_ns) as f64 / span_ns;
        let sent = self.summary.started;
        self.summary.cpu_per_request_s = (sent > 0).then(|| seconds(self.cpu_ns) / sent as f64);
        self.summary.duration_s = seconds(ended_ns.saturating_sub(self.began_ns));
        let drained = self.drain(ended_ns)?;
        let _ = self.lines.send(Line::Summary { summary: Box::new(self.summary), drained });
        Ok(())
    }

    /// Until all is offered, or a signal; when that was.
    fn offer(&mut self) -> io::Result<u64> {
        let end_ns = self.began_ns + self.plan.duration_ns;
        let mut window = Window::new(self.began_ns, self.plan.window_ns, end_ns);
        // Of the warm-up, no window tells.
        let mut cpu_ns = None;
        loop {
            let now = monotonic_ns();
            self.look_for_signals(now);
            if cpu_ns.is_none() && now >= self.began_ns {
                cpu_ns = Some(own_cpu_ns());
            }
            // What is due and what ends, in the order of time.
            while self.schedule.next_ns().min(window.end_ns) <= now {
                let due_ns = self.schedule.next_ns();
                if due_ns < window.end_ns {
                    self.schedule.advance();
                    self.due(due_ns)?;
                    continue;
                }
                let heard = self.end_window(window.duration_ns(), &mut cpu_ns);
                if window.end_ns == end_ns {
                    return Ok(end_ns);
                }
                window = window.next();
                if !heard {
                    self.summary.ended = "early";
                    return Ok(window.begin_ns);
                }
            }
            if self.told > 0 || self.schedule.over() {
                self.summary.ended = if self.told > 0 { "early" } else { "whole" };
                if now > window.begin_ns {
                    self.end_window(now - window.begin_ns, &mut cpu_ns);
                }
                return Ok(now);
            }
            self.give_up(now)?;
            self.listen(self.schedule.next_ns(), window.end_ns)?;
        }
    }

    /// Waits for what is outstanding, up to the bound or a further signal; what came meanwhile.
    fn drain(&mut self, from_ns: u64) -> io::Result<Option<(f64, Box<Tally>)>> {
        let until_ns = from_ns + self.plan.drain_ns;
        let enough = if self.told > 0 { 2 } else { 1 };
        let owed = self.owed() > 0;
        while self.owed() > 0 && self.told < enough {
            let now = monotonic_ns();
            if now >= until_ns {
                break;
            }
            self.look_for_signals(now);
            self.give_up(now)?;
            self.listen(u64::MAX, until_ns)?;
        }
        self.summary.drained_s = seconds(monotonic_ns().saturating_sub(from_ns));
        let lost = self.under_way.all().chain(self.waiting.iter().copied());
        self.summary.abandoned = lost.filter(|due| *due >= self.began_ns).count() as u64;
        Ok(owed.then(|| (self.summary.drained_s, self.next_tally())))
    }

    fn owed(&self) -> usize {
        self.under_way.len() + self.waiting.len()
    }

    fn look_for_signals(&mut self, now_ns: u64) {
        if now_ns < self.look_ns {
            return;
        }
        self.look_ns = now_ns + LOOK_NS;
        while sys::take_signal(&self.signals).is_some() {
            self.told += 1;
        }
    }

    /// Waits for answers, as it was asked for until the instant `due_ns`, or until something else has to be done.
    fn listen(&mut self, due_ns: u64, other_ns: u64) -> io::Result<()> {
        let oldest_ns = self.under_way.oldest().map_or(u64::MAX, |(_, due_ns)| self.given_up_ns(due_ns));
        let other_ns = other_ns.min(oldest_ns).min(self.look_ns);
        let until_ns = match self.plan.wait {
            Wait::Sleep => due_ns.min(other_ns),
            Wait::Hybrid => due_ns.saturating_sub(SHORTLY_NS).min(other_ns),
            Wait::Spin => 0,
        };
        let before_ns = monotonic_ns();
        let mut ended = std::mem::take(&mut self.ended);
        self.target.listen(until_ns, &mut ended)?;
        if ended.is_empty() && until_ns <= before_ns {
            self.vain_ns += monotonic_ns() - before_ns;
        }
        for each in ended.drain(..) {
            self.over(&each);
        }
        self.ended = ended;
        self.send_waiting()
    }

    fn due(&mut self, due_ns: u64) -> io::Result<()> {
        self.tally.offered += u64::from(due_ns >= self.began_ns);
        if self.under_way.len() < self.plan.outstanding {
            self.send(due_ns, true)
        } else {
            self.waiting.push_back(due_ns);
            Ok(())
        }
    }

    /// `at_once`: it did not wait for others.
    fn send(&mut self, due_ns: u64, at_once: bool) -> io::Result<()> {
        let ticket = self.under_way.add(due_ns);
        self.target.send(ticket)?;
        if due_ns >= self.began_ns {
            self.tally.started += 1;
            if at_once {
                self.tally.late(monotonic_ns().saturating_sub(due_ns));
            }
        }
        Ok(())
    }

    fn over(&mut self, ended: &Ended) {
        let Some(due_ns) = self.under_way.end(ended.ticket) else { return };
        self.schedule.ended(ended.at_ns);
        if due_ns < self.began_ns {
            return;
        }
        match &ended.result {
            Ok(()) => self.tally.answered(ended.kind, ended.at_ns.saturating_sub(due_ns)),
            Err(why) => self.tally.failed(Some(ended.kind), why),
        }
    }

    fn send_waiting(&mut self) -> io::Result<()> {
        while self.under_way.len() < self.plan.outstanding
            && let Some(due_ns) = self.waiting.pop_front()
        {
            self.send(due_ns, false)?;
        }
        Ok(())
    }

    /// Whatever has no answer within its time.
    fn give_up(&mut self, now_ns: u64) -> io::Result<()> {
        while let Some(&due_ns) = self.waiting.front().filter(|due| self.given_up_ns(**due) <= now_ns) {
            self.waiting.pop_front();
            self.timed_out(due_ns, now_ns);
        }
        while let Some((ticket, due_ns)) = self.under_way.oldest()
            && self.given_up_ns(due_ns) <= now_ns
        {
            self.under_way.end(ticket);
            self.target.give_up(ticket);
            self.timed_out(due_ns, now_ns);
        }
        self.send_waiting()
    }

    fn timed_out(&mut self, due_ns: u64, now_ns: u64) {
        self.schedule.ended(now_ns);
        if due_ns >= self.began_ns {
            self.tally.failed(None, &Failure::Timeout);
        }
    }

    fn given_up_ns(&self, due_ns: u64) -> u64 {
        due_ns.saturating_add(self.plan.timeout_ns)
    }

    /// Tells of a window; false: nobody listens.
    fn end_window(&mut self, duration_ns: u64, cpu_ns: &mut Option<u64>) -> bool {
        let used_now_ns = own_cpu_ns();
        let used_ns = used_now_ns - cpu_ns.replace(used_now_ns).unwrap_or(used_now_ns);
        let due_ns = self.under_way.all().chain(self.waiting.iter().copied());
        self.cpu_ns += used_ns;
        let own = Own {
            cpu: used_ns as f64 / duration_ns.max(1) as f64,
            outstanding: self.under_way.len(),
            waiting: self.waiting.len(),
            waited_s: Some(Own::waited_s(due_ns, monotonic_ns())),
            multiple: None,
        };
        self.summary.waited |= own.waiting > 0;
        let (duration_s, tally) = (seconds(duration_ns), self.next_tally());
        self.lines.send(Line::Window { duration_s, tally, own }).is_ok()
    }

    fn next_tally(&mut self) -> Box<Tally> {
        let fresh = Box::new(Tally::new(self.target.kinds().len()));
        let tally = std::mem::replace(&mut self.tally, fresh);
        self.summary.add(&tally);
        tally
    }
}

/// The kernel lets each sleep of a thread last up to 50 µs longer unless it is told not to (prctl(2), PR_SET_TIMERSLACK).
fn wake_in_time() {
    // SAFETY: no pointers; it is about this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
