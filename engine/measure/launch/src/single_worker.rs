//! One worker: started at the cost of `posix_spawn`, once or `inner` times.

use crate::clock;
use crate::live_worker::Live;
use crate::outcome::{Status, WorkerOutcome};
use crate::prepare::Ready;
use crate::spawn::{self, Stack};
use crate::watch::Watch;

/// Runs `launches` launches of `worker`, one after the other. All but the last have to return 0 for the next to begin.
pub(crate) fn run(
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
            Err(error) => return refused(outcome, format!("no process could be started: {error}")),
        };
        let mut live = Live::new(started, outcome);
        watch.wait(std::slice::from_mut(&mut live), &mut [&mut worker.streams], &[&worker.report]);
        outcome = live.outcome;
        if let Some(failure) = worker.report.failure() {
            return refused(outcome, worker.explain(failure));
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
fn refused(outcome: WorkerOutcome, error: String) -> WorkerOutcome {
    drop(outcome);
    WorkerOutcome { error: Some(error), ..WorkerOutcome::default() }
}
