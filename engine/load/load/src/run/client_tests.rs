use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use etude_launch::sys;

use super::*;
use crate::http::target::Http;
use crate::report::Line;
use crate::report::summary::About;
use crate::run::distribution::Process;
use crate::run::plan::Load;
use crate::run::run_loop;

const MILLI: u64 = 1_000_000;

fn plan() -> Plan {
    Plan {
        load: constant(200.0),
        wait: Wait::Sleep,
        seed: 1,
        warm_up_ns: 0,
        duration_ns: 400 * MILLI,
        window_ns: 100 * MILLI,
        outstanding: 100,
        timeout_ns: 10_000 * MILLI,
        drain_ns: 10_000 * MILLI,
    }
}

fn constant(rate: f64) -> Load {
    Load::Open { rate, process: Process::Constant }
}

/// Answers one connection after the other, each request as `answer` says after it was counted; "" closes.
fn served(answer: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer, count) = (stream.unwrap(), answer.clone(), count.clone());
            thread::spawn(move || {
                let mut room = [0; 1024];
                while stream.read(&mut room).is_ok_and(|bytes| bytes > 0) {
                    let text = answer(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
                    if text.is_empty() || stream.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                    if text.contains("close") {
                        // It reads no further, and says so a little later.
                        return thread::sleep(Duration::from_millis(30));
                    }
                }
            });
        }
    });
    address
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct Run {
    windows: Vec<(f64, Box<Tally>, Own)>,
    summary: Box<Summary>,
    drained: Option<(f64, Box<Tally>)>,
}

fn run(plan: &Plan, address: SocketAddr) -> Run {
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    run_on(plan, Http::new(address, request).unwrap(), None)
}

fn run_on(plan: &Plan, target: impl Target, instants: Option<Vec<u64>>) -> Run {
    let (sender, receiver) = channel();
    let signals = sys::signalfd(&[libc::SIGUSR2]).unwrap();
    let about = About { target: "http", workload: None, file_set: None, roll: None };
    let mut client = Client::new(plan, target);
    client.given = instants.map(|instants| Box::new(instants.into_iter()) as _);
    run_loop::run(plan, Summary::new(plan, about), Signals::new(signals, 0), &sender, client).unwrap();
    drop(sender);
    let (mut windows, mut end) = (Vec::new(), None);
    for line in receiver {
        match line {
            Line::Window { duration_s, tally, own } => windows.push((duration_s, tally, own)),
            Line::Summary { summary, drained } => end = Some((summary, drained)),
        }
    }
    let (summary, drained) = end.unwrap();
    Run { windows, summary, drained }
}

fn sum(run: &Run, of: fn(&Tally) -> u64) -> u64 {
    let drained = run.drained.as_ref().map_or(0, |(_, tally)| of(tally));
    run.windows.iter().map(|(_, tally, _)| of(tally)).sum::<u64>() + drained
}

#[test]
fn windows_and_what_was_drained_sum_to_the_totals() {
    let address = served(|number| {
        thread::sleep(Duration::from_millis(30));
        if number % 7 == 3 { "" } else { GOOD }
    });
    let done = run(&Plan { load: Load::Open { rate: 200.0, process: Process::Poisson }, ..plan() }, address);
    let Summary { offered, started, completed, failed, abandoned, .. } = *done.summary;
    let sums = (
        sum(&done, |t| t.offered),
        sum(&done, |t| t.started),
        sum(&done, |t| t.completed),
        sum(&done, |t| t.failed),
    );
    assert_eq!(sums, (offered, started, completed, failed));
    assert_eq!((offered, abandoned), (completed + failed, 0));
    assert_eq!(done.windows.iter().map(|(duration, ..)| *duration).collect::<Vec<_>>(), [0.1; 4]);
    assert!(failed > 0 && done.summary.failures.closed == failed, "{:?}", done.summary);
    assert!(done.drained.is_some_and(|(_, tally)| tally.completed + tally.failed > 0));
}

#[test]
fn as_many_are_offered_as_asked_for_whatever_the_server_does() {
    let address = served(|_| {
        thread::sleep(Duration::from_millis(100));
        GOOD
    });
    let done = run(&Plan { outstanding: 2, ..plan() }, address);
    assert_eq!(done.windows.iter().map(|(_, tally, _)| tally.offered).collect::<Vec<_>>(), [20; 4]);
    let (_, last, own) = &done.windows[3];
    assert!(last.started < 20 && own.outstanding == 2 && own.waiting > 40, "{own:?}");
    let lasted_s: f64 = done.windows.iter().map(|(duration_s, _, _)| duration_s).sum();
    let each_s = own.waited_s.unwrap() / (own.outstanding + own.waiting) as f64;
    assert!(
        (0.3 * lasted_s..0.7 * lasted_s).contains(&each_s),
        "half of the time on average: {each_s} of {lasted_s}"
    );
}

