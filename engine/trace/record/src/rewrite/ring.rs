//! The shared segment of rings, as the launcher sees it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use etude_calls::Call;

use crate::PROCESSOR;
use crate::rewrite::layout::{
    DATA, DROPPED, DROPS, EXCHANGE, EXCHANGE_LENGTH, HEAD, HEADER, LEFT, LIST, LOST, MAGIC, MODE, OWNER,
    RING, RINGS, SLOT, SPINS, TAIL, WAITS,
};

/// One call as it stands in a ring; times are the clock's own ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    pub number: u32,
    pub begun: u64,
    pub ended: u64,
    pub result: i64,
    pub arguments: [u64; 6],
    /// What arguments point at, where they are texts that could be read.
    pub texts: [Option<Vec<u8>>; 2],
}

/// Numbers from here on are those of what is no call of its own: a request, a completion.
const MADE_UP: u32 = 1 << 16;

impl Raw {
    /// The number of something that a program has not called by one.
    pub fn made_up(call: Call) -> u32 {
        MADE_UP + u32::from(call.code())
    }

    /// None for one that is not recorded.
    pub fn call(&self) -> Option<Call> {
        match self.number.checked_sub(MADE_UP) {
            Some(code) => u16::try_from(code).ok().and_then(Call::from_code),
            None => Call::from_number(PROCESSOR, self.number.into()),
        }
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Raw>() + self.texts.iter().flatten().map(Vec::len).sum::<usize>()
    }
}

/// Memory for all rings, sparse until it is written.
pub struct Segment {
    file: OwnedFd,
    at: *mut u8,
    process: u32,
    /// The thread that made it, and the beginning of its list of robust futexes: the last ring that joined it.
    owner: u32,
    list: &'static AtomicU64,
    /// Device (major, minor) and inode, as a process's maps tell them.
    identity: (u32, u32, u64),
}

// SAFETY: the launcher's threads share it through atomics alone.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    pub const LENGTH: usize = EXCHANGE + EXCHANGE_LENGTH;

    pub fn new() -> io::Result<Segment> {
        // SAFETY: plain system calls; the mapping is of the length that the file has.
        unsafe {
            let fd = libc::memfd_create(c"etude-record".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let file = OwnedFd::from_raw_fd(fd);
            if libc::ftruncate(fd, Self::LENGTH as libc::off_t) != 0 {
                return Err(io::Error::last_os_error());
            }
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(std::ptr::null_mut(), Self::LENGTH, both, libc::MAP_SHARED, fd, 0);
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let (owner, list) = (libc::gettid() as u32, robust_list()?);
            let mut about: libc::stat = std::mem::zeroed();
            if libc::fstat(fd, &mut about) != 0 {
                return Err(io::Error::last_os_error());
            }
            let identity = (libc::major(about.st_dev), libc::minor(about.st_dev), about.st_ino);
            Ok(Segment { file, at: at.cast(), process: std::process::id(), owner, list, identity })
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Where a ring is in this process.
    pub fn address(&self, index: usize) -> u64 {
        self.at as u64 + (index * RING) as u64
    }

    /// The process that made it.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Device and inode, as a process's maps tell them.
    pub fn identity(&self) -> (u32, u32, u64) {
        self.identity
    }

    /// Puts something at the beginning of the memory behind the rings.
    pub fn exchange(&self, bytes: &[u8]) {
        assert!(bytes.len() <= EXCHANGE_LENGTH);
        // SAFETY: within the segment; who reads it stands still, and was not yet told to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(EXCHANGE), bytes.len()) };
    }

    /// A word of the memory behind the rings.
    pub fn exchanged(&self, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= EXCHANGE_LENGTH);
        // SAFETY: within the segment, and aligned.
        unsafe { self.at.add(EXCHANGE + offset).cast::<u64>().read_volatile() }
    }

    pub fn ring(&self, index: usize) -> Ring<'_> {
        assert!(index < RINGS);
        Ring { segment: self, base: index * RING }
    }
}

