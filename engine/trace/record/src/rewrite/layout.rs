//! The memory that a recorded thread and the launcher share: a ring, written by the thread alone, read by the launcher alone.

/// First word of a ring that is in use. A program that sets `%gs` itself does not have it there, and is not recorded.
pub const MAGIC: u32 = 0x6574_7564;
/// Bytes of the header, a page.
pub const HEADER: usize = 4096;
/// Bytes of data; a power of two.
pub const DATA: usize = 1 << 18;
/// Bytes of a ring.
pub const RING: usize = HEADER + DATA;
/// Rings in the segment.
pub const RINGS: usize = 1024;
/// Behind the rings: what the launcher has a stopped thread do (`batch`).
pub const EXCHANGE: usize = RINGS * RING;
pub const EXCHANGE_LENGTH: usize = 4 << 20;
/// Bytes of a slot; a record takes one or more.
pub const SLOT: usize = 64;
/// Bytes of the longest text that is kept.
pub const MOST_TEXT: usize = 1900;
/// Bytes kept free for records of signal handlers, which may come between the look for room and the reservation.
pub const MARGIN: usize = 16384;

/// Of the producer: bytes reserved so far; the launcher takes the last back from a thread that stands still.
pub const HEAD: usize = 64;
/// Of the consumer: bytes read so far.
pub const TAIL: usize = 128;
/// Of the producer: records that found no room.
pub const DROPPED: usize = 192;
/// What a thread does that finds no room; 0: waits, and sleeps until there is some.
pub const MODE: usize = 200;
/// In `MODE`: it drops the record.
pub const DROPS: u32 = 1;
/// In `MODE`: it waits without a system call, which a filter of its program (seccomp) might kill it for.
pub const SPINS: u32 = 2;
/// The launcher's thread, as a robust futex (man 2 get_robust_list): when it ends, however it ends, the kernel puts
/// `OWNER_DIED` there.
pub const OWNER: usize = 204;
pub const OWNER_DIED: u32 = 0x4000_0000;
/// Its place in the launcher's list of such futexes.
pub const LIST: usize = 208;
/// Of the consumer: records that were reserved and never written.
pub const LOST: usize = 216;
/// Of the producer: it sleeps until `TAIL`, a futex by its lower half, moves on. The consumer takes it back, and wakes it.
pub const WAITS: usize = 224;
/// The producer's time at which it went on behind the last call at which the launcher had looked, in ticks.
pub const LEFT: usize = 232;
