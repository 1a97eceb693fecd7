//! Signals: from now on one only says that the work is to end.

use std::sync::atomic::{AtomicI32, Ordering};

static ENDED: AtomicI32 = AtomicI32::new(0);

pub fn catch_signals() {
    extern "C" fn note(signal: libc::c_int) {
        ENDED.store(signal, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores into an atomic and does nothing else.
        unsafe { libc::signal(signal, note as *const () as libc::sighandler_t) };
    }
}

/// The signal that came, if one did.
pub fn ended() -> Option<u8> {
    match ENDED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal as u8),
    }
}
