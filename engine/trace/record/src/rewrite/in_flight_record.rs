//! A record that its thread has reserved and not yet written, as a signal finds it.
//!
//! The handler may fill the ring more than once before the thread goes on, or never return. Its record would then be
//! written over another, or hold up all that follow. So the launcher, to which every signal comes first, takes the
//! record out of the thread, and the thread goes on as if it were written.

use std::io;

use crate::rewrite::frame::{self, Frame};
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
    let frame = Frame::read(&memory, regs.rsp)?;
    let result = frame.word(frame::RESULT);
    let mut raw = Raw {
        number: frame.word(frame::NUMBER) as u32,
        begun: frame.word(frame::BEGUN),
        ended: regs.rdx,
        result: result as i64,
        arguments: [regs.rdi, regs.rsi, frame.word(frame::RDX), regs.r10, 0, 0],
        texts: [None, None],
    };
    if place == 1 {
        raw.ended = frame.word(frame::ENDED);
        (raw.arguments[4], raw.arguments[5]) = (regs.r8, regs.r9);
        raw.texts = [0, 1]
            .map(|which| text(&memory, frame.word(frame::TEXTS[which]), frame.half(frame::LENGTHS[which])));
    }
    (regs.rip, regs.rax) = (hook + code.halves()[place].end, result);
    Ok(Some(raw))
}

/// Bytes without their final zero, as in `Ring`.
fn text(memory: &Memory, at: u64, length: u32) -> Option<Vec<u8>> {
    let last = length.checked_sub(1)?;
    memory.read(at, last as usize).ok()
}
