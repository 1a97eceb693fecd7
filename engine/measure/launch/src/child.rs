//! The child's side between clone and exec: raw system calls only, nothing that allocates or locks.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use libc::{c_char, c_int};

/// Everything a child does before exec, as plain pointers and numbers: made before the clock is read.
#[derive(Debug)]
pub struct Plan {
    /// File to execute.
    pub path: *const c_char,
    /// Null-terminated.
    pub argv: *const *const c_char,
    /// Null-terminated.
    pub envp: *const *const c_char,
    /// Working directory, or null.
    pub cwd: *const c_char,
    /// Descriptors for 0, 1 and 2; -1 keeps what is there. Each is above 2.
    pub stdio: [c_int; 3],
    /// CPU mask, or null.
    pub cpus: *const u64,
    /// Length of the CPU mask in bytes.
    pub cpus_bytes: usize,
    /// Signals to set back to their default action.
    pub defaults: *const c_int,
    /// How many.
    pub defaults_len: usize,
    /// Signal mask of the command.
    pub mask: libc::sigset_t,
    /// Limit of open files to restore, or null.
    pub open_files: *const libc::rlimit,
    /// Lead a new process group.
    pub new_group: bool,
    /// The launcher, whose death shall end the child; 0 for no such link.
    pub parent: libc::pid_t,
}

/// What stopped a child before its exec; in memory that parent and child share.
#[derive(Debug, Default)]
pub struct Report {
    stage: AtomicU32,
    errno: AtomicI32,
}

/// Where a child was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// The launcher has died or the child could not be tied to it.
    Parent = 1,
    /// Restoring a limit.
    Limit,
    /// CPUs.
    Cpus,
    /// Working directory.
    Directory,
    /// Standard streams.
    Streams,
    /// Execution.
    Exec,
}

impl Report {
    /// Forgets an earlier failure.
    pub fn clear(&self) {
        self.stage.store(0, Ordering::Relaxed);
    }

    /// What failed, and its errno.
    pub fn failure(&self) -> Option<(Stage, i32)> {
        let stage = match self.stage.load(Ordering::Acquire) {
            1 => Stage::Parent,
            2 => Stage::Limit,
            3 => Stage::Cpus,
            4 => Stage::Directory,
            5 => Stage::Streams,
            6 => Stage::Exec,
            _ => return None,
        };
        Some((stage, self.errno.load(Ordering::Relaxed)))
    }

    fn fail(&self, stage: Stage) {
        // SAFETY: errno of this thread (or, in a vfork child, of the parent's suspended one) is always there.
        self.errno.store(unsafe { *libc::__errno_location() }, Ordering::Relaxed);
        self.stage.store(stage as u32, Ordering::Release);
    }
}

/// Makes this process what the command expects. False: `report` says what failed.
///
/// # Safety
/// Only in a child that has not executed anything yet; all of `plan`'s pointers are valid.
pub unsafe fn become_worker(plan: &Plan, report: &Report) -> bool {
    // SAFETY: the pointers are valid by contract; each call is async-signal-safe and allocates nothing.
    unsafe {
        if plan.new_group {
            libc::setpgid(0, 0);
        }
        if plan.parent != 0 {
            let tied = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0;
            if !tied || libc::getppid() != plan.parent {
                return refuse(report, Stage::Parent);
            }
        }
        reset_signals(plan);
        if !plan.open_files.is_null() && libc::setrlimit(libc::RLIMIT_NOFILE, plan.open_files) != 0 {
            return refuse(report, Stage::Limit);
        }
        if !plan.cpus.is_null() && libc::sched_setaffinity(0, plan.cpus_bytes, plan.cpus.cast()) != 0 {
            return refuse(report, Stage::Cpus);
        }
        if !plan.cwd.is_null() && libc::chdir(plan.cwd) != 0 {
            return refuse(report, Stage::Directory);
        }
        for (target, &source) in plan.stdio.iter().enumerate() {
            if source >= 0 && libc::dup2(source, target as c_int) < 0 {
                return refuse(report, Stage::Streams);
            }
        }
    }
    true
}

/// Executes the command. Returns only if that failed; `report` says why.
///
/// # Safety
/// As for [`become_worker`].
pub unsafe fn execute(plan: &Plan, report: &Report) {
    // SAFETY: the pointers are valid by contract.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &plan.mask, std::ptr::null_mut());
        libc::execve(plan.path, plan.argv, plan.envp);
    }
    report.fail(Stage::Exec);
}

fn refuse(report: &Report, stage: Stage) -> bool {
    report.fail(stage);
    false
}

/// # Safety
/// As for [`become_worker`].
unsafe fn reset_signals(plan: &Plan) {
    // SAFETY: `defaults` has `defaults_len` elements by contract; a zeroed sigaction is the default action.
    unsafe {
        let action: libc::sigaction = std::mem::zeroed();
        for index in 0..plan.defaults_len {
            libc::sigaction(*plan.defaults.add(index), &action, std::ptr::null_mut());
        }
    }
}
