//! The patterns by which a jump is found a place, each with its rule.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

use crate::around::Around;
use crate::entries::Entries;
use crate::moved::Moved;
use crate::{Form, JUMP, Site, Why};

/// A piece of code, and which of its addresses are entered.
pub struct Place<'a> {
    pub code: &'a [u8],
    pub base: u64,
    pub entries: &'a Entries,
    /// The first address that no site before has taken.
    pub free: u64,
}

/// The place of a jump for a call; why there is none.
pub fn find(place: &Place, around: &Around) -> Result<Site, Why> {
    if !around.is_clear {
        return Err(Why::Unclear);
    }
    let mut refused = Why::Pattern;
    for form in [number, result, before, after] {
        match form(place, around) {
            Ok(site) => return Ok(site),
            Err(why) if refused == Why::Pattern => refused = why,
            Err(_) => {}
        }
    }
    Err(refused)
}

impl Place<'_> {
    fn bytes(&self, from: u64, to: u64) -> &[u8] {
        &self.code[(from - self.base) as usize..(to - self.base) as usize]
    }

    fn original(&self, each: &Instruction) -> &[u8] {
        self.bytes(each.ip(), each.next_ip())
    }
}

/// `mov $number,%eax` (or `%rax`) directly before: it becomes the jump, the `syscall` stays where it is and is not run.
/// Rule: nothing enters at the `syscall`, which would pass by the jump.
fn number(place: &Place, around: &Around) -> Result<Site, Why> {
    let (call, Some(moving)) = (around.call, around.before.last()) else { return Err(Why::Pattern) };
    let is_it = match moving.code() {
        Code::Mov_r32_imm32 => moving.op0_register() == Register::EAX,
        Code::Mov_rm64_imm32 => moving.op0_register() == Register::RAX,
        _ => false,
    };
    if !is_it || moving.ip() < place.free {
        return Err(Why::Pattern);
    }
    if place.entries.between(moving.ip(), call.ip() + 1) {
        return Err(Why::Entered);
    }
    let mut before = Moved::default();
    before.push(moving, place.original(moving));
    Ok(Site {
        at: moving.ip(),
        call: call.ip(),
        form: Form::Number,
        bytes: place.original(moving).to_vec(),
        before,
        after: Moved::default(),
        back: Some(call.next_ip()),
        number: None,
    })
}

/// The `syscall` and what is behind it, the first of which uses eax or rax: a comparison with the kernel's errors, or
/// any other. Rule: nothing enters behind the first byte; nobody jumps by a table to where a result is waited for.
fn result(place: &Place, around: &Around) -> Result<Site, Why> {
    let first = around.after.first().ok_or(Why::Pattern)?;
    if is_check(first) {
        behind(place, around, Form::Check)
    } else if reads_result(first) {
        behind(place, around, Form::Result)
    } else {
        Err(Why::Pattern)
    }
}

/// The `syscall` and what is behind it. Rule: nothing enters behind the first byte, and no jump by a table is near.
fn after(place: &Place, around: &Around) -> Result<Site, Why> {
    behind(place, around, Form::After)
}

/// Takes instructions behind the call until there is room: those that can be moved, and at last a jmp, which says where
/// to go on, or a ret, and what is never run behind either.
fn behind(place: &Place, around: &Around, form: Form) -> Result<Site, Why> {
    let call = around.call;
    let at = call.ip();
    let mut after = Moved::default();
    let mut end = call.next_ip();
    let mut back = Some(end);
    let mut is_over = false;
    for each in around.after {
        if end - at >= JUMP {
            break;
        }
        if is_over {
            if !is_padding(each) {
                break;
            }
        } else if each.is_jmp_short_or_near() {
            (back, is_over) = (Some(each.near_branch64()), true);
        } else if each.code() == Code::Retnq {
            after.bytes.extend(place.original(each));
            (back, is_over) = (None, true);
        } else if after.push(each, place.original(each)) {
            back = Some(each.next_ip());
        } else {
            break;
        }
        end = each.next_ip();
    }
    if end - at < JUMP {
        return Err(Why::Pattern);
    }
    if form == Form::After && around.has_far_jump {
        return Err(Why::Unclear);
    }
    if place.entries.between(at, end) {
        return Err(Why::Entered);
    }
    let bytes = place.bytes(at, end).to_vec();
    Ok(Site { at, call: at, form, bytes, before: Moved::default(), after, back, number: None })
}

/// Instructions before the `syscall`, and it too where they have no room for a jump. Rule: they can be moved, nothing
/// enters behind the first or at the `syscall`, and no jump by a table is near.
fn before(place: &Place, around: &Around) -> Result<Site, Why> {
    let call = around.call;
    let mut count = 0;
    let mut at = call.ip();
    let mut before = Moved::default();
    while call.next_ip() - at < JUMP {
        let each = around.before.iter().rev().nth(count).ok_or(Why::Pattern)?;
        // That it can be moved is all that is asked here.
        if each.is_jcc_short_or_near() || !Moved::default().push(each, place.original(each)) {
            return Err(Why::Pattern);
        }
        (count, at) = (count + 1, each.ip());
    }
    if at < place.free {
        return Err(Why::Pattern);
    }
    if around.has_far_jump {
        return Err(Why::Unclear);
    }
    let end = if call.ip() - at >= JUMP { call.ip() } else { call.next_ip() };
    if place.entries.between(at, end.max(call.ip() + 1)) {
        return Err(Why::Entered);
    }
    for each in &around.before[around.before.len() - count..] {
        before.push(each, place.original(each));
    }
    let bytes = place.bytes(at, end).to_vec();
    let (back, after) = (Some(call.next_ip()), Moved::default());
    Ok(Site { at, call: call.ip(), form: Form::Before, bytes, before, after, back, number: None })
}

/// `cmp $-4095,%rax` and its like: the range of the kernel's errors.
fn is_check(each: &Instruction) -> bool {
    match each.code() {
        Code::Cmp_RAX_imm32 | Code::Cmp_EAX_imm32 => (-4096..0).contains(&(each.immediate32() as i32)),
        _ => false,
    }
}

/// Whether an operand that is read is eax or rax.
fn reads_result(each: &Instruction) -> bool {
    let is_result = |operand| {
        each.op_kind(operand) == OpKind::Register
            && matches!(each.op_register(operand), Register::EAX | Register::RAX)
    };
    let clears = matches!(each.mnemonic(), Mnemonic::Xor | Mnemonic::Sub) && is_result(0) && is_result(1);
    let writes_first = matches!(
        each.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Lea | Mnemonic::Pop
    );
    !clears && (u32::from(writes_first)..each.op_count()).any(is_result)
}

/// What fills the room behind the end of a function. The next may begin at a multiple of 16.
fn is_padding(each: &Instruction) -> bool {
    matches!(each.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
        && !(each.ip()..each.next_ip()).any(|address| address % 16 == 0)
}