#[test]
fn what_was_due_while_the_server_stalled_counts_from_when_it_was_due() {
    let address = served(|number| {
        if number == 0 {
            thread::sleep(Duration::from_millis(250));
        }
        GOOD
    });
    // One request at a time: a client that measures from its sends would see one slow answer.
    let mut done = run(&Plan { outstanding: 1, load: constant(100.0), ..plan() }, address);
    let mut all = Tally::new(1);
    done.windows.iter().for_each(|(_, tally, _)| all.add(tally));
    if let Some((_, tally)) = done.drained.take() {
        all.add(&tally);
    }
    // Due at 0, 10, 20 … ms and none answered before 250 ms: those due at 150 ms or earlier took 100 ms and more.
    assert_eq!((all.completed, done.summary.offered), (40, 40));
    assert!(all.slower_than(100 * MILLI - MILLI) >= 16, "{}", all.slower_than(99 * MILLI));
    assert!(all.slower_than(240 * MILLI) >= 1);
}

#[test]
fn no_answer_within_the_time_is_a_failure_and_draining_has_a_bound() {
    let address = served(|number| {
        thread::sleep(Duration::from_millis(if number < 10 { 1 } else { 5000 }));
        GOOD
    });
    let done = run(&Plan { timeout_ns: 150 * MILLI, drain_ns: 10 * MILLI, ..plan() }, address);
    let Summary { offered, completed, failed, abandoned, ref failures, .. } = *done.summary;
    assert_eq!((offered, failed), (completed + failed + abandoned, failures.timeout));
    assert!(completed <= 10 && failed > 0 && abandoned > 0, "{:?}", done.summary);
}

#[test]
fn an_answer_without_end_keeps_neither_the_others_nor_the_end_of_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut chunk = format!("{:x}\r\n", 1 << 16).into_bytes();
        chunk.resize(chunk.len() + (1 << 16), b'a');
        chunk.extend_from_slice(b"\r\n");
        for (number, stream) in listener.incoming().enumerate() {
            let (mut stream, chunk) = (stream.unwrap(), chunk.clone());
            thread::spawn(move || {
                let mut room = [0; 1024];
                while stream.read(&mut room).is_ok_and(|bytes| bytes > 0) {
                    if number > 0 {
                        stream.write_all(GOOD.as_bytes()).unwrap();
                        continue;
                    }
                    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
                    while stream.write_all(&chunk).is_ok() {}
                }
            });
        }
    });
    let done = run(&Plan { timeout_ns: 10_000 * MILLI, drain_ns: 10 * MILLI, ..plan() }, address);
    let Summary { offered, completed, abandoned, .. } = *done.summary;
    assert!(abandoned >= 1 && completed > 0 && completed + abandoned == offered, "{:?}", done.summary);
}

#[test]
fn wrong_answers_are_failures_of_their_kind() {
    let busy = run(&plan(), served(|_| "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!((busy.summary.failures.status, busy.summary.completed), (80, 0));
    let noise = run(&plan(), served(|_| "hello\r\n\r\n"));
    assert_eq!(noise.summary.failures.malformed, 80);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = run(&plan(), closed);
    assert_eq!(refused.summary.failures.connect, 80, "{:?}", refused.summary);
}

#[test]
fn what_waits_is_not_forgotten_when_connections_fail() {
    // One slow answer, and then nobody is there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        let _ = stream.read(&mut [0; 1024]);
        thread::sleep(Duration::from_millis(100));
    });
    let done = run(&Plan { outstanding: 1, ..plan() }, address);
    let Summary { offered, failed, abandoned, ref failures, .. } = *done.summary;
    assert_eq!((offered, failed, abandoned), (80, 80, 0), "{failures:?}");
    assert!(failures.closed >= 1 && failures.connect > 50, "{failures:?}");
    // While load is still offered; at the end of any one window some may wait where the client itself was held up.
    assert!(done.windows.iter().any(|(_, _, own)| own.waiting == 0));
}

#[test]
fn warm_up_counts_nowhere() {
    let done = run(&Plan { warm_up_ns: 100 * MILLI, ..plan() }, served(|_| GOOD));
    assert_eq!((done.summary.offered, done.summary.completed, done.windows.len()), (80, 80, 4));
}

