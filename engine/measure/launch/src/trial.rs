//! One trial, from its start to the record of what it left behind.

use std::fs::{File, OpenOptions};
use std::io;
use std::rc::Rc;

use etude_protocol::Worker;
use libc::c_int;

use crate::capture::CHUNK_BYTES;
use crate::kept_processes::Kept;
use crate::live_worker::Live;
use crate::outcome::{Orphans, Outcome, Status, WorkerOutcome};
use crate::prepare::{Common, Options, Prepared, Ready};
use crate::spawn::Stack;
use crate::watch::{Control, Watch};
use crate::{clock, spawn, sys, tree, workers};

/// More workers than this need more open files than some systems allow at first.
const MANY_WORKERS: usize = 100;

/// Starts workers and knows what still lives of them.
pub struct Launcher {
    null: File,
    defaults: Rc<[c_int]>,
    open_files: Option<libc::rlimit>,
    stack: Box<Stack>,
    buffer: Vec<u8>,
    kept: Kept,
}

impl Launcher {
    /// Makes this process a launcher: orphans among its descendants become its children. One a process.
    pub fn new() -> io::Result<Launcher> {
        sys::become_subreaper()?;
        Ok(Launcher {
            null: OpenOptions::new().read(true).write(true).open("/dev/null")?,
            defaults: sys::ignored_signals().into(),
            open_files: None,
            stack: Stack::new(),
            buffer: vec![0; CHUNK_BYTES],
            kept: Kept::default(),
        })
    }

    /// Does all that can be done before the clock is read, once for any number of trials.
    pub fn prepare(&mut self, workers: &[Worker], options: Options) -> Prepared {
        if workers.len() > MANY_WORKERS && self.open_files.is_none() {
            self.open_files = sys::raise_open_files();
        }
        let common = Common {
            null: &self.null,
            defaults: Rc::clone(&self.defaults),
            open_files: self.open_files,
            parent: std::process::id() as libc::pid_t,
        };
        Prepared::new(workers, &common, options)
    }

    /// Runs one trial.
    pub fn run(&mut self, prepared: &mut Prepared, control: &mut dyn Control) -> Outcome {
        if control.cancelled() || !prepared.is_ready() {
            return not_started(prepared);
        }
        let options = prepared.options;
        let mut ready: Vec<&mut Ready> = prepared.workers.iter_mut().flatten().collect();
        let inside = prepared.inside.as_ref().inspect(|inside| inside.reset());
        let mut watch = Watch::new(control, &mut self.kept, &mut self.buffer, &options, inside);
        let mut workers = match ready.as_mut_slice() {
            [one] if !options.told => {
                vec![run_alone(one, options.inner, options.timeout_ns, &mut self.stack, &mut watch)]
            }
            many => workers::run(many, options.told, options.timeout_ns, &mut watch),
        };
        let grace_until_ns = watch.grace_until_ns();
        let late = watch.late_ns().map(workers::late);
        let mut outcome = self.settle(grace_until_ns, options.keep_leftovers);
        for (worker, ready) in workers.iter_mut().zip(&mut ready) {
            [worker.stdout, worker.stderr] = ready.captured(&mut self.buffer);
        }
        outcome.notes.extend(late);
        outcome.notes.extend(inside.and_then(|inside| inside.reason(&workers)));
        outcome.workers = workers;
        outcome
    }

    /// Deals with what outlives the workers.
    fn settle(&mut self, grace_until_ns: Option<u64>, keep: bool) -> Outcome {
        let mut orphans = Orphans::default();
        let mut notes = Vec::new();
        if let Some(until) = grace_until_ns {
            tree::await_end(&mut self.kept, &mut orphans, until);
        }
        if keep && grace_until_ns.is_none() {
            if tree::reap(&mut self.kept, &mut orphans) {
                tree::keep_descendants(&mut self.kept);
            }
        } else if !tree::end(&mut self.kept, &mut orphans) {
            notes.push(
                "processes left over could not be ended within 10 s; they disturb what follows".to_owned(),
            );
        }
        Outcome { workers: Vec::new(), orphans, notes }
    }

    /// After the last trial: streams that kept processes may still write to stay open.
    pub fn retire(&mut self, prepared: Prepared) {
        if !prepared.options.keep_leftovers || self.kept.is_empty() {
            return;
        }
        let ready = prepared.workers.into_iter().flatten();
        self.kept.captures.extend(ready.flat_map(|ready| ready.streams.captures.into_iter().flatten()));
    }

    /// Ends what launches were told to keep: SIGTERM, 2 s later SIGKILL. How many processes that were.
    pub fn end_kept(&mut self) -> usize {
        tree::end_kept(&mut self.kept)
    }

    /// Descriptors of streams that kept processes write to, to be polled while nothing runs.
    pub fn idle_fds(&self) -> impl Iterator<Item = std::os::fd::RawFd> {
        self.kept.captures.iter().map(|capture| capture.read_end())
    }

    /// Empties those streams.
    pub fn drain_idle(&mut self) {
        for capture in &mut self.kept.captures {
            capture.drain(&mut self.buffer);
        }
    }
}

/// The outcome of a trial that cannot or shall not start: reasons where there are some, the others were cancelled.
fn not_started(prepared: &Prepared) -> Outcome {
    let outcome = |worker: &Result<Ready, String>| WorkerOutcome {
        cancelled: worker.is_ok(),
        error: worker.as_ref().err().cloned(),
        ..WorkerOutcome::default()
    };
    Outcome { workers: prepared.workers.iter().map(outcome).collect(), ..Outcome::default() }
}

/// Starts one worker at the cost of `posix_spawn`, `launches` times, one after the other. All but the last have to return 0 for
/// the next to begin.
fn run_alone(
    worker: &mut Ready,
    launches: u32,
    timeout_ns: Option<u64>,
    stack: &mut Stack,
    watch: &mut Watch,
) -> WorkerOutcome {
    let mut outcome = WorkerOutcome::default();
    let mut left = launches;
    while left > 0 {
        left -= 1;
        worker.streams.rewind();
        let now = clock::monotonic_ns();
        let start = *outcome.start_ns.get_or_insert_with(|| {
            watch.limit(timeout_ns.map(|timeout| now.saturating_add(timeout)));
            now
        });
        // SAFETY: a Ready's plan points to what the Ready owns.
        let started = match unsafe { spawn::spawn(&worker.plan, &worker.report, stack) } {
            Ok(started) => started,
            Err(error) => return refused(format!("no process could be started: {error}")),
        };
        let mut live = Live::new(started, outcome);
        watch.wait(std::slice::from_mut(&mut live), &mut [&mut worker.streams], &[&worker.report]);
        outcome = live.outcome;
        if let Some(failure) = worker.report.failure() {
            return refused(worker.explain(failure));
        }
        outcome.elapsed_ns = live.end_ns - start;
        if outcome.status != Some(Status::Exited(0)) || watch.is_ending() {
            break;
        }
    }
    outcome.cancelled |= left > 0 && outcome.status == Some(Status::Exited(0)) && !outcome.timed_out;
    outcome
}

/// A worker that could not be started has no times and no status, only the reason.
fn refused(error: String) -> WorkerOutcome {
    WorkerOutcome { error: Some(error), ..WorkerOutcome::default() }
}
