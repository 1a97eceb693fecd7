//! What all threads of a run share, under one lock: what is due, who does it, and what became of it.
//!
//! The lock is taken once a request, for the time that drawing the next and counting the last one take. While calls are quick one
//! thread does all, and nobody else wants it.

use std::collections::VecDeque;

use etude_clock::own_cpu_ns;
use etude_workload::{Kind, Operation, Stream};

use crate::file_set::gate::{Gate, Numbers};
use crate::files::call::Errno;
use crate::files::errno;
use crate::files::leader_follower::{Ahead, Thread, Turn};
use crate::report::Own;
use crate::report::tally::Tally;
use crate::run::plan::{Load, Plan};
use crate::run::run_loop::Closed;
use crate::run::schedule::Schedule;
use crate::run::target::Failure;
use crate::run::window::Window;

/// A request that was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub ticket: u64,
    pub due_ns: u64,
    pub operation: Operation,
}

/// What a thread does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// This request, after it has woken those threads, and the watcher if `ring`.
    Call {
        job: Job,
        wake: [Option<Thread>; 2],
        ring: bool,
    },
    /// It leads: it waits for that instant and asks again.
    Await(u64),
    /// Until it is woken.
    Park,
    Leave,
}

struct Running {
    job: Job,
    begin_ns: u64,
    /// Nobody waits for it any more: its time is over.
    lost: bool,
}

pub(crate) struct State {
    schedule: Schedule,
    stream: Stream,
    pub turn: Turn,
    numbers: Numbers,
    gate: Gate<Job>,
    /// Were held back, and may go.
    ready: VecDeque<Job>,
    /// Due and not sent.
    waiting: VecDeque<u64>,
    running: Vec<Option<Running>>,
    /// Of those, without the lost.
    busy: usize,
    places: usize,
    timeout_ns: u64,
    /// Until then all places were taken: what was due before could not be sent at once.
    full_ns: u64,
    tickets: u64,
    /// The first window's beginning. What was due before is warm-up, and counts nowhere.
    pub began_ns: u64,
    window: Window,
    cpu_ns: u64,
    pub tally: Box<Tally>,
    /// For the next window: made by the watcher, as that takes a while.
    pub fresh: Option<Box<Tally>>,
    pub closed: VecDeque<Closed>,
    pub offering: bool,
    pub leaving: bool,
    /// The watcher sleeps until somebody rings.
    pub dozing: bool,
    /// Calls begun, the warm-up's too.
    pub begun: u64,
    pub spun_ns: u64,
}

impl State {
    /// Nothing is offered before it [begins](State::begin).
    pub fn new(plan: &Plan, stream: Stream, numbers: Numbers) -> State {
        // Clients do not wait for each other.
        let eager = matches!(plan.load, Load::Closed { .. });
        State {
            schedule: Schedule::at(std::iter::empty(), 0),
            stream,
            turn: Turn::new(Kind::ALL.len(), eager),
            numbers,
            gate: Gate::new(numbers.len()),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            busy: 0,
            places: plan.outstanding,
            timeout_ns: plan.timeout_ns,
            full_ns: 0,
            tickets: 0,
            began_ns: 0,
            window: Window::of(plan, 0),
            cpu_ns: 0,
            tally: Box::new(Tally::new(Kind::ALL.len())),
            fresh: None,
            closed: VecDeque::new(),
            offering: false,
            leaving: false,
            dozing: false,
            begun: 0,
            spun_ns: 0,
        }
    }

    /// The run begins at that instant: what was made ready before took its time.
    pub fn begin(&mut self, plan: &Plan, start_ns: u64) {
        self.schedule = Schedule::new(plan.load, plan.seed, start_ns);
        self.began_ns = start_ns + plan.warm_up_ns;
        self.window = Window::of(plan, self.began_ns);
        self.cpu_ns = own_cpu_ns();
        self.offering = true;
    }

    /// A new thread's number.
    pub fn add_thread(&mut self) -> Thread {
        self.running.push(None);
        self.running.len() - 1
    }

    pub fn threads(&self) -> usize {
        self.running.len()
    }

    /// Requests without an answer: under way, held back, waiting.
    pub fn owed(&self) -> usize {
        self.busy + self.unsent()
    }

    fn unsent(&self) -> usize {
        self.waiting.len() + self.ready.len() + self.gate.held()
    }

