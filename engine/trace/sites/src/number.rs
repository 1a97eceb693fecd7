//! Which call a `syscall` instruction makes.

use iced_x86::{Code, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

use crate::around::{Around, KEPT};
use crate::entries::Entries;

/// The number, where the code before moves it into eax and nothing can come between: no entry, no call, no other write.
pub fn known(around: &Around, entries: &Entries) -> Option<u32> {
    let mut wanted = Register::RAX;
    let mut next = around.call.ip();
    let mut info = InstructionInfoFactory::new();
    let mut before = around.before.iter().rev();
    while let Some(each) = before.next() {
        // Whoever enters behind the instruction has not run it.
        if around.call.ip() - each.ip() > KEPT
            || entries.between(each.ip(), next + 1)
            || !matches!(each.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
        {
            return None;
        }
        next = each.ip();
        if !writes(&mut info, each, wanted) {
            continue;
        }
        match value(each) {
            Value::Is(number) => return Some(number),
            Value::Of(register) => wanted = register,
            Value::Popped => {
                let push = before.next()?;
                let pushed = push.code() == Code::Pushq_imm8 && !entries.between(push.ip(), next + 1);
                return pushed.then(|| push.immediate8to64()).and_then(|number| u32::try_from(number).ok());
            }
            Value::Unknown => return None,
        }
    }
    None
}

fn writes(info: &mut InstructionInfoFactory, each: &Instruction, wanted: Register) -> bool {
    info.info(each).used_registers().iter().any(|used| {
        used.register().full_register() == wanted
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    })
}

/// What an instruction makes of the register that it writes first.
enum Value {
    Is(u32),
    Of(Register),
    Popped,
    Unknown,
}

fn value(each: &Instruction) -> Value {
    let (to, from) = (each.op0_register(), each.op1_register());
    match each.code() {
        Code::Mov_r32_imm32 => Value::Is(each.immediate32()),
        Code::Mov_rm64_imm32 if to.is_gpr() => match u32::try_from(each.immediate32to64()) {
            Ok(number) => Value::Is(number),
            Err(_) => Value::Unknown,
        },
        Code::Xor_r32_rm32 | Code::Xor_rm32_r32 if to == from => Value::Is(0),
        Code::Mov_r32_rm32 | Code::Mov_rm32_r32 | Code::Mov_r64_rm64 | Code::Mov_rm64_r64
            if to.is_gpr() && from.is_gpr() =>
        {
            Value::Of(from.full_register())
        }
        Code::Pop_r64 => Value::Popped,
        _ => Value::Unknown,
    }
}
