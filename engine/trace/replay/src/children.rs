//! The children of a player: threads of its process, and processes. Each of them plays a thread of the roll.

use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::shared::{GONE, Shared, sleep_on};

/// With the numbers of the threads that they play.
#[derive(Default)]
pub struct Children {
    threads: Vec<(JoinHandle<()>, usize)>,
    processes: Vec<(libc::pid_t, usize)>,
}

impl Children {
    pub fn add_thread(&mut self, started: JoinHandle<()>, number: usize) {
        self.threads.push((started, number));
    }

    pub fn add_process(&mut self, pid: libc::pid_t, number: usize) {
        self.processes.push((pid, number));
    }

    /// Whether all have ended, and all that they have started.
    pub fn are_gone(&self, shared: &Shared) -> bool {
        let threads = self.threads.iter().map(|(_, number)| *number);
        let mut all = threads.chain(self.processes.iter().map(|(_, number)| *number));
        all.all(|number| shared.lane(number).ended.load(Ordering::Acquire) == GONE)
    }

    /// Waits until the threads have played all of theirs; what they have started may live on.
    pub fn wait_for_threads(&self, shared: &Shared) {
        for (_, number) in &self.threads {
            let ended = &shared.lane(*number).ended;
            while ended.load(Ordering::Acquire) == 0 {
                sleep_on(ended, 0);
            }
        }
    }

    /// Reaps a process that has ended: it would count as one. One that lives on for those that it has started is kept: who
    /// waits for it does not wait for them. Whether it was killed.
    pub fn reap(&mut self, number: usize, shared: &Shared) -> bool {
        let place = self.processes.iter().position(|(_, other)| *other == number);
        match place.filter(|_| shared.lane(number).ended.load(Ordering::Acquire) == GONE) {
            Some(place) => {
                let (pid, _) = self.processes.swap_remove(place);
                is_killed(libc::P_PID, pid, libc::WEXITED)
            }
            None => false,
        }
    }

    /// Waits for the end of all: processes outlive those that have started them, but die with the thread here. `broke` is
    /// called at once where one was killed: others may wait for it.
    pub fn outlast(self, broke: impl Fn()) {
        for _ in self.processes {
            // Of this thread's own, whichever ends first.
            if is_killed(libc::P_ALL, 0, libc::WEXITED | libc::__WNOTHREAD) {
                broke();
            }
        }
        for (thread, _) in self.threads {
            drop(thread.join());
        }
    }
}

/// Waits as `waitid` does; whether a process was found that has ended otherwise than by its own will.
fn is_killed(which: libc::idtype_t, pid: libc::pid_t, options: libc::c_int) -> bool {
    // SAFETY: zeros are a valid value, in which the kernel writes what it found.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let mut waited = || libc::waitid(which, pid as libc::id_t, &raw mut found, options);
        let mut done = waited();
        while done != 0 && *libc::__errno_location() == libc::EINTR {
            done = waited();
        }
        done == 0 && found.si_pid() != 0 && (found.si_code, found.si_status()) != (libc::CLD_EXITED, 0)
    }
}