    /// A thread's call is over.
    pub fn end(&mut self, thread: Thread, end_ns: u64, result: Result<(), Errno>) {
        let Some(Running { job, begin_ns, lost }) = self.running[thread].take() else { return };
        let kind = job.operation.kind.index();
        self.turn.back(thread, kind, end_ns.saturating_sub(begin_ns));
        let ready = &mut self.ready;
        self.gate.end(self.numbers.claim(&job.operation), |freed| ready.push_back(freed));
        if lost {
            // A place without a thread is none: what was due meanwhile could not be sent.
            if !self.turn.has_idle() {
                self.full_ns = end_ns;
            }
            return;
        }
        if self.is_full() {
            self.full_ns = end_ns;
        }
        self.busy -= 1;
        self.schedule.ended(end_ns);
        if job.due_ns < self.began_ns {
            return;
        }
        match result {
            Ok(()) => self.tally.answered(kind, end_ns.saturating_sub(job.due_ns)),
            Err(number) => self.tally.failed(Some(kind), &Failure::Status(errno::name(number))),
        }
    }

    /// What a thread without a call does at `now`.
    pub fn next(&mut self, thread: Thread, now_ns: u64) -> Step {
        if self.leaving {
            return Step::Leave;
        }
        self.turn_window(now_ns);
        if self.turn.is_vacant() {
            self.turn.arrive(thread);
        }
        if let Some(job) = self.ready.pop_front() {
            return self.start(thread, job, now_ns, false);
        }
        while !self.is_full()
            && let Some(due_ns) = self.pop_due(now_ns)
        {
            if self.is_over(due_ns, now_ns) {
                self.time_out(due_ns, None, now_ns);
                continue;
            }
            let job = self.draw(due_ns);
            if let Some(job) = self.gate.admit(job.ticket, self.numbers.claim(&job.operation), job) {
                return self.start(thread, job, now_ns, due_ns >= self.full_ns);
            }
        }
        let next_ns = self.schedule.next_ns();
        if self.offering && next_ns != u64::MAX && !self.is_full() && self.turn.arrive(thread) {
            return Step::Await(next_ns);
        }
        self.turn.park(thread);
        Step::Park
    }

    fn is_full(&self) -> bool {
        self.busy + self.gate.held() + self.ready.len() >= self.places
    }

    fn draw(&mut self, due_ns: u64) -> Job {
        self.tickets += 1;
        Job { ticket: self.tickets, due_ns, operation: self.stream.next() }
    }

    fn start(&mut self, thread: Thread, job: Job, now_ns: u64, at_once: bool) -> Step {
        if job.due_ns >= self.began_ns {
            self.tally.started += 1;
            if at_once {
                self.tally.late(now_ns.saturating_sub(job.due_ns));
            }
        }
        self.busy += 1;
        self.begun += 1;
        self.running[thread] = Some(Running { job, begin_ns: now_ns, lost: false });
        let ahead = self.ahead(now_ns);
        let leader = self.turn.call(thread, job.operation.kind.index(), ahead);
        let helper = if self.ready.is_empty() { None } else { self.turn.helper() };
        Step::Call { job, wake: [leader, helper], ring: std::mem::take(&mut self.dozing) }
    }

    fn ahead(&self, now_ns: u64) -> Ahead {
        let next_due_ns = match self.waiting.front() {
            Some(due_ns) => *due_ns,
            None if self.offering => self.schedule.next_ns(),
            None => u64::MAX,
        };
        Ahead { now_ns, next_due_ns }
    }

    /// The oldest request that is due by now.
    fn pop_due(&mut self, now_ns: u64) -> Option<u64> {
        if let Some(due_ns) = self.waiting.pop_front() {
            return Some(due_ns);
        }
        let due_ns = self.schedule.next_ns();
        (self.offering && due_ns <= now_ns).then(|| self.take_due(due_ns))
    }

    fn take_due(&mut self, due_ns: u64) -> u64 {
        self.schedule.advance();
        self.tally.offered += u64::from(due_ns >= self.began_ns);
        due_ns
    }

    /// All that was due before is offered, whether anybody has time for it or not.
    fn take_all_due(&mut self, before_ns: u64) {
        while self.schedule.next_ns() < before_ns {
            let due_ns = self.take_due(self.schedule.next_ns());
            self.waiting.push_back(due_ns);
        }
    }

