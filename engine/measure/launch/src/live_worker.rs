//! A worker that was started, until it is reaped.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::outcome::{Status, WorkerOutcome};
use crate::spawn::Started;
use crate::sys::{self, Wait};

/// A worker that was started.
pub(crate) struct Live {
    pub pid: libc::pid_t,
    pidfd: Option<OwnedFd>,
    /// When its end was seen, ns.
    pub end_ns: u64,
    pub outcome: WorkerOutcome,
}

impl Live {
    pub fn new(started: Started, outcome: WorkerOutcome) -> Live {
        Live { pid: started.pid, pidfd: Some(started.pidfd), end_ns: 0, outcome }
    }

    /// Readable when it has ended; -1 once it is reaped.
    pub fn fd(&self) -> RawFd {
        self.pidfd.as_ref().map_or(-1, |pidfd| pidfd.as_raw_fd())
    }

    pub fn has_ended(&self) -> bool {
        self.pidfd.is_none()
    }

    /// Takes note that its end was seen at `now_ns`.
    pub fn reap(&mut self, now_ns: u64) {
        if let Wait::Reaped(reaped) = sys::wait(self.pid, 0) {
            self.outcome.status = Some(Status::from_wait(reaped.status));
            self.outcome.usage.add(&reaped.usage);
        }
        self.outcome.launches += 1;
        self.end_ns = now_ns;
        self.pidfd = None;
    }
}
