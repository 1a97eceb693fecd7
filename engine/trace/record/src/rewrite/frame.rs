//! The hook's frame on the stack of its thread while a call is made, and the launcher's look at it.

use std::io;

use crate::rewrite::remote::Memory;

/// Bytes that the stack pointer goes down: the red zone's 128, and the frame's own.
pub const BYTES: usize = 288;
/// The address at which the program continues.
pub const BACK: usize = 0;
/// The third argument.
pub const RDX: usize = 8;
/// The call's number.
pub const NUMBER: usize = 16;
/// Ticks when the call began.
pub const BEGUN: usize = 24;
pub const RESULT: usize = 32;
/// The addresses of both texts, or 0.
pub const TEXTS: [usize; 2] = [40, 48];
/// The first word of the record.
pub const WORD: usize = 56;
/// Ticks when the call ended.
pub const ENDED: usize = 64;
/// Bytes of the texts with their final zeros, four bytes each.
pub const LENGTHS: [usize; 2] = [72, 76];
/// Slots of the record beside the first, four bytes.
pub const FURTHER: usize = 80;
/// How many bytes of the first text are not copied, four bytes.
pub const UNREAD: usize = 84;
/// 64 bytes for the use of a stamp.
pub const FREE: usize = 88;
/// Texts that are copies of eight bytes, when no stamp is taken any more.
pub const COPIES: [usize; 2] = [88, 96];
/// The end of a text while it is copied to the ring.
pub const END: usize = 104;
/// While room is waited for: rdi, rsi, r10, a timeout (16 bytes), and where it goes on with room and without.
pub const KEPT: usize = 104;

/// At a call at which the launcher looks, in place of `BEGUN` and what follows, in ticks: when it came,
pub const LOOK_CAME: usize = 24;
/// when the call began,
pub const LOOK_BEGUN: usize = 32;
/// and when it ended;
pub const LOOK_ENDED: usize = 40;
/// and the call's result.
pub const LOOK_RESULT: usize = 48;

/// The frame of a stopped thread.
pub struct Frame([u8; FREE]);

impl Frame {
    /// The frame at a stack pointer.
    ///
    /// # Errors
    /// The thread's memory cannot be read.
    pub fn read(memory: &Memory, rsp: u64) -> io::Result<Frame> {
        let bytes = memory.read(rsp, FREE)?;
        bytes.try_into().map(Frame).map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }

    /// The eight bytes at one of the constants above.
    pub fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// The four bytes at one of the constants above.
    pub fn half(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }
}