    /// Closes the window if it is over; whoever comes first does it, so that each request counts in its own.
    pub fn turn_window(&mut self, now_ns: u64) {
        while self.offering && self.window.end_ns <= now_ns {
            self.take_all_due(self.window.end_ns);
            self.close_window(self.window.duration_ns());
            self.offering = !self.window.is_last();
            self.window = self.window.next();
        }
    }

    /// Nothing more is offered; the window under way ends here.
    pub fn stop(&mut self, now_ns: u64) {
        self.turn_window(now_ns);
        if self.offering {
            self.take_all_due(now_ns);
            if now_ns > self.window.begin_ns {
                self.close_window(now_ns - self.window.begin_ns);
            }
            (self.offering, self.window.end_ns) = (false, now_ns);
        }
    }

    fn close_window(&mut self, duration_ns: u64) {
        let cpu_ns = own_cpu_ns();
        let used_ns = cpu_ns - std::mem::replace(&mut self.cpu_ns, cpu_ns);
        let (outstanding, waiting) = (self.busy, self.unsent());
        let waited_s = Some(Own::waited_s(self.unanswered(), self.window.begin_ns + duration_ns));
        let (cpu_ns, tally) = (used_ns, self.next_tally());
        let closed = Closed { duration_ns, cpu_ns, tally, outstanding, waiting, waited_s, multiple: None };
        self.closed.push_back(closed);
    }

    /// CPU time counts from here on: the warm-up is over.
    pub fn begin_counting(&mut self) {
        self.cpu_ns = own_cpu_ns();
    }

    pub fn next_tally(&mut self) -> Box<Tally> {
        let fresh = self.fresh.take().unwrap_or_else(|| Box::new(Tally::new(Kind::ALL.len())));
        std::mem::replace(&mut self.tally, fresh)
    }

    /// When the window under way ends.
    pub fn window_ends_ns(&self) -> u64 {
        self.window.end_ns
    }

    fn is_over(&self, due_ns: u64, now_ns: u64) -> bool {
        due_ns.saturating_add(self.timeout_ns) <= now_ns
    }

    fn time_out(&mut self, due_ns: u64, kind: Option<usize>, now_ns: u64) {
        self.schedule.ended(now_ns);
        if due_ns >= self.began_ns {
            self.tally.failed(kind, &Failure::Timeout);
        }
    }

    /// Whatever has no answer within its time. A call cannot be taken back: its place is free, its thread is not.
    pub fn give_up(&mut self, now_ns: u64) {
        while let Some(due_ns) = self.waiting.front().copied().filter(|due| self.is_over(*due, now_ns)) {
            self.waiting.pop_front();
            self.time_out(due_ns, None, now_ns);
        }
        let mut over = Vec::new();
        let (timeout_ns, ready) = (self.timeout_ns, &mut self.ready);
        let is_over = |job: &Job| job.due_ns.saturating_add(timeout_ns) <= now_ns;
        self.gate.drop_held(is_over, |job| over.push(job), |freed| ready.push_back(freed));
        for running in self.running.iter_mut().flatten() {
            if !running.lost && is_over(&running.job) {
                running.lost = true;
                self.busy -= 1;
                over.push(running.job);
            }
        }
        for job in over {
            self.time_out(job.due_ns, Some(job.operation.kind.index()), now_ns);
        }
    }

    /// Threads whose calls nobody waits for.
    pub fn written_off(&self) -> usize {
        self.running.iter().flatten().filter(|running| running.lost).count()
    }

    /// Who has to be woken because nobody else does what is due.
    pub fn watch(&mut self, now_ns: u64) -> Option<Thread> {
        if self.is_full() {
            return None;
        }
        if !self.ready.is_empty() {
            return self.turn.helper();
        }
        let wanted = self.offering || !self.waiting.is_empty();
        if wanted { self.turn.watch(self.ahead(now_ns)) } else { None }
    }

    /// When each request that has no answer was due.
    fn unanswered(&self) -> impl Iterator<Item = u64> {
        let running =
            self.running.iter().flatten().filter(|running| !running.lost).map(|running| running.job);
        let drawn = running.chain(self.ready.iter().copied()).chain(self.gate.all_held().copied());
        drawn.map(|job| job.due_ns).chain(self.waiting.iter().copied())
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
