//! A barrier that is reached from inside the workers: by a command of each, any number of times.
//!
//! The engine makes it (`host.rs`); a command of a worker opens its address and waits (`member.rs`). Who
//! comes last releases all, without the engine; where the instant is told from outside, it rings the engine's bell. When a worker ends, the engine breaks the barrier: from
//! then on it could never be full again. Those that were released before pass even if they have not woken
//! yet.
//!
//! No lock guards the state, as any process may be stopped or killed at any point, and the engine must not
//! wait for it. The gate is one word: twice the number of releases so far, and 1 more once it is broken. A
//! worker has arrived if its place says so for this gate *and* its byte of the file is locked. The kernel
//! takes the lock from a waiter that dies.

mod host;
mod member;
mod shield;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

pub(crate) use host::{Inside, told};
pub use member::{Member, NotPassed};

use crate::shared::Shared;
use crate::sys;

/// Where a worker finds the address of its barrier, a name that benchmark scripts know from Auto-pilot.
pub const VARIABLE: &str = "APIPCKEY";

const MAGIC: u64 = u64::from_le_bytes(*b"etudebar");

/// The gate's bit for broken.
const BROKEN: u32 = 1;

/// What a place holds of a worker that has not arrived; odd numbers are gates.
const ABSENT: u32 = 0;

/// For the head, B; the places follow.
const HEAD_BYTES: usize = 64;

#[repr(C)]
struct Head {
    magic: AtomicU64,
    /// The instant of the last release, monotonic.
    start_at_ns: AtomicU64,
    workers: AtomicU32,
    /// The engine's descriptor that hears of those sent away.
    bell: AtomicU32,
    gate: AtomicU32,
    /// Who broke it: the number of a worker, plus 1; 0 for the engine.
    broken_by: AtomicU32,
    /// 1 once somebody was sent away.
    sent_away: AtomicU32,
    /// 1 if the engine releases: who comes last rings its bell.
    told: AtomicU32,
}

/// The barrier's state, in a file in memory.
struct Board {
    file: File,
    memory: Shared,
    workers: usize,
}

impl Board {
    fn new(workers: usize) -> io::Result<Board> {
        let file = sys::memory_file(bytes(workers))?;
        let memory = Shared::of(&file, bytes(workers))?;
        let board = Board { file, memory, workers };
        board.head().workers.store(workers as u32, SeqCst);
        board.head().magic.store(MAGIC, SeqCst);
        Ok(board)
    }

    /// The barrier at `path`. Each opening has locks of its own.
    fn open(path: &Path) -> io::Result<Board> {
        let other = || io::Error::other("is something else");
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < bytes(0) as u64 {
            return Err(other());
        }
        let mut board = Board { memory: Shared::of(&file, bytes(0))?, file, workers: 0 };
        let head = board.head();
        let (magic, workers) = (head.magic.load(SeqCst), head.workers.load(SeqCst) as usize);
        if magic != MAGIC || board.file.metadata()?.len() != bytes(workers) as u64 {
            return Err(other());
        }
        board.memory = Shared::of(&board.file, bytes(workers))?;
        board.workers = workers;
        Ok(board)
    }

    fn head(&self) -> &Head {
        // SAFETY: the first thing in the memory; a Head is all atomics.
        unsafe { self.memory.at(0) }
    }

    fn place(&self, worker: usize) -> &AtomicU32 {
        assert!(worker < self.workers, "no such worker");
        // SAFETY: the places follow the head.
        unsafe { self.memory.at(HEAD_BYTES + size_of::<AtomicU32>() * worker) }
    }
}

const fn bytes(workers: usize) -> usize {
    const { assert!(size_of::<Head>() <= HEAD_BYTES) };
    HEAD_BYTES + size_of::<AtomicU32>() * workers
}

#[cfg(test)]
mod tests;
