//! Starting one process at the cost of `posix_spawn`: the child borrows the launcher's memory until its exec.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{c_int, c_void};

use crate::child::{self, Plan, Report};

const STACK_BYTES: usize = 64 * 1024;

/// A started process and the descriptor that becomes readable when it has ended.
#[derive(Debug)]
pub struct Started {
    /// The process.
    pub pid: libc::pid_t,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
}

/// The stack that children run on until their exec.
#[repr(C, align(16))]
pub struct Stack([u8; STACK_BYTES]);

impl Stack {
    /// A new stack; one serves any number of launches, one after the other.
    pub fn new() -> Box<Stack> {
        // SAFETY: all bit patterns, so also zeros, are valid bytes.
        unsafe { Box::<Stack>::new_zeroed().assume_init() }
    }
}

struct Errand<'a> {
    plan: &'a Plan,
    report: &'a Report,
}

/// Starts `plan`. When this returns, the child has executed its command or `report` says why not.
///
/// # Safety
/// All of `plan`'s pointers are valid.
pub unsafe fn spawn(plan: &Plan, report: &Report, stack: &mut Stack) -> io::Result<Started> {
    report.clear();
    let errand = Errand { plan, report };
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the stack's end is in bounds and aligned; CLONE_VFORK suspends us until the child has left our
    // memory, so that `errand`, the stack and `pidfd` outlive its use of them.
    let pid = unsafe {
        let top = stack.0.as_mut_ptr().add(STACK_BYTES).cast::<c_void>();
        libc::clone(run, top, flags, (&raw const errand).cast_mut().cast(), &mut pidfd)
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(Started { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

extern "C" fn run(errand: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a valid Errand and waits for us; we are a child that has not executed anything yet.
    unsafe {
        let errand = &*errand.cast::<Errand>();
        if child::become_worker(errand.plan, errand.report) {
            child::execute(errand.plan, errand.report);
        }
        libc::_exit(127)
    }
}

/// Forks: `body` runs in the child, in its own copy of our memory, and the child ends after it.
///
/// # Safety
/// `body` does only what is allowed between fork and exec: it neither allocates nor locks nor panics.
pub unsafe fn fork(body: impl FnOnce()) -> io::Result<Started> {
    let mut pidfd: c_int = -1;
    let flags = libc::c_long::from(libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: without CLONE_VM the child has its own memory; `pidfd` is a valid place for the answer. The last two
    // arguments change places between architectures, and are both unused.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, &raw mut pidfd, 0usize, 0usize) };
    match pid {
        0 => {
            body();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(127) }
        }
        pid if pid > 0 => {
            // SAFETY: the kernel has just made this descriptor for us.
            Ok(Started { pid: pid as libc::pid_t, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
        }
        _ => Err(io::Error::last_os_error()),
    }
}
