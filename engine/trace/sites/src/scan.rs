//! One piece of code from its bytes to its sites.

use std::ops::Range;

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, Register};
use memchr::memmem;

use crate::around::{Around, Found, KEPT, Looker};
use crate::entries::{Entries, Interest, add_far};
use crate::forms::{self, Place};
use crate::{Left, Scan, Site, Why, flags, number};

/// Calls whose place is never taken: they return twice, on another stack, elsewhere, or not at all.
/// rt_sigreturn, clone, fork, vfork, execve, exit, exit_group, execveat, clone3.
const NEVER: [u32; 9] = [15, 56, 57, 58, 59, EXIT, 231, 322, 435];
const EXIT: u32 = 60;
const MUNMAP: u32 = 11;

/// Looks for system calls in code that is at `base`.
pub fn scan(code: &[u8], base: u64) -> Scan {
    scan_within(code, base, std::slice::from_ref(&(base..base.saturating_add(code.len() as u64))))
}

/// The same in some parts of the code only, by address, such as the sections of an image that hold instructions. Each
/// begins with an instruction. What jumps into them is looked for in all of the code.
pub fn scan_within(code: &[u8], base: u64, parts: &[Range<u64>]) -> Scan {
    let mut looker = Looker::new(code, base);
    let calls = calls(&mut looker, code, base, parts);
    if calls.is_empty() {
        return Scan::default();
    }
    let mut interest = Interest::new(code.len());
    for found in &calls {
        let at = (looker.around(found).call.ip() - base) as usize;
        interest.add(at.saturating_sub(KEPT as usize), at + KEPT as usize);
    }
    let mut entries = looker.branches().to_vec();
    add_far(code, base, &interest, &mut entries);
    let entries = Entries::new(entries);
    let mut place = Place { code, base, entries: &entries, free: base };
    let mut scan = Scan::default();
    for found in &calls {
        match decide(&place, &looker.around(found)) {
            Ok(site) => {
                place.free = site.end();
                scan.sites.push(site);
            }
            Err(left) => scan.left.push(*left),
        }
    }
    scan
}

fn decide(place: &Place, around: &Around) -> Result<Site, Box<Left>> {
    let number = number::known(around, place.entries);
    let left = |why, site| Err(Box::new(Left { call: around.call.ip(), number, why, site }));
    if is_never(around, number) {
        return left(Why::Never, None);
    }
    match forms::find(place, around) {
        Ok(site) => {
            let site = Site { number, ..site };
            if flags::are_dead(place.code, place.base, around.call.next_ip()) {
                Ok(site)
            } else {
                left(Why::Flags, Some(Box::new(site)))
            }
        }
        Err(why) => left(why, None),
    }
}

/// Whether a call has to be made where it stands. Beside those of `NEVER`: a thread that gives back its own stack
/// has none afterwards (what follows at once is exit, of whose number it may write the low byte only); what returns
/// twice, by whichever number, has its return address taken off the stack before and put back after.
fn is_never(around: &Around, number: Option<u32>) -> bool {
    match number {
        Some(MUNMAP) => {
            let mut next = around.after.iter().take_while(|each| each.flow_control() == FlowControl::Next);
            next.any(is_exit)
        }
        Some(number) => NEVER.contains(&number),
        None => {
            around.before.last().is_some_and(is_exit)
                || around.after.first().is_some_and(|each| each.mnemonic() == Mnemonic::Push)
        }
    }
}

/// Whether it moves the number of exit into eax or its low byte.
fn is_exit(each: &Instruction) -> bool {
    let is_move = matches!(each.code(), Code::Mov_r8_imm8 | Code::Mov_r32_imm32 | Code::Mov_rm64_imm32);
    is_move
        && matches!(each.op0_register(), Register::AL | Register::EAX | Register::RAX)
        && each.immediate(1) == EXIT.into()
}

/// Each `syscall` instruction, in the order of addresses.
fn calls(looker: &mut Looker, code: &[u8], base: u64, parts: &[Range<u64>]) -> Vec<Found> {
    let offset = |address: u64| address.saturating_sub(base).min(code.len() as u64) as usize;
    let mut parts: Vec<_> = parts.iter().map(|part| offset(part.start)..offset(part.end)).collect();
    parts.sort_by_key(|part| part.start);
    let mut calls = Vec::new();
    let mut next = 0;
    for part in parts {
        let part = part.start.max(next)..part.end;
        if part.is_empty() {
            continue;
        }
        next = part.end;
        for at in memmem::find_iter(&code[part.clone()], b"\x0f\x05") {
            calls.extend(looker.look(part.start + at, &part));
        }
    }
    calls
}
