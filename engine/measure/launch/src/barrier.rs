//! A start barrier: prepared workers sleep until all are there, then all start at one instant.
//!
//! The release is an instant a little in the future: a worker that is woken early waits for it on the clock, so that
//! the order in which the kernel wakes them does not matter.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::child::Report;
use crate::shared::Shared;
use crate::{clock, futex, sys};

/// From the release to the start, ns: time for the kernel to wake the workers. More workers need longer.
const LEAD_NS: u64 = 200_000;
const LEAD_PER_WORKER_NS: u64 = 10_000;
const LEAD_MOST_NS: u64 = 2_000_000;

/// As much more where the instant is told from outside: time for the engine itself to be woken.
const TOLD_LEAD_NS: u64 = 4_000_000;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const BROKEN: u32 = 2;

/// The instant at which `workers` that are released now all start (monotonic, ns).
pub(crate) fn common_start_ns(workers: usize) -> u64 {
    clock::monotonic_ns() + lead_ns(workers)
}

/// How long before an instant that was told `workers` are released, ns.
pub(crate) fn told_lead_ns(workers: usize) -> u64 {
    lead_ns(workers) + TOLD_LEAD_NS
}

fn lead_ns(workers: usize) -> u64 {
    (LEAD_NS + LEAD_PER_WORKER_NS * workers as u64).min(LEAD_MOST_NS)
}

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
    memory: Shared,
    workers: usize,
    bell: OwnedFd,
}

impl Barrier {
    /// A closed barrier for `workers`.
    pub fn new(workers: usize) -> io::Result<Barrier> {
        let memory = Shared::anonymous(size_of::<Slot>() * (workers + 1))?;
        Ok(Barrier { memory, workers, bell: sys::eventfd()? })
    }

    /// Becomes readable when all are ready, or one has failed.
    pub fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Whether all workers are ready.
    pub fn is_full(&self) -> bool {
        self.head().ready.load(Ordering::Acquire) as usize == self.workers
    }

    /// Opens the barrier: all start at the instant `start_at` (monotonic, ns).
    pub fn open(&self, start_at: u64) {
        self.head().start_at_ns.store(start_at, Ordering::Relaxed);
        self.set_gate(OPEN);
    }

    /// Sends all that wait away.
    pub fn break_up(&self) {
        self.set_gate(BROKEN);
    }

    /// The place of one worker.
    pub fn slot(&self, worker: usize) -> &Slot {
        debug_assert!(worker < self.workers);
        // SAFETY: places follow each other at this size, the first is the head's; a Slot is all atomics.
        unsafe { self.memory.at(size_of::<Slot>() * (worker + 1)) }
    }

    /// In a child: says that it is ready and waits. False: the barrier was broken up.
    pub fn pass(&self, worker: usize) -> bool {
        let head = self.head();
        if head.ready.fetch_add(1, Ordering::AcqRel) as usize + 1 == self.workers {
            self.ring();
        }
        while head.gate.load(Ordering::Acquire) == CLOSED {
            futex::wait(&head.gate, CLOSED);
        }
        if head.gate.load(Ordering::Acquire) != OPEN {
            return false;
        }
        let now = clock::spin_until(head.start_at_ns.load(Ordering::Relaxed));
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
        // SAFETY: the first place; a Head is all atomics.
        unsafe { self.memory.at(0) }
    }

    fn set_gate(&self, gate: u32) {
        self.head().gate.store(gate, Ordering::Release);
        futex::wake_all(&self.head().gate);
    }
}

impl Slot {
    /// When the worker started (monotonic, ns), if it did.
    pub fn started_ns(&self) -> Option<u64> {
        Some(self.started_ns.load(Ordering::Acquire)).filter(|&started| started != 0)
    }
}
