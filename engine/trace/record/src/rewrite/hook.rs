//! The code that runs inside the recorded program.
//!
//! Position-independent assembly (`hook.S`), assembled when this program is built, and copied into each recorded image. It
//! makes no system call of its own, but to sleep where its ring is full, takes no lock, uses 160 bytes of stack below the
//! red zone of 128 (`frame.rs`), and changes no register but those that a system call may change (rax, rcx, r11, flags). `%gs` points to the thread's ring (`layout`); of a program that sets it itself nothing is
//! read there, for it may point to nothing: `rdgsbase` tells.
//!
//! It is entered from a trampoline with the call's number in rax, its arguments where the kernel expects them, and in
//! rcx the address at which the program goes on; the two bytes before that address are a `syscall` instruction, so
//! that a call that is not to be recorded is made by going there.

use std::arch::global_asm;
use std::ops::Range;

pub use crate::rewrite::clock::Clock;
use crate::rewrite::frame;
use crate::rewrite::layout::{
    DATA, DROPPED, DROPS, HEAD, HEADER, LEFT, MAGIC, MARGIN, MODE, MOST_TEXT, OWNER, OWNER_DIED, RING, RINGS,
    SLOT, SPINS, TAIL, WAITS,
};

/// What is recorded of a call, and so by which entry it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Entry {
    /// Not recorded.
    Raw = 0,
    /// Result and the first four arguments.
    Plain = 1,
    /// All six arguments.
    Wide = 2,
    /// As Wide; then the launcher is told if code was mapped.
    Map = 3,
    /// A path in the first argument.
    Path1 = 4,
    /// A path in the second.
    Path2 = 5,
    /// Paths in the first and second.
    Path12 = 6,
    /// In the second and fourth.
    Path24 = 7,
    /// In the first and third.
    Path13 = 8,
    /// Not recorded; but the thread never again, if it forbids itself to read the clock (seccomp's strict mode does).
    Quiet = 9,
    /// The first argument says where the call puts a pair of descriptors.
    Pair1 = 10,
    /// The fourth.
    Pair4 = 11,
    /// The launcher looks before the call and behind it.
    Stop = 12,
    /// Where the second argument is a command of fcntl that locks, the third says where the range stands; else as Plain.
    Range3 = 13,
    /// The second argument is a socket's address, and the third its length.
    Address2 = 14,
    /// The third argument says where an offset stands, or is null.
    Offset3 = 15,
    /// The second and the fourth.
    Offset24 = 16,
}

impl Entry {
    /// In the order of their numbers.
    pub const ALL: [Entry; 17] = {
        use Entry::*;
        [
            Raw, Plain, Wide, Map, Path1, Path2, Path12, Path24, Path13, Quiet, Pair1, Pair4, Stop, Range3,
            Address2, Offset3, Offset24,
        ]
    };
}

global_asm!(
    include_str!("hook.S"),
    // What a ring is made of.
    magic = const MAGIC,
    length = const RINGS * RING,
    owner = const OWNER,
    died = const OWNER_DIED,
    head = const HEAD,
    tail = const TAIL,
    mode = const MODE,
    drops = const DROPS,
    spins = const SPINS,
    waits = const WAITS,
    left = const LEFT,
    dropped = const DROPPED,
    data = const HEADER,
    slot = const SLOT,
    mask = const DATA - 1,
    full = const DATA - MARGIN,
    // The frame.
    frame = const frame::BYTES,
    back = const frame::BACK,
    rdx = const frame::RDX,
    number = const frame::NUMBER,
    begun = const frame::BEGUN,
    result = const frame::RESULT,
    text = const frame::TEXTS[0],
    text_2 = const frame::TEXTS[1],
    word = const frame::WORD,
    ended = const frame::ENDED,
    bytes = const frame::LENGTHS[0],
    bytes_2 = const frame::LENGTHS[1],
    further = const frame::FURTHER,
    unread = const frame::UNREAD,
    copy = const frame::COPIES[0],
    copy_2 = const frame::COPIES[1],
    end = const frame::END,
    kept = const frame::KEPT,
    free = const frame::FREE,
    look_came = const frame::LOOK_CAME,
    look_begun = const frame::LOOK_BEGUN,
    look_ended = const frame::LOOK_ENDED,
    look_result = const frame::LOOK_RESULT,
    // What the first of two texts is, where it is none that ends with a zero: in place of the second's address.
    pair = const 1,
    range = const 2,
    address = const 3,
    offset = const 4,
    offsets = const 5,
    // Calls, and what they point to.
    numbers = const NUMBERS,
    uring = const URING,
    most = const MOST_TEXT,
    range_bytes = const etude_calls::Range::BYTES,
    unix = const etude_calls::Address::UNIX,
    shortest = const *etude_calls::Address::LENGTHS.start(),
    longest = const *etude_calls::Address::LENGTHS.end(),
    options(att_syntax)
);

