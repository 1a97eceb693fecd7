//! An open-loop client: requests go when they are due, whatever became of those before.
//!
//! One thread. A request has a connection to itself until its answer is whole; connections are kept and used again. What is
//! due while as many are outstanding as may be waits, and its response time counts from when it was due all the same.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

use etude_clock::{monotonic_ns, own_cpu_ns};
use etude_launch::sys;
use slotmap::{DefaultKey, Key, KeyData, SlotMap};
use socket2::{Domain, Protocol, Socket, Type};

use crate::http::Answer;
use crate::law::{Arrivals, Process};
use crate::poller::{Poller, Token};
use crate::tally::{Failure, Failures, Line, Own, Summary, Tally};
use crate::window::Window;
use crate::wire::Wire;

/// No key of a connection: theirs have an odd upper half.
const SIGNALS: Token = 0;

/// What is to be offered; times in ns.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub address: SocketAddr,
    /// As it is sent.
    pub request: Vec<u8>,
    pub process: Process,
    pub rate: f64,
    pub seed: u64,
    pub warm_up_ns: u64,
    pub duration_ns: u64,
    pub window_ns: u64,
    pub outstanding: usize,
    pub timeout_ns: u64,
    pub drain_ns: u64,
}

struct Connection {
    wire: Wire,
    asked: Option<Asked>,
}

/// A request that was sent.
struct Asked {
    due_ns: u64,
    number: u64,
    answer: Answer,
}

/// When a sent request is given up. They were sent in the order in which they were due.
struct Deadline {
    due_ns: u64,
    number: u64,
    key: DefaultKey,
}

pub(crate) struct Client<'a> {
    plan: &'a Plan,
    lines: &'a Sender<Line>,
    poller: Poller,
    signals: OwnedFd,
    connections: SlotMap<DefaultKey, Connection>,
    /// Without a request; the last used first. Some have ended meanwhile.
    idle: Vec<DefaultKey>,
    /// Due and not sent.
    waiting: VecDeque<u64>,
    deadlines: VecDeque<Deadline>,
    outstanding: usize,
    number: u64,
    /// The first window's beginning. What was due before is warm-up, and counts nowhere.
    began_ns: u64,
    tally: Box<Tally>,
    summary: Summary,
    /// Signals that have come.
    told: u32,
}

