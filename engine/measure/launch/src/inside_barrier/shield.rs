//! SIGTERM while a command waits at a barrier: it ends the command, but not once the barrier is broken.
//!
//! The engine breaks the barrier, and at the first that it hears of ends the whole trial. Without a shield,
//! SIGTERM would overtake those that have not yet said why they were sent away.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

use super::BROKEN;

static GATE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
static WAITS_AT: AtomicU32 = AtomicU32::new(0);

/// A shield that is up. One a process.
pub(super) struct Shield {
    was_ignored: bool,
}

impl Shield {
    /// Raises it over a wait at `gate`, which stays where it is until the shield is lowered.
    pub fn raise(gate: &AtomicU32) -> Shield {
        WAITS_AT.store(gate.load(SeqCst), SeqCst);
        GATE.store(ptr::from_ref(gate).cast_mut(), SeqCst);
        let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let was_ignored = set(handler) == libc::SIG_IGN;
        if was_ignored {
            set(libc::SIG_IGN);
        }
        Shield { was_ignored }
    }

    /// The wait is at this state of the gate.
    pub fn guard(&self, gate: u32) {
        WAITS_AT.store(gate, SeqCst);
    }

    /// The wait is over. If it was in vain, SIGTERM stays without effect.
    pub fn lower(self, passed: bool) {
        let ignore = self.was_ignored || !passed;
        set(if ignore { libc::SIG_IGN } else { libc::SIG_DFL });
        GATE.store(ptr::null_mut(), SeqCst);
    }
}

fn set(action: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: the handler makes no calls but to signal and raise, and only looks at atomics.
    unsafe { libc::signal(libc::SIGTERM, action) }
}

extern "C" fn on_signal(signal: libc::c_int) {
    let gate = GATE.load(SeqCst);
    // SAFETY: not null only while the gate is there.
    if !gate.is_null() && unsafe { (*gate).load(SeqCst) } == WAITS_AT.load(SeqCst) | BROKEN {
        return;
    }
    // SAFETY: both may be called from a handler; the signal takes effect when it returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
