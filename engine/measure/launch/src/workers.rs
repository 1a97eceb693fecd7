//! Several workers: each prepares itself and waits at the barrier; then all start at one instant.
//!
//! Where that instant is told from outside (workers of other machines start at it as well), one worker does so, too.

use std::time::Duration;

use crate::barrier::{Barrier, common_start_ns, told_lead_ns};
use crate::child;
use crate::live_worker::Live;
use crate::outcome::WorkerOutcome;
use crate::prepare::Ready;
use crate::spawn;
use crate::watch::Watch;
use crate::{clock, sys};

/// Runs all of `workers` once. `told`: whoever asked for it says when they start.
pub(crate) fn run(
    workers: &mut [&mut Ready],
    told: bool,
    timeout_ns: Option<u64>,
    watch: &mut Watch,
) -> Vec<WorkerOutcome> {
    let barrier = match Barrier::new(workers.len()) {
        Ok(barrier) => barrier,
        Err(error) => return nobody(workers.len(), 0, &format!("no start barrier: {error}")),
    };
    let mut lives = Vec::with_capacity(workers.len());
    for (index, worker) in workers.iter_mut().enumerate() {
        worker.streams.rewind();
        match start(worker, index, &barrier) {
            Ok(started) => lives.push(Live::new(started, WorkerOutcome::default())),
            Err(error) => {
                send_away(&barrier, &mut lives);
                return nobody(workers.len(), index, &format!("no process could be started: {error}"));
            }
        }
    }
    if !gather(&barrier, &mut lives, watch) {
        send_away(&barrier, &mut lives);
        return excuses(workers, &barrier);
    }
    let start = match told.then(|| await_release(&lives, watch)) {
        None => common_start_ns(workers.len()),
        Some(Released::At(start)) => start,
        Some(Released::Late(late_ns)) => {
            send_away(&barrier, &mut lives);
            return refuse(workers.len(), &late(late_ns));
        }
        Some(Released::Not) => {
            send_away(&barrier, &mut lives);
            return excuses(workers, &barrier);
        }
    };
    barrier.open(start);
    watch.limit(timeout_ns.map(|timeout| start.saturating_add(timeout)));
    let reports: Vec<_> = (0..workers.len()).map(|index| &barrier.slot(index).report).collect();
    let mut streams: Vec<_> = workers.iter_mut().map(|worker| &mut worker.streams).collect();
    watch.wait(&mut lives, &mut streams, &reports);
    lives
        .into_iter()
        .zip(workers)
        .enumerate()
        .map(|(index, (live, worker))| judge(live, worker, &barrier, index))
        .collect()
}

fn start(worker: &Ready, index: usize, barrier: &Barrier) -> std::io::Result<spawn::Started> {
    let report = &barrier.slot(index).report;
    // SAFETY: the body only makes system calls and touches memory that is there; a Ready's plan points to what the
    // Ready owns.
    unsafe {
        spawn::fork(|| {
            if !child::become_worker(&worker.plan, report) {
                barrier.ring();
            } else if barrier.pass(index) {
                child::execute(&worker.plan, report);
            }
        })
    }
}

/// Waits until all are ready. False: one has died, or the launch shall end.
fn gather(barrier: &Barrier, lives: &mut [Live], watch: &mut Watch) -> bool {
    loop {
        if barrier.is_full() {
            return !watch.is_ending();
        }
        let mut polled: Vec<_> = lives.iter().map(|live| sys::wanted(live.fd())).collect();
        polled.push(sys::wanted(barrier.bell()));
        polled.extend(watch.news_fds().map(sys::wanted));
        let _ = sys::poll(&mut polled, None);
        if polled[lives.len() + 1..].iter().any(|news| news.revents != 0) {
            watch.look();
        }
        if watch.is_ending() || polled[..lives.len()].iter().any(|worker| worker.revents != 0) {
            return false;
        }
        if polled[lives.len()].revents != 0 && !barrier.is_full() {
            return false;
        }
    }
}

