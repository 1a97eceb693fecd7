//! Whether a replay can go on: not where its threads all wait for each other, or one of its processes was killed.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::player::{Broken, KILLED, KNOT};
use crate::shared::Shared;

/// After so long without a call, threads that all wait for each other wait for ever.
const KNOTTED: Duration = Duration::from_secs(5);
/// So often it is seen whether processes live.
const LOOKS: Duration = Duration::from_millis(200);

/// To be asked some times a second.
pub(crate) struct Watch {
    done: u64,
    since: Instant,
    looked: Instant,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { done: 0, since: Instant::now(), looked: Instant::now() }
    }
}

impl Watch {
    /// Why it cannot go on.
    pub(crate) fn found(&mut self, shared: &Shared) -> Option<Broken> {
        if self.looked.elapsed() > LOOKS {
            self.looked = Instant::now();
            if shared.processes().into_iter().any(|pid| is_dead(pid) && shared.processes().contains(&pid)) {
                return Some(KILLED);
            }
        }
        let done: u64 = shared.lanes().map(|lane| lane.done.load(Ordering::Relaxed)).sum();
        if done != self.done || !all_wait(shared) {
            (self.done, self.since) = (done, Instant::now());
        }
        (self.since.elapsed() > KNOTTED).then_some(KNOT)
    }
}

/// Whether a process has ended, waited for or not.
fn is_dead(pid: libc::pid_t) -> bool {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(|byte| *byte == b')').next().is_some_and(|rest| rest.starts_with(b" Z")),
        Err(_) => Path::new("/proc/self/stat").exists(),
    }
}

/// Whether every thread that has begun and not ended waits for another.
fn all_wait(shared: &Shared) -> bool {
    let mut playing = shared.playing().peekable();
    playing.peek().is_some() && playing.all(|lane| lane.stuck.load(Ordering::Relaxed) != 0)
}
