//! A record that its thread has reserved and not yet written, as a signal finds it.
//!
//! The handler may fill the ring more than once before the thread goes on, or never return. Its record would then be
//! written over another, or hold up all that follow. So the launcher, to which every signal comes first, takes the
//! record out of the thread, and the thread goes on as if it were written.

use std::io;

use crate::rewrite::hook::Code;
use crate::rewrite::remote::{Memory, Pid};
use crate::rewrite::ring::Raw;

/// What a stopped thread was about to write, whose registers then say that it has; None if it stands elsewhere. `hook`
/// is where the code is. A text that can no longer be read is none.
///
/// # Errors
/// The thread's memory cannot be read.
pub fn half_written(
    tid: Pid,
    regs: &mut libc::user_regs_struct,
    code: &Code,
    hook: u64,
) -> io::Result<Option<Raw>> {
    let at = regs.rip.wrapping_sub(hook);
    let Some(place) = code.halves().iter().position(|half| half.contains(&at)) else { return Ok(None) };
    let memory = Memory::unopened(tid);
    let frame = memory.read(regs.rsp, 80)?;
    let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes"));
    let (number, begun, result) = (word(16) as u32, word(24), word(32) as i64);
    let mut raw = Raw {
        number,
        begun,
        ended: regs.rdx,
        result,
        arguments: [regs.rdi, regs.rsi, word(8), regs.r10, 0, 0],
        texts: [None, None],
    };
    if place == 1 {
        raw.ended = word(64);
        (raw.arguments[4], raw.arguments[5]) = (regs.r8, regs.r9);
        let lengths = [word(72) & 0xffff_ffff, word(72) >> 32];
        raw.texts = [0, 1].map(|which| text(&memory, word(40 + 8 * which), lengths[which]));
    }
    (regs.rip, regs.rax) = (hook + code.halves()[place].end, result as u64);
    Ok(Some(raw))
}

/// Bytes without their final zero, as in `Ring`.
fn text(memory: &Memory, at: u64, length: u64) -> Option<Vec<u8>> {
    let last = length.checked_sub(1)?;
    memory.read(at, last as usize).ok()
}
