//! The client: requests go when they are due, to whatever target.
//!
//! One thread. What is due while as many are outstanding as may be waits, and its response time counts from when it was due
//! all the same. In a closed loop a request is due when its client has thought.

use std::collections::VecDeque;
use std::io;

use etude_clock::{monotonic_ns, own_cpu_ns, without_slack};
use etude_options::Failed;

use crate::exit::machine;
use crate::report::Own;
use crate::report::summary::Summary;
use crate::report::tally::Tally;
use crate::run::cpu_demand::wanted_ns;
use crate::run::outstanding::UnderWay;
use crate::run::plan::{Plan, Wait};
use crate::run::run_loop::{Closed, Generator, Signals};
use crate::run::schedule::Schedule;
use crate::run::target::{Ended, Failure, Target};
use crate::run::window::Window;

/// Before an instant a hybrid wait stops sleeping: more than a wake-up takes on an idle machine.
const SHORTLY_NS: u64 = 60_000;

pub(crate) struct Client<'a, T> {
    plan: &'a Plan,
    target: T,
    /// Instants of requests, from the beginning of the run on.
    #[cfg(test)]
    given: Option<Box<dyn Iterator<Item = u64> + Send>>,
    schedule: Schedule,
    /// Due and not sent.
    waiting: VecDeque<u64>,
    under_way: UnderWay,
    ended: Vec<Ended>,
    /// The first window's beginning. What was due before is warm-up, and counts nowhere.
    began_ns: u64,
    window: Window,
    ended_ns: Option<u64>,
    tally: Box<Tally>,
    /// CPU time when the window began; None: it is warm-up still, which no window reports.
    cpu_ns: Option<u64>,
    /// CPU time that this thread had wanted when the run began.
    wanted_ns: u64,
    /// Time in looks at the target that found nothing.
    vain_ns: u64,
}

impl<T: Target> Generator for Client<'_, T> {
    fn kinds(&self) -> Vec<&'static str> {
        self.target.kinds().to_vec()
    }

    fn begin(&mut self) -> Result<u64, Failed> {
        without_slack();
        let start_ns = monotonic_ns();
        self.wanted_ns = wanted_ns();
        self.began_ns = start_ns + self.plan.warm_up_ns;
        self.window = Window::of(self.plan, self.began_ns);
        self.schedule = Schedule::new(self.plan.load, self.plan.seed, start_ns);
        #[cfg(test)]
        if let Some(instants) = self.given.take() {
            self.schedule = Schedule::at(instants, start_ns);
        }
        Ok(start_ns)
    }

    fn step(&mut self, now_ns: u64) -> Result<Option<Closed>, Failed> {
        if self.cpu_ns.is_none() && now_ns >= self.began_ns {
            self.cpu_ns = Some(own_cpu_ns());
        }
        // What is due and what ends, in the order of time.
        while self.ended_ns.is_none() && self.schedule.next_ns().min(self.window.end_ns) <= now_ns {
            let due_ns = self.schedule.next_ns();
            if due_ns < self.window.end_ns {
                self.schedule.advance();
                self.due(due_ns).map_err(machine)?;
                continue;
            }
            let closed = self.close(self.window.duration_ns());
            self.ended_ns = self.window.is_last().then_some(self.window.end_ns);
            self.window = self.window.next();
            return Ok(Some(closed));
        }
        if self.ended_ns.is_none() && self.schedule.over() {
            return Ok(self.stop(now_ns));
        }
        self.give_up(now_ns).map_err(machine)?;
        Ok(None)
    }

    fn ended_ns(&self) -> Option<u64> {
        self.ended_ns
    }

    fn stop(&mut self, now_ns: u64) -> Option<Closed> {
        self.ended_ns = Some(now_ns);
        (now_ns > self.window.begin_ns).then(|| self.close(now_ns - self.window.begin_ns))
    }

    /// Waits for answers, in the way that the plan has.
    fn wait(&mut self, until_ns: u64, signals: &mut Signals) -> Result<(), Failed> {
        let (due_ns, end_ns) = match self.ended_ns {
            None => (self.schedule.next_ns(), self.window.end_ns),
            Some(_) => (u64::MAX, until_ns),
        };
        let oldest_ns = self.under_way.oldest().map_or(u64::MAX, |(_, due_ns)| self.given_up_ns(due_ns));
        let other_ns = end_ns.min(oldest_ns).min(signals.look_ns);
        let until_ns = match self.plan.wait {
            Wait::Sleep => due_ns.min(other_ns),
            Wait::Hybrid => due_ns.saturating_sub(SHORTLY_NS).min(other_ns),
            Wait::Spin => 0,
        };
        self.listen(until_ns).map_err(machine)
    }

    fn owes(&self) -> bool {
        self.under_way.len() + self.waiting.len() > 0
    }

    fn busy(&self, _used_ns: u64, span_ns: f64) -> f64 {
        (wanted_ns() - self.wanted_ns).saturating_sub(self.vain_ns) as f64 / span_ns
    }

    fn rest(&mut self, owed: bool, _summary: &mut Summary) -> Result<Option<Box<Tally>>, Failed> {
        Ok(owed.then(|| self.next_tally()))
    }
}

impl<'a, T: Target> Client<'a, T> {
    pub fn new(plan: &'a Plan, target: T) -> Self {
        let tally = Box::new(Tally::new(target.kinds().len()));
        Client {
            plan,
            target,
            #[cfg(test)]
            given: None,
            schedule: Schedule::at(std::iter::empty(), 0),
            waiting: VecDeque::new(),
            under_way: UnderWay::new(),
            ended: Vec::new(),
            began_ns: 0,
            window: Window::of(plan, 0),
            ended_ns: None,
            tally,
            cpu_ns: None,
            wanted_ns: 0,
            vain_ns: 0,
        }
    }

    fn listen(&mut self, until_ns: u64) -> io::Result<()> {
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

    fn close(&mut self, duration_ns: u64) -> Closed {
        let now_ns = own_cpu_ns();
        let cpu_ns = now_ns - self.cpu_ns.replace(now_ns).unwrap_or(now_ns);
        let due_ns = self.under_way.all().chain(self.waiting.iter().copied());
        let waited_s = Some(Own::waited_s(due_ns, monotonic_ns()));
        let (outstanding, waiting) = (self.under_way.len(), self.waiting.len());
        Closed {
            duration_ns,
            cpu_ns,
            tally: self.next_tally(),
            outstanding,
            waiting,
            waited_s,
            multiple: None,
        }
    }

    fn next_tally(&mut self) -> Box<Tally> {
        let fresh = Box::new(Tally::new(self.target.kinds().len()));
        std::mem::replace(&mut self.tally, fresh)
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