enum Released {
    /// At this instant, which is near.
    At(u64),
    /// At one that has passed, so long ago, ns.
    Late(u64),
    /// The launch shall end, or a worker has died.
    Not,
}

/// Says that all are ready, and waits until shortly before the instant that is then told.
fn await_release(lives: &[Live], watch: &mut Watch) -> Released {
    let lead_ns = told_lead_ns(lives.len());
    let mut start = None;
    watch.say_ready(lives.len());
    loop {
        if watch.is_ending() {
            return Released::Not;
        }
        let now = clock::monotonic_ns();
        if start.is_none() {
            start = watch.take_release();
            if let Some(late_ns) = start.and_then(|start| now.checked_sub(start)) {
                return Released::Late(late_ns);
            }
        }
        // Whoever is woken late opens late: the workers' starts say so.
        let left_ns = match start.map(|start: u64| (start, start.saturating_sub(lead_ns))) {
            Some((start, open)) if now >= open => return Released::At(start),
            opens => opens.map(|(_, open)| open - now),
        };
        let mut polled: Vec<_> = lives.iter().map(|live| sys::wanted(live.fd())).collect();
        polled.extend(watch.news_fds().map(sys::wanted));
        let _ = sys::poll(&mut polled, left_ns);
        if polled[..lives.len()].iter().any(|worker| worker.revents != 0) {
            return Released::Not;
        }
        if polled[lives.len()..].iter().any(|news| news.revents != 0) {
            watch.look();
        }
    }
}

/// One line on an instant that was told too late.
pub(crate) fn late(late_ns: u64) -> String {
    format!(
        "the start time arrived {:.1} ms late: the connection, or this machine, is too slow",
        late_ns as f64 / 1e6
    )
}

/// Ends and reaps all that wait at the barrier.
fn send_away(barrier: &Barrier, lives: &mut [Live]) {
    barrier.break_up();
    std::thread::sleep(Duration::from_micros(100));
    for live in lives {
        sys::kill(live.pid, libc::SIGKILL);
        live.reap(clock::monotonic_ns());
    }
}

/// The outcomes of a trial that did not start: the reason for whom it is known, the others were cancelled.
fn excuses(workers: &[&mut Ready], barrier: &Barrier) -> Vec<WorkerOutcome> {
    let outcome = |(index, worker): (usize, &&mut Ready)| {
        let error = barrier.slot(index).report.failure().map(|failure| worker.explain(failure));
        WorkerOutcome { cancelled: error.is_none(), error, ..WorkerOutcome::default() }
    };
    workers.iter().enumerate().map(outcome).collect()
}

/// None was started, all for one reason.
fn refuse(workers: usize, error: &str) -> Vec<WorkerOutcome> {
    let outcome = WorkerOutcome { error: Some(error.to_owned()), ..WorkerOutcome::default() };
    vec![outcome; workers]
}

fn nobody(workers: usize, failed: usize, error: &str) -> Vec<WorkerOutcome> {
    let outcome = |index| WorkerOutcome {
        cancelled: index != failed,
        error: (index == failed).then(|| error.to_owned()),
        ..WorkerOutcome::default()
    };
    (0..workers).map(outcome).collect()
}

fn judge(live: Live, worker: &Ready, barrier: &Barrier, index: usize) -> WorkerOutcome {
    let slot = barrier.slot(index);
    if let Some(failure) = slot.report.failure() {
        return WorkerOutcome { error: Some(worker.explain(failure)), ..WorkerOutcome::default() };
    }
    // A worker that was ended on its way from the barrier to its start never started.
    let Some(start) = slot.started_ns() else {
        return WorkerOutcome { start_ns: None, elapsed_ns: 0, ..live.outcome };
    };
    WorkerOutcome { start_ns: Some(start), elapsed_ns: live.end_ns.saturating_sub(start), ..live.outcome }
}
