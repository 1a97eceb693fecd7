//! What the sender tells the receiver beside the bytes: memory that both have, also if they are two processes.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use etude_micro::exit::{Fail, OSERR};
use etude_micro::usage::Usage;

/// All of it begins as zeros.
pub(crate) struct Told {
    /// The receiver is about to read.
    ready: AtomicBool,
    /// The sender's clock just before the first byte; clocks of two CPUs agree.
    start_ns: AtomicU64,
    usage: [AtomicU64; 6],
    /// Exit status and line of a sender that failed: the status is written last.
    code: AtomicU8,
    length: AtomicU32,
    line: [AtomicU8; 400],
}

impl Told {
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub fn set_start_ns(&self, instant_ns: u64) {
        self.start_ns.store(instant_ns, Ordering::Release);
    }

    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Acquire)
    }

    pub fn set_usage(&self, usage: Usage) {
        let Usage { utime_ns, stime_ns, nvcsw, nivcsw, inblock, oublock } = usage;
        for (place, value) in self.usage.iter().zip([utime_ns, stime_ns, nvcsw, nivcsw, inblock, oublock]) {
            place.store(value, Ordering::Release);
        }
    }

    pub fn usage(&self) -> Usage {
        let [utime_ns, stime_ns, nvcsw, nivcsw, inblock, oublock] =
            self.usage.each_ref().map(|place| place.load(Ordering::Acquire));
        Usage { utime_ns, stime_ns, nvcsw, nivcsw, inblock, oublock }
    }

    pub fn set_failure(&self, fail: &Fail) {
        let bytes = fail.line.as_bytes();
        for (place, byte) in self.line.iter().zip(bytes) {
            place.store(*byte, Ordering::Release);
        }
        self.length.store(bytes.len().min(self.line.len()) as u32, Ordering::Release);
        self.code.store(fail.code, Ordering::Release);
    }

    pub fn failure(&self) -> Option<Fail> {
        let code = self.code.load(Ordering::Acquire);
        let length = self.length.load(Ordering::Acquire) as usize;
        let bytes: Vec<_> = self.line[..length].iter().map(|byte| byte.load(Ordering::Acquire)).collect();
        (code != 0).then(|| Fail::new(code, String::from_utf8_lossy(&bytes)))
    }
}

/// A mapping that a fork shares.
pub(crate) struct Shared(NonNull<Told>);

// SAFETY: what it points to is atomics alone, and stays until this is dropped.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps one.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn map() -> Result<Shared, Fail> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing else.
        let memory = unsafe { libc::mmap(ptr::null_mut(), size_of::<Told>(), protection, flags, -1, 0) };
        let memory = (memory != libc::MAP_FAILED).then(|| NonNull::new(memory.cast())).flatten();
        memory.map(Shared).ok_or_else(|| Fail::last(OSERR, "map memory that two processes share"))
    }
}

impl Deref for Shared {
    type Target = Told;

    fn deref(&self) -> &Told {
        // SAFETY: the mapping is large enough, aligned to a page, and stays; zeros are a value of each atomic in it.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is its own, and nothing borrows it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Told>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_heard() {
        let told = Shared::map().expect("there is memory");
        assert_eq!((told.is_ready(), told.start_ns(), told.failure()), (false, 0, None));
        let usage = Usage { utime_ns: 1, stime_ns: 2, nvcsw: 3, nivcsw: 4, inblock: 5, oublock: 6 };
        told.set_usage(usage);
        told.set_failure(&Fail::new(OSERR, "é".repeat(300)));
        assert_eq!(told.usage(), usage);
        assert!(told.failure().is_some_and(|fail| fail.code == OSERR && fail.line.starts_with("ééé")));
    }
}
