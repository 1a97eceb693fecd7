//! A start barrier: prepared workers sleep until all are there, then all start at one instant.
//!
//! The release is an instant a little in the future: a worker that is woken early waits for it on the clock, so that
//! the order in which the kernel wakes them does not matter.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::child::Report;
use crate::{clock, sys};

/// From the release to the start, ns: time for the kernel to wake the workers. More workers need longer.
const LEAD_NS: u64 = 200_000;
const LEAD_PER_WORKER_NS: u64 = 10_000;
const LEAD_MOST_NS: u64 = 2_000_000;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const BROKEN: u32 = 2;

#[repr(C)]
struct Head {
    gate: AtomicU32,
    ready: AtomicU32,
    start_at_ns: AtomicU64,
}

/// A worker's place in the shared memory, a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct Slot {
    started_ns: AtomicU64,
    pub report: Report,
}

/// The barrier, in memory that parent and children share.
pub(crate) struct Barrier {
    map: NonNull<libc::c_void>,
    bytes: usize,
    workers: usize,
    bell: OwnedFd,
}

impl Barrier {
    /// A closed barrier for `workers`.
    pub fn new(workers: usize) -> io::Result<Barrier> {
        let bytes = size_of::<Slot>() * (workers + 1);
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping touches no existing memory.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(sys::last_error());
        }
        let map = NonNull::new(map).ok_or_else(sys::last_error)?;
        Ok(Barrier { map, bytes, workers, bell: sys::eventfd()? })
    }

    /// Becomes readable when all are ready, or one has failed.
    pub fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Whether all workers are ready.
    pub fn is_full(&self) -> bool {
        self.head().ready.load(Ordering::Acquire) as usize == self.workers
    }

    /// Opens the barrier: all start at one instant, which is returned (monotonic, ns).
    pub fn open(&self) -> u64 {
        let lead = (LEAD_NS + LEAD_PER_WORKER_NS * self.workers as u64).min(LEAD_MOST_NS);
        let start_at = clock::monotonic_ns() + lead;
        self.head().start_at_ns.store(start_at, Ordering::Relaxed);
        self.set_gate(OPEN);
        start_at
    }

    /// Sends all that wait away.
    pub fn break_up(&self) {
        self.set_gate(BROKEN);
    }

    /// The place of one worker.
    pub fn slot(&self, worker: usize) -> &Slot {
        debug_assert!(worker < self.workers);
        // SAFETY: the mapping has workers + 1 places of this size, zeroed by the kernel, which is a valid Slot; the
        // first is the head's.
        unsafe { self.map.cast::<Slot>().add(worker + 1).as_ref() }
    }

    /// In a child: says that it is ready and waits. False: the barrier was broken up.
    pub fn pass(&self, worker: usize) -> bool {
        let head = self.head();
        if head.ready.fetch_add(1, Ordering::AcqRel) as usize + 1 == self.workers {
            self.ring();
        }
        while head.gate.load(Ordering::Acquire) == CLOSED {
            futex(&head.gate, libc::FUTEX_WAIT, CLOSED);
        }
        if head.gate.load(Ordering::Acquire) != OPEN {
            return false;
        }
        let start_at = head.start_at_ns.load(Ordering::Relaxed);
        let mut now = clock::monotonic_ns();
        while now < start_at {
            std::hint::spin_loop();
            now = clock::monotonic_ns();
        }
        self.slot(worker).started_ns.store(now, Ordering::Release);
        true
    }

    /// In a child: tells the parent that there is something to see.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: an eventfd takes eight bytes.
        unsafe { libc::write(self.bell(), (&raw const one).cast(), size_of::<u64>()) };
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping's first place is large enough for a Head, and zeroes are a valid one.
        unsafe { self.map.cast::<Head>().as_ref() }
    }

    fn set_gate(&self, gate: u32) {
        self.head().gate.store(gate, Ordering::Release);
        futex(&self.head().gate, libc::FUTEX_WAKE, i32::MAX as u32);
    }
}

impl Slot {
    /// When the worker started (monotonic, ns), if it did.
    pub fn started_ns(&self) -> Option<u64> {
        Some(self.started_ns.load(Ordering::Acquire)).filter(|&started| started != 0)
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives the Barrier.
        unsafe { libc::munmap(self.map.as_ptr(), self.bytes) };
    }
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: `word` is a valid futex through the call; without a timeout the rest is unused. Not FUTEX_PRIVATE, as
    // the waiters are other processes.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
}
