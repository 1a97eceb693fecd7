//! Sleeping on a word of memory that processes share.

use std::sync::atomic::AtomicU32;

/// Sleeps while `word` is `value`, or shorter: the caller looks again.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    call(word, libc::FUTEX_WAIT, value);
}

/// Wakes all that sleep on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    call(word, libc::FUTEX_WAKE, i32::MAX as u32);
}

fn call(word: &AtomicU32, operation: libc::c_int, value: u32) {
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: `word` is a valid futex through the call; without a timeout the rest is unused. Not
    // FUTEX_PRIVATE, as the waiters are other processes.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
}
