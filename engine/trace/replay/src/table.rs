//! A process's recorded descriptors and the live ones that stand for them.

use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

/// Recorded descriptors above are not played.
pub const MOST: usize = 1 << 16;
const NONE: i32 = -1;
/// What was written through a descriptor is to be made durable when it is closed.
const WRITTEN: u8 = 1;
/// It is that of an ordinary file.
const FILE: u8 = 2;
/// It is an end of a pipe without a name.
const PIPE: u8 = 4;

/// Shared by the threads of a process; a forked one has a copy.
pub struct Table {
    live: Box<[AtomicI32]>,
    flags: Box<[AtomicU8]>,
}

impl Default for Table {
    fn default() -> Table {
        let live = (0..MOST).map(|_| AtomicI32::new(NONE)).collect();
        Table { live, flags: (0..MOST).map(|_| AtomicU8::new(0)).collect() }
    }
}

impl Table {
    fn place(recorded: i64) -> Option<usize> {
        usize::try_from(recorded).ok().filter(|place| *place < MOST)
    }

    /// The live one; None where there is none.
    #[inline]
    pub fn get(&self, recorded: i64) -> Option<i32> {
        let live = self.live[Self::place(recorded)?].load(Ordering::Relaxed);
        (live != NONE).then_some(live)
    }

    /// Sets it; one that stood there before.
    pub fn set(&self, recorded: i64, live: i32) -> Option<i32> {
        let place = Self::place(recorded)?;
        self.flags[place].store(0, Ordering::Relaxed);
        let before = self.live[place].swap(live, Ordering::Relaxed);
        (before != NONE).then_some(before)
    }

    /// Takes it out.
    pub fn take(&self, recorded: i64) -> Option<i32> {
        let before = self.live[Self::place(recorded)?].swap(NONE, Ordering::Relaxed);
        (before != NONE).then_some(before)
    }

    /// Something was written through it.
    pub fn wrote(&self, recorded: i64) {
        self.note(recorded, WRITTEN);
    }

    /// The live one, if it is that of an ordinary file.
    pub fn file(&self, recorded: i64) -> Option<i32> {
        let live = self.get(recorded)?;
        if !self.is_noted(recorded, FILE) {
            is_file(live).then(|| self.note(recorded, FILE))?;
        }
        Some(live)
    }

    /// It is an end of a pipe.
    pub fn pipes(&self, recorded: i64) {
        self.note(recorded, PIPE);
    }

    #[inline]
    pub fn is_pipe(&self, recorded: i64) -> bool {
        self.is_noted(recorded, PIPE)
    }

    /// What stands behind it is what stands behind another one.
    pub fn copies(&self, recorded: i64, other: i64) {
        self.replaced(recorded);
        if self.is_pipe(other) {
            self.pipes(recorded);
        }
    }

    /// What stands behind it is something else now.
    fn replaced(&self, recorded: i64) {
        if let Some(place) = Self::place(recorded) {
            self.flags[place].store(0, Ordering::Relaxed);
        }
    }

    fn note(&self, recorded: i64, flag: u8) {
        if let Some(place) = Self::place(recorded) {
            self.flags[place].fetch_or(flag, Ordering::Relaxed);
        }
    }

    fn is_noted(&self, recorded: i64, flag: u8) -> bool {
        Self::place(recorded).is_some_and(|place| self.flags[place].load(Ordering::Relaxed) & flag != 0)
    }

    /// Makes durable what was written through it, where that is wished for; whether something was.
    pub fn keep(&self, recorded: i64) -> bool {
        let live = self.get(recorded).filter(|_| self.is_noted(recorded, WRITTEN));
        if let (Some(live), Some(place)) = (live, Self::place(recorded)) {
            self.flags[place].fetch_and(!WRITTEN, Ordering::Relaxed);
            // SAFETY: one that this replay has opened.
            unsafe { libc::fsync(live) };
        }
        live.is_some()
    }

    /// Takes it out and closes it, by the way.
    pub fn close(&self, recorded: i64) {
        self.keep(recorded);
        if let Some(live) = self.take(recorded) {
            // SAFETY: one that this replay has opened.
            unsafe { libc::close(live) };
        }
    }

    /// All that are there: recorded and live.
    pub fn all(&self) -> impl Iterator<Item = (i64, i32)> + '_ {
        let live = self.live.iter().map(|live| live.load(Ordering::Relaxed)).enumerate();
        live.filter(|(_, live)| *live != NONE).map(|(recorded, live)| (recorded as i64, live))
    }

    /// For a forked process, whose live ones are copies with the same numbers.
    pub fn copy(&self) -> Table {
        let copy = Table::default();
        for (recorded, live) in self.all() {
            copy.set(recorded, live);
            if self.is_pipe(recorded) {
                copy.pipes(recorded);
            }
        }
        copy
    }
}

fn is_file(live: i32) -> bool {
    // SAFETY: a stat is numbers, for all of which zero will do.
    let mut found = unsafe { std::mem::zeroed::<libc::stat>() };
    // SAFETY: a place for what is found.
    unsafe { libc::fstat(live, &raw mut found) == 0 && found.st_mode & libc::S_IFMT == libc::S_IFREG }
}
