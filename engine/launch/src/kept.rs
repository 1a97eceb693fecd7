//! Processes that a launch was told to leave alive.
//!
//! Known are those that lived when their launch ended, and all below them. A process that a kept one starts later
//! and abandons is taken for a leftover of the launch that is then under way.

use std::collections::BTreeSet;

use libc::pid_t;

use crate::capture::Capture;
use crate::outcome::Orphans;
use crate::{clock, sys, tree};

/// Time between SIGTERM and SIGKILL, ns.
const GRACE_NS: u64 = 2 * clock::SECOND;

/// What is kept.
#[derive(Default)]
pub(crate) struct Kept {
    pids: BTreeSet<pid_t>,
    /// Streams that kept processes still write to; they are drained so that nobody blocks.
    pub captures: Vec<Capture>,
}

impl Kept {
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    pub fn contains(&self, pid: pid_t) -> bool {
        self.pids.contains(&pid)
    }

    /// Takes note that `pid` was reaped. Whether it had been kept.
    pub fn forget(&mut self, pid: pid_t) -> bool {
        self.pids.remove(&pid)
    }

    /// Keeps all that lives now below the launcher.
    pub fn keep(&mut self) {
        let found = tree::descendants(self);
        self.pids.extend(found);
    }

    /// Ends all of it: SIGTERM, then SIGKILL. How many processes that were.
    pub fn end(&mut self) -> usize {
        let mut ignored = Orphans::default();
        tree::reap(self, &mut ignored);
        self.pids.clear();
        let found = tree::descendants(self);
        if !found.is_empty() {
            for &pid in &found {
                sys::kill(pid, libc::SIGTERM);
            }
            tree::await_end(self, &mut ignored, clock::monotonic_ns() + GRACE_NS);
        }
        tree::end(self, &mut ignored);
        self.captures.clear();
        found.len()
    }
}