#[test]
fn an_answer_that_closes_its_connection_is_good() {
    let done = run(&plan(), served(|_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    assert_eq!((done.summary.completed, done.summary.failed), (80, 0));
}

/// What a target was asked.
#[derive(Default)]
struct Log {
    sent: u64,
    most_under_way: usize,
    given_up: Vec<u64>,
    /// Calls of `listen` for an instant that was past, and to come.
    looks: u64,
    sleeps: u64,
}

/// Answers each request so long after it was sent; None: never. Every third answer of kind 1, an error.
struct Fake {
    service_ns: Option<u64>,
    under_way: VecDeque<(u64, u64)>,
    log: Rc<RefCell<Log>>,
}

impl Fake {
    fn new(service_ns: Option<u64>) -> (Fake, Rc<RefCell<Log>>) {
        let log = Rc::new(RefCell::new(Log::default()));
        (Fake { service_ns, under_way: VecDeque::new(), log: log.clone() }, log)
    }
}

impl Target for Fake {
    fn kinds(&self) -> &[&'static str] {
        &["read", "write"]
    }

    fn send(&mut self, ticket: u64) -> io::Result<()> {
        let mut log = self.log.borrow_mut();
        log.sent += 1;
        assert_eq!(ticket, log.sent);
        self.under_way.push_back((ticket, self.service_ns.map_or(u64::MAX, |ns| monotonic_ns() + ns)));
        log.most_under_way = log.most_under_way.max(self.under_way.len());
        Ok(())
    }

    fn listen(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> io::Result<()> {
        let now = monotonic_ns();
        let past = until_ns <= now;
        self.log.borrow_mut().looks += u64::from(past);
        self.log.borrow_mut().sleeps += u64::from(!past);
        let first_ns = self.under_way.front().map_or(u64::MAX, |(_, at_ns)| *at_ns);
        thread::sleep(Duration::from_nanos(until_ns.min(first_ns).saturating_sub(now)));
        while let Some(&(ticket, at_ns)) = self.under_way.front().filter(|each| each.1 <= monotonic_ns()) {
            self.under_way.pop_front();
            let result = if ticket.is_multiple_of(3) { Err(Failure::Status("ENOSPC")) } else { Ok(()) };
            ended.push(Ended { ticket, at_ns, kind: usize::from(result.is_err()), result });
        }
        if !ended.is_empty() {
            // Of a request that nobody knows: no answer to anything.
            ended.push(Ended { ticket: 1 << 60, at_ns: now, kind: 0, result: Ok(()) });
        }
        Ok(())
    }

    fn give_up(&mut self, ticket: u64) {
        self.under_way.retain(|each| each.0 != ticket);
        self.log.borrow_mut().given_up.push(ticket);
    }
}

#[test]
fn clients_wait_for_their_answers_before_they_send_again() {
    let (fake, log) = Fake::new(Some(10 * MILLI));
    let load = Load::Closed { clients: 3, think_ns: 5 * MILLI, exponential: false };
    let done = run_on(&Plan { load, outstanding: 3, ..plan() }, fake, None);
    let Summary { offered, started, completed, failed, asked_rate, asked_clients, .. } = *done.summary;
    assert_eq!((asked_rate, asked_clients), (None, Some(3)));
    // A turn takes 15 ms or more, of which there are at most 27 in 400 ms.
    assert!((4..=3 * 27).contains(&offered), "{offered}");
    assert_eq!((started, completed + failed), (offered, offered));
    assert!(log.borrow().most_under_way <= 3);
    assert_eq!(done.summary.failures.errors["ENOSPC"], failed);
    assert!(failed == offered / 3 && done.windows.iter().all(|(_, _, own)| own.waiting == 0));
    let mut all = Tally::new(2);
    done.windows.iter().for_each(|(_, tally, _)| all.add(tally));
    // From when the client would have sent, which is no earlier than its answer's end.
    assert_eq!(all.slower_than(9 * MILLI), all.completed);
}

#[test]
fn clients_whose_requests_are_given_up_go_on() {
    let (fake, log) = Fake::new(None);
    let load = Load::Closed { clients: 2, think_ns: 0, exponential: true };
    let plan = Plan { load, outstanding: 2, timeout_ns: 20 * MILLI, drain_ns: 0, ..plan() };
    let done = run_on(&plan, fake, None);
    let Summary { offered, failed, abandoned, ref failures, .. } = *done.summary;
    assert!((4..=42).contains(&offered) && failed == failures.timeout, "{offered}");
    assert_eq!((offered, abandoned), (failed + 2, 2));
    assert_eq!(log.borrow().given_up, (1..=failed).collect::<Vec<u64>>());
}

#[test]
fn it_waits_as_it_is_told() {
    // Some look for each that it was awake for in time, or a few that came too late to sleep.
    const MANY: u64 = 8;
    const FEW: u64 = 40;
    for (wait, sleeps, looks) in
        [(Wait::Sleep, true, false), (Wait::Hybrid, true, true), (Wait::Spin, false, true)]
    {
        // A busy machine wakes it too late to look.
        let fits = (0..10).any(|_| {
            let (fake, log) = Fake::new(Some(MILLI / 2));
            let done = run_on(&Plan { wait, ..plan() }, fake, None);
            assert_eq!((done.summary.offered, done.summary.failed), (80, 26));
            let log = log.borrow();
            let slept = if sleeps { log.sleeps >= MANY } else { log.sleeps == 0 };
            slept && if looks { log.looks >= MANY } else { log.looks <= FEW }
        });
        assert!(fits, "{wait:?}");
    }
}

#[test]
fn a_schedule_that_was_given_is_kept_and_ends_the_run() {
    let (fake, log) = Fake::new(Some(MILLI));
    let done = run_on(&plan(), fake, Some(vec![0, 0, 50 * MILLI, 150 * MILLI]));
    assert_eq!((done.summary.offered, done.summary.ended, log.borrow().sent), (4, "whole", 4));
    assert_eq!(done.windows.iter().map(|(_, tally, _)| tally.offered).collect::<Vec<_>>(), [3, 1]);
    assert!((0.15..0.2).contains(&done.summary.duration_s) || done.windows.len() == 2);
    assert!(done.summary.cpu_per_request_s.is_some());
}
