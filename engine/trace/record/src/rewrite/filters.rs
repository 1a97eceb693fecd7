//! Filters of system calls (seccomp) that a program has set itself: calls that the launcher makes in it have to pass.

use std::io;

use crate::rewrite::exec_start::OPTIONS;
use crate::rewrite::remote::{Pid, Status, ptrace};

/// A stopped thread that no filter holds, as long as this lives.
pub struct Suspended(Option<Pid>);

impl Suspended {
    /// # Errors
    /// It has a filter, which may kill it for a call of ours, and the launcher may not suspend that (only root may).
    pub fn begin(tid: Pid, status: &Status) -> io::Result<Suspended> {
        if status.field("Seccomp:").is_none_or(|mode| mode == "0") {
            return Ok(Suspended(None));
        }
        let options = OPTIONS | libc::PTRACE_O_SUSPEND_SECCOMP;
        match ptrace(libc::PTRACE_SETOPTIONS, tid, 0, options as usize) {
            Ok(_) => Ok(Suspended(Some(tid))),
            Err(_) => {
                Err(io::Error::other("its system calls are filtered (seccomp), and only root suspends that"))
            }
        }
    }
}

impl Suspended {
    /// Whether there are filters.
    pub fn any(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if let Some(tid) = self.0 {
            let _ = ptrace(libc::PTRACE_SETOPTIONS, tid, 0, OPTIONS as usize); // it is gone
        }
    }
}
