//! Whether the flags before a system call are needed after it.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, RflagsBits};

/// The flags that instructions of arithmetic set.
const STATUS: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;
/// How many instructions to follow.
const MOST: usize = 24;

/// Whether the code from an address on sets each flag before it reads it, as far as that can be seen. A function
/// that is called or returned to may rely on none.
pub fn are_dead(code: &[u8], base: u64, from: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, code, base, DecoderOptions::NONE);
    let mut open = STATUS;
    let mut next = from;
    let mut each = Instruction::default();
    for _ in 0..MOST {
        let Some(offset) = next.checked_sub(base).filter(|offset| *offset < code.len() as u64) else {
            return false;
        };
        decoder.set_position(offset as usize).expect("within the code");
        decoder.set_ip(next);
        decoder.decode_out(&mut each);
        if each.code() == Code::Syscall {
            return true; // the next one keeps them, and whoever wrote it did not rely on them either
        }
        if each.is_invalid() || each.rflags_read() & open != 0 {
            return false;
        }
        open &= !each.rflags_modified();
        next = match each.flow_control() {
            _ if open == 0 => return true,
            FlowControl::Next | FlowControl::ConditionalBranch => each.next_ip(),
            FlowControl::UnconditionalBranch => each.near_branch64(),
            _ => return true,
        };
    }
    false
}
