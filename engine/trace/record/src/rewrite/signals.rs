//! Signals that end the recording of a running process, and changes of its threads, as one queue of events.

use crate::rewrite::remote::Pid;

/// The next step of the tracer.
pub enum Next {
    Changed(Pid, i32),
    /// The recording is to end.
    Asked,
}

/// Those that end the recording of a running process, and the one that tells of its stops. No handler is run.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Before another thread is started: all have to block them.
    pub fn block() -> Signals {
        // SAFETY: places that are filled before they are read.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&mut set, signal);
                }
            }
            libc::signal(libc::SIGCHLD, libc::SIG_DFL); // who starts us may ignore it
            libc::sigaddset(&mut set, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Signals(set)
        }
    }

    /// Waits for it; None when nobody is left.
    pub fn next(&self) -> Option<Next> {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            // SAFETY: a set that was filled; nothing is written to a null pointer.
            if ends(unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &at_once) }) {
                return Some(Next::Asked);
            }
            if let Some((pid, status)) = poll()? {
                return Some(Next::Changed(pid, status));
            }
            // SAFETY: as above.
            if ends(unsafe { libc::sigwaitinfo(&self.0, std::ptr::null_mut()) }) {
                return Some(Next::Asked);
            }
        }
    }
}

fn ends(signal: libc::c_int) -> bool {
    signal > 0 && signal != libc::SIGCHLD
}

/// The change of a thread's state, if there was one; None when nobody is left.
pub fn poll() -> Option<Option<(Pid, i32)>> {
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    match unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) } {
        0 => Some(None),
        pid if pid > 0 => Some(Some((pid, status))),
        _ => None,
    }
}