/// A new, empty list of robust futexes of this thread; it takes the place of the C library's, which knows only its
/// own robust mutexes, of which there are none here.
fn robust_list() -> io::Result<&'static AtomicU64> {
    // As the kernel's struct robust_list_head: first entry, from an entry to its futex, an entry that is in the making.
    let head: &'static [AtomicU64; 3] = Box::leak(Box::default());
    let address = head.as_ptr() as u64;
    head[0].store(address, Ordering::Relaxed); // empty: the list is a circle
    head[1].store((OWNER as u64).wrapping_sub(LIST as u64), Ordering::Relaxed);
    // SAFETY: the head is never freed; its entries are in the segment, which is never unmapped.
    match unsafe { libc::syscall(libc::SYS_set_robust_list, address, size_of_val(head)) } {
        0 => Ok(&head[0]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// One of them.
pub struct Ring<'a> {
    segment: &'a Segment,
    base: usize,
}

impl Ring<'_> {
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= RING);
        // SAFETY: within the segment, aligned, and shared as an atomic by both sides.
        unsafe { &*self.segment.at.add(self.base + offset).cast::<AtomicU64>() }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as `word`.
        unsafe { &*self.segment.at.add(self.base + offset).cast::<AtomicU32>() }
    }

    /// When its thread went on behind the last call at which the launcher had looked, in ticks.
    pub fn left(&self) -> u64 {
        self.word(LEFT).load(Ordering::Acquire)
    }

    /// Makes it ready for a new thread. Places go on from where they were: an old record is never taken for a new one.
    /// `filtered`: its program has a filter of system calls.
    pub fn begin(&self, drop_when_full: bool, filtered: bool) {
        let mode = if drop_when_full { DROPS } else { 0 } | if filtered { SPINS } else { 0 };
        self.half(MODE).store(mode, Ordering::Relaxed);
        self.half(WAITS).store(0, Ordering::Relaxed);
        self.word(DROPPED).store(0, Ordering::Relaxed);
        self.word(LOST).store(0, Ordering::Relaxed);
        if self.word(LIST).load(Ordering::Relaxed) == 0 {
            self.half(OWNER).store(self.segment.owner, Ordering::Relaxed);
            self.word(LIST).store(self.segment.list.load(Ordering::Relaxed), Ordering::Relaxed);
            self.segment.list.store(self.word(LIST).as_ptr() as u64, Ordering::Release);
        }
        // No record stands at place 0: memory that was never written would look like it.
        for word in [HEAD, TAIL] {
            self.word(word).fetch_max(DATA as u64, Ordering::Relaxed);
        }
        self.half(0).store(MAGIC, Ordering::Release);
    }

    /// Records that found no room, or were never written.
    pub fn dropped(&self) -> u64 {
        self.word(DROPPED).load(Ordering::Relaxed) + self.word(LOST).load(Ordering::Relaxed)
    }

    /// Whether its thread has forbidden itself to read the clock, and writes no more.
    pub fn quiet(&self) -> bool {
        self.half(0).load(Ordering::Relaxed) != MAGIC
    }

    /// Whether its program has a filter of system calls.
    pub fn filtered(&self) -> bool {
        self.half(MODE).load(Ordering::Relaxed) & SPINS != 0
    }

    /// Wakes the thread that waits for room, if it does.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.half(WAITS).load(Ordering::Relaxed) != 0 {
            self.half(WAITS).store(0, Ordering::Relaxed);
            // SAFETY: the futex lies in the segment; nothing is written.
            unsafe { libc::syscall(libc::SYS_futex, self.word(TAIL).as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }

    /// Skips a record that was reserved and never written: its thread ended.
    pub fn forget(&self) -> u64 {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let tail = self.word(TAIL).swap(head, Ordering::Release);
        (head - tail) / SLOT as u64
    }

    /// Gives back what is reserved behind all that is written and drained: its thread stands still, and will not write it.
    pub fn take_back(&self) {
        self.word(HEAD).store(self.word(TAIL).load(Ordering::Relaxed), Ordering::Release);
    }

    /// How many slots are written or reserved.
    pub fn slots(&self) -> usize {
        let head = self.word(HEAD).load(Ordering::Acquire);
        (head - self.word(TAIL).load(Ordering::Relaxed)) as usize / SLOT
    }

    /// Takes all whole records.
    ///
    /// One that is not written yet holds up those behind it: its thread is at it. No signal handler comes between
    /// (`half`). If nothing is to come (`last`) it is passed over, and counts as dropped.
    pub fn drain(&self, last: bool, mut take: impl FnMut(Raw)) {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut tail = self.word(TAIL).load(Ordering::Relaxed);
        while tail < head {
            if !self.is_whole(tail) {
                if !last {
                    break;
                }
                let next = (tail..head).step_by(SLOT).find(|place| self.is_whole(*place));
                self.word(LOST).fetch_add(1, Ordering::Relaxed);
                tail = next.unwrap_or(head);
                continue;
            }
            let word = self.data(tail).load(Ordering::Relaxed);
            let further = word >> 10 & 0x3f;
            take(self.record(tail, (word & 0x3ff) as u32, further));
            tail += SLOT as u64 * (1 + further);
        }
        self.word(TAIL).store(tail, Ordering::Release);
        self.wake();
    }

    /// Whether a record stands there, and all of it.
    fn is_whole(&self, place: u64) -> bool {
        self.data(place).load(Ordering::Acquire) >> 16 == (place / SLOT as u64) & 0xffff_ffff_ffff
    }

    fn data(&self, place: u64) -> &AtomicU64 {
        self.word(HEADER + (place as usize & (DATA - 1)))
    }

    fn record(&self, place: u64, number: u32, further: u64) -> Raw {
        let get = |offset: u64| self.data(place + offset).load(Ordering::Relaxed);
        let mut raw = Raw {
            number,
            begun: get(8),
            ended: get(16),
            result: get(24) as i64,
            arguments: [get(32), get(40), get(48), get(56), 0, 0],
            texts: [None, None],
        };
        if further > 0 {
            raw.arguments[4] = get(64);
            raw.arguments[5] = get(72);
            let lengths = get(80);
            let (first, second) = (lengths & 0xffff_ffff, lengths >> 32);
            let room = further * SLOT as u64 - 24;
            if first + second <= room {
                raw.texts = [self.text(place + 88, first), self.text(place + 88 + first, second)];
            }
        }
        raw
    }

    /// Bytes without their final zero; None where there is not even that.
    fn text(&self, place: u64, length: u64) -> Option<Vec<u8>> {
        let last = (place + length).checked_sub(1).filter(|_| length > 0)?;
        let byte = |at: u64| {
            let offset = self.base + HEADER + (at as usize & (DATA - 1));
            // SAFETY: within the data of this ring.
            unsafe { self.segment.at.add(offset).read_volatile() }
        };
        Some((place..last).map(byte).collect())
    }
}