impl<'a> Client<'a> {
    /// # Errors
    /// No descriptors, or a kernel that is too old.
    pub fn new(plan: &'a Plan, lines: &'a Sender<Line>, signals: OwnedFd) -> io::Result<Client<'a>> {
        let poller = Poller::new()?;
        poller.watch(&signals, SIGNALS)?;
        let summary = Summary {
            ended: "whole",
            asked_rate: plan.rate,
            duration_s: 0.0,
            offered: 0,
            started: 0,
            completed: 0,
            failed: 0,
            abandoned: 0,
            failures: Failures::default(),
            cpu: 0.0,
            drained_s: 0.0,
        };
        Ok(Client {
            plan,
            lines,
            poller,
            signals,
            connections: SlotMap::new(),
            idle: Vec::new(),
            waiting: VecDeque::new(),
            deadlines: VecDeque::new(),
            outstanding: 0,
            number: 0,
            began_ns: 0,
            tally: Box::new(Tally::new()),
            summary,
            told: 0,
        })
    }

    /// A connection that is already there.
    ///
    /// # Errors
    /// The socket refuses.
    pub fn take(&mut self, stream: TcpStream) -> io::Result<()> {
        let key = self.keep(Wire::new(stream)?)?;
        self.idle.push(key);
        Ok(())
    }

    /// Offers the load, telling of each window, and of the whole at the end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn run(mut self) -> io::Result<()> {
        let start_ns = monotonic_ns();
        let cpu_ns = own_cpu_ns();
        self.began_ns = start_ns + self.plan.warm_up_ns;
        let ended_ns = self.offer(start_ns)?;
        let span_ns = monotonic_ns() - start_ns;
        self.summary.cpu = (own_cpu_ns() - cpu_ns) as f64 / span_ns.max(1) as f64;
        self.summary.duration_s = seconds(ended_ns.saturating_sub(self.began_ns));
        let drained = self.drain(ended_ns)?;
        let _ = self.lines.send(Line::Summary { summary: self.summary, drained });
        Ok(())
    }

    /// Until all is offered, or a signal; when that was.
    fn offer(&mut self, start_ns: u64) -> io::Result<u64> {
        let plan = self.plan;
        let end_ns = self.began_ns + plan.duration_ns;
        let mut arrivals = Arrivals::new(plan.process, plan.rate, plan.seed).map(|at| start_ns + at);
        let mut due_ns = arrivals.next().unwrap_or(u64::MAX);
        let mut window = Window::new(self.began_ns, plan.window_ns, end_ns);
        let mut cpu_ns = own_cpu_ns();
        loop {
            let now = monotonic_ns();
            let stopped = self.told > 0;
            // What is due and what ends, in the order of time.
            while due_ns.min(window.end_ns) <= now {
                if due_ns < window.end_ns {
                    self.due(due_ns);
                    due_ns = arrivals.next().unwrap_or(u64::MAX);
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
            if stopped {
                self.summary.ended = "early";
                if now > window.begin_ns {
                    self.end_window(now - window.begin_ns, &mut cpu_ns);
                }
                return Ok(now);
            }
            self.give_up(now);
            self.listen(due_ns.min(window.end_ns))?;
        }
    }

    /// Waits for what is outstanding, up to the bound or a further signal; what came meanwhile.
    fn drain(&mut self, from_ns: u64) -> io::Result<Option<(f64, Box<Tally>)>> {
        let (told, until_ns) = (self.told, from_ns + self.plan.drain_ns);
        let owed = self.outstanding + self.waiting.len() > 0;
        while self.outstanding + self.waiting.len() > 0 && self.told == told {
            let now = monotonic_ns();
            if now >= until_ns {
                break;
            }
            self.give_up(now);
            self.listen(until_ns)?;
        }
        self.summary.drained_s = seconds(monotonic_ns() - from_ns);
        let counts = |due_ns: u64| due_ns >= self.began_ns;
        let sent = self.connections.values().filter_map(|connection| connection.asked.as_ref());
        let lost = sent.filter(|asked| counts(asked.due_ns)).count();
        self.summary.abandoned = (lost + self.waiting.iter().filter(|due| counts(**due)).count()) as u64;
        Ok(owed.then(|| (self.summary.drained_s, self.next_tally())))
    }

    /// Waits until then for answers.
    fn listen(&mut self, until_ns: u64) -> io::Result<()> {
        let until_ns =
            self.deadlines.front().map_or(until_ns, |first| self.given_up_ns(first.due_ns).min(until_ns));
        for token in self.poller.wait(Some(until_ns))? {
            match token {
                SIGNALS => self.told += u32::from(sys::take_signal(&self.signals).is_some()),
                key => self.hear(KeyData::from_ffi(key).into()),
            }
        }
        Ok(())
    }

    fn due(&mut self, due_ns: u64) {
        self.tally.offered += u64::from(due_ns >= self.began_ns);
        if self.outstanding < self.plan.outstanding {
            self.send(due_ns, true);
        } else {
            self.waiting.push_back(due_ns);
        }
    }

    /// `at_once`: it did not wait for others.
    fn send(&mut self, due_ns: u64, at_once: bool) {
        let key = match self.connection() {
            Ok(key) => key,
            Err(_) => return self.fail(due_ns, Failure::Connect),
        };
        self.number += 1;
        self.outstanding += 1;
        let connection = &mut self.connections[key];
        connection.asked = Some(Asked { due_ns, number: self.number, answer: Answer::new() });
        let sent = connection.wire.send(&self.plan.request);
        self.deadlines.push_back(Deadline { due_ns, number: self.number, key });
        if due_ns >= self.began_ns {
            self.tally.started += 1;
            if at_once {
                self.tally.late(monotonic_ns() - due_ns);
            }
        }
        if let Err(error) = sent {
            self.drop_request(key, broken(&error));
        }
    }

    /// An idle one, or a new one.
    fn connection(&mut self) -> io::Result<DefaultKey> {
        while let Some(key) = self.idle.pop() {
            if self.connections.contains_key(key) {
                return Ok(key);
            }
        }
        let address = self.plan.address;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => self.keep(Wire::new(socket.into())?),
        }
    }

    fn keep(&mut self, wire: Wire) -> io::Result<DefaultKey> {
        let key = self.connections.insert(Connection { wire, asked: None });
        self.poller.watch_edges(&self.connections[key].wire.stream, key.data().as_ffi())?;
        Ok(key)
    }

    /// Something came, or there is room.
    fn hear(&mut self, key: DefaultKey) {
        let Some(Connection { wire, asked }) = self.connections.get_mut(key) else { return };
        let filled = wire.flush().and_then(|()| wire.fill());
        let Some(request) = asked else {
            // An idle connection has nothing to say but its end.
            if !matches!(filled, Ok(false)) || !wire.input.is_empty() {
                self.connections.remove(key);
            }
            return;
        };
        let whole = request.answer.feed(&mut wire.input);
        match (whole, filled) {
            (Err(_), _) => self.lose(key, Failure::Malformed),
            (Ok(true), filled) => self.answered(key, matches!(filled, Ok(false))),
            (Ok(false), Ok(true)) if request.answer.closed() => self.answered(key, false),
            (Ok(false), Ok(true)) => self.lose(key, Failure::Closed),
            (Ok(false), Err(error)) => self.lose(key, broken(&error)),
            (Ok(false), Ok(false)) => {}
        }
    }

    /// `open`: the connection is.
    fn answered(&mut self, key: DefaultKey, open: bool) {
        let connection = &mut self.connections[key];
        let Some(asked) = connection.asked.take() else { return };
        let good = (200..400).contains(&asked.answer.status);
        if asked.answer.keep && open && connection.wire.input.is_empty() {
            self.idle.push(key);
        } else {
            self.connections.remove(key);
        }
        self.outstanding -= 1;
        if !good {
            self.fail(asked.due_ns, Failure::Status);
        } else if asked.due_ns >= self.began_ns {
            self.tally.answered(monotonic_ns() - asked.due_ns);
        }
        self.send_waiting();
    }

    /// A request's connection is of no use any more; another may go.
    fn lose(&mut self, key: DefaultKey, why: Failure) {
        self.drop_request(key, why);
        self.send_waiting();
    }

    fn drop_request(&mut self, key: DefaultKey, why: Failure) {
        if let Some(asked) = self.connections.remove(key).and_then(|connection| connection.asked) {
            self.outstanding -= 1;
            self.fail(asked.due_ns, why);
        }
    }

    fn fail(&mut self, due_ns: u64, why: Failure) {
        if due_ns >= self.began_ns {
            self.tally.failed += 1;
            self.summary.failures.count(why);
        }
    }

    /// Those that fail at once leave their place to the next.
    fn send_waiting(&mut self) {
        while self.outstanding < self.plan.outstanding
            && let Some(due_ns) = self.waiting.pop_front()
        {
            self.send(due_ns, false);
        }
    }

    /// Whatever has no answer within its time.
    fn give_up(&mut self, now_ns: u64) {
        while let Some(&due_ns) = self.waiting.front().filter(|due| self.given_up_ns(**due) <= now_ns) {
            self.waiting.pop_front();
            self.fail(due_ns, Failure::Timeout);
        }
        while let Some(first) = self.deadlines.front() {
            let asked = self.connections.get(first.key).and_then(|connection| connection.asked.as_ref());
            let open = asked.is_some_and(|asked| asked.number == first.number);
            if open && self.given_up_ns(first.due_ns) > now_ns {
                break;
            }
            let key = first.key;
            self.deadlines.pop_front();
            if open {
                self.lose(key, Failure::Timeout);
            }
        }
    }

    fn given_up_ns(&self, due_ns: u64) -> u64 {
        due_ns.saturating_add(self.plan.timeout_ns)
    }

    /// Tells of a window; false: nobody listens.
    fn end_window(&mut self, duration_ns: u64, cpu_ns: &mut u64) -> bool {
        let used_ns = own_cpu_ns() - *cpu_ns;
        *cpu_ns += used_ns;
        let own = Own {
            cpu: used_ns as f64 / duration_ns.max(1) as f64,
            outstanding: self.outstanding,
            waiting: self.waiting.len(),
        };
        let (duration_s, tally) = (seconds(duration_ns), self.next_tally());
        self.lines.send(Line::Window { duration_s, tally, own }).is_ok()
    }

    fn next_tally(&mut self) -> Box<Tally> {
        let tally = std::mem::replace(&mut self.tally, Box::new(Tally::new()));
        self.summary.offered += tally.offered;
        self.summary.started += tally.started;
        self.summary.completed += tally.completed;
        self.summary.failed += tally.failed;
        tally
    }
}

fn broken(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(
            libc::ECONNREFUSED | libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENOTCONN,
        ) => Failure::Connect,
        _ => Failure::Closed,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
