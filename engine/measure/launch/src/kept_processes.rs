//! Processes that a launch was told to leave alive.
//!
//! Known are those that lived when their launch ended, and all below them. A process that a kept one starts later
//! and abandons is taken for a leftover of the launch that is then under way.

use std::collections::BTreeSet;

use libc::pid_t;

use crate::capture::Capture;

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

    /// Processes that are kept from now on.
    pub fn add(&mut self, pids: Vec<pid_t>) {
        self.pids.extend(pids);
    }

    /// None of them is kept any more.
    pub fn forget_all(&mut self) {
        self.pids.clear();
    }
}