unsafe extern "C" {
    static etude_tsc_begin: u8;
    static etude_tsc_end: u8;
    static etude_vdso_begin: u8;
    static etude_vdso_end: u8;
}

/// The code for a clock: to be copied with `kinds` filled in.
#[derive(Clone)]
pub struct Code {
    bytes: Vec<u8>,
}

/// io_uring_setup. At it and those that follow the launcher looks behind the call alone.
pub const URING: u32 = 425;

/// Calls have numbers below it; those from it on are not recorded.
const NUMBERS: usize = 512;
const ENTRIES: usize = 16;
/// Places behind those of the entries: any, trap, remote, made, long_made, reserved, written, long_reserved, long_written,
/// stops, stopped.
const ANY: usize = Entry::ALL.len();
const KINDS: usize = ENTRIES + (ANY + 11) * 4;

impl Code {
    /// `kind`: the entry of each call number. `rings`: where the segment is in the image; `vdso`: its `clock_gettime`.
    pub fn new(clock: Clock, kind: impl Fn(u32) -> Entry, rings: u64, vdso: u64) -> Code {
        let (begin, end) = match clock {
            Clock::Tsc => (&raw const etude_tsc_begin, &raw const etude_tsc_end),
            Clock::Vdso => (&raw const etude_vdso_begin, &raw const etude_vdso_end),
        };
        // SAFETY: both labels are in one section of this program, in this order.
        let mut bytes =
            unsafe { std::slice::from_raw_parts(begin, end.offset_from(begin) as usize).to_vec() };
        for number in 0..NUMBERS {
            bytes[KINDS + number] = kind(number as u32) as u8;
        }
        Code { bytes }.placed(rings, vdso)
    }

    /// The same for another image.
    pub fn placed(&self, rings: u64, vdso: u64) -> Code {
        let mut bytes = self.bytes.clone();
        bytes[..8].copy_from_slice(&vdso.to_le_bytes());
        bytes[8..16].copy_from_slice(&rings.to_le_bytes());
        Code { bytes }
    }

    /// The entry that a call takes.
    pub fn kind(&self, number: u32) -> Entry {
        self.bytes[KINDS..KINDS + NUMBERS]
            .get(number as usize)
            .map_or(Entry::Raw, |kind| Entry::ALL[usize::from(*kind)])
    }

    /// To be copied to a page of the image.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where an entry is, from the beginning.
    pub fn entry(&self, entry: Entry) -> u64 {
        self.offset(entry as usize)
    }

    /// The entry that looks at rax.
    pub fn any(&self) -> u64 {
        self.offset(ANY)
    }

    /// The instruction that tells the launcher of mapped code.
    pub fn trap(&self) -> u64 {
        self.offset(ANY + 1)
    }

    /// An instruction that makes a system call, for the launcher.
    pub fn remote(&self) -> u64 {
        self.offset(ANY + 2)
    }

    /// Behind the program's own calls: a thread that ends within one ends there.
    pub fn made(&self) -> [u64; 2] {
        [self.offset(ANY + 3), self.offset(ANY + 4)]
    }

    /// Of a record of one slot and of one of several: from its reservation until it is written.
    pub fn halves(&self) -> [Range<u64>; 2] {
        [ANY + 5, ANY + 7].map(|place| self.offset(place)..self.offset(place + 1))
    }

    /// The instructions at which the launcher looks, before a call and behind it.
    pub fn stops(&self) -> [u64; 2] {
        [self.offset(ANY + 9), self.offset(ANY + 10)]
    }

    fn offset(&self, index: usize) -> u64 {
        let at = ENTRIES + 4 * index;
        u64::from(u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes")))
    }
}
