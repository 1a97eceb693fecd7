//! The instructions around a system call.
//!
//! Instructions are decoded only where the two bytes of `syscall` stand, not from the first byte of the code to the
//! last. Where instructions begin there is found out by decoding from sixteen neighbouring bytes well before: in code,
//! wherever one begins, one is in step with the others after a few instructions. Where they do not agree one begins
//! further away, and if that does not help it is not certain that this is code.

use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// How far before the call to begin, in bytes: at first, and where instructions do not agree.
const BEFORE: [usize; 3] = [256, 1024, 8192];
/// At how many bytes to begin: no instruction is longer.
const STARTS: usize = 16;
/// How far behind the call to go on, in bytes: no short branch leads further.
const BEHIND: usize = 144;
/// How far behind the last decoded byte the next call may be for decoding to go on there, in bytes.
const NEXT: usize = 64;
/// For how many bytes before the call all have to agree.
const SURE: usize = 32;
/// How many instructions behind the call are of interest.
const AFTER: usize = 16;
/// How near a call it matters where code is entered, in bytes.
pub const KEPT: u64 = 96;

/// A `syscall` instruction and its neighbours.
pub struct Around<'a> {
    pub call: Instruction,
    /// Those before, in their order, without a gap.
    pub before: &'a [Instruction],
    /// Those behind.
    pub after: &'a [Instruction],
    /// Whether all that was seen near it are instructions of a program, and in step.
    pub is_clear: bool,
    /// Whether there is a jump near it to an address out of a register or a table.
    pub has_far_jump: bool,
}

/// A `syscall` instruction, as a place among the decoded.
pub struct Found {
    /// The first before it that is in step.
    first: usize,
    call: usize,
    is_clear: bool,
    has_far_jump: bool,
}

/// Looks around places in a piece of code, in the order of addresses.
pub struct Looker<'a> {
    decoder: Decoder<'a>,
    base: u64,
    seen: Seen,
    run: Run,
    marks: Vec<bool>,
}

/// What was decoded, run after run.
#[derive(Default)]
struct Seen {
    chain: Vec<Instruction>,
    /// Where there are instructions that no program has.
    unusual: Vec<u64>,
    /// Where there are jumps to what a register or a table says.
    far: Vec<u64>,
    /// Where branches lead.
    branches: Vec<u64>,
}

/// Instructions without a gap.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Its first in the chain.
    first: usize,
    /// Where it ends, as an offset in the code.
    end: usize,
    /// The address from which on it is in step; None where that is not certain.
    agreed: Option<u64>,
}

impl<'a> Looker<'a> {
    /// For code that begins at an address.
    pub fn new(code: &'a [u8], base: u64) -> Self {
        let decoder = Decoder::with_ip(64, code, base, DecoderOptions::NONE);
        Looker { decoder, base, seen: Seen::default(), run: Run::default(), marks: Vec::new() }
    }

    /// Looks at the bytes of a `syscall` at `at`; None where they are none, but within another instruction.
    /// `part` is the part of the code that holds them, whose first byte begins an instruction.
    pub fn look(&mut self, at: usize, part: &Range<usize>) -> Option<Found> {
        let before = self.seen.chain.len();
        let goes_on = self.goes_on(at, part);
        if !goes_on {
            self.begin(at, part);
        }
        self.go_on(at + 2);
        let behind = self.base + at as u64 + 2;
        let run = &self.seen.chain[self.run.first..];
        let call = self.run.first + run.partition_point(|each| each.next_ip() < behind);
        let is_it = |each: &Instruction| each.next_ip() == behind && each.code() == Code::Syscall;
        if !self.seen.chain.get(call).is_some_and(is_it) {
            if !goes_on {
                // Chance holds many in a large program.
                self.seen.chain.truncate(before);
                self.run.agreed = None;
            }
            return None;
        }
        self.go_on((at + 2 + BEHIND).min(part.end));
        let from = self.base + at.saturating_sub(BEFORE[0]) as u64;
        let near = from.max(self.run.agreed.unwrap_or(0))..behind + BEHIND as u64;
        let has =
            |places: &[u64]| places.iter().rev().take_while(|ip| **ip >= from).any(|ip| near.contains(ip));
        let is_clear = self.run.agreed.is_some() && !has(&self.seen.unusual);
        let agreed = self.run.agreed.unwrap_or(0);
        let first =
            self.run.first + self.seen.chain[self.run.first..call].partition_point(|each| each.ip() < agreed);
        Some(Found { first, call, is_clear, has_far_jump: has(&self.seen.far) })
    }

    /// What is around one that was found, in the end.
    pub fn around(&self, found: &Found) -> Around<'_> {
        let chain = &self.seen.chain;
        let call = chain[found.call];
        // The next run may begin before this one ends.
        let behind = chain[found.call + 1..].iter().take(AFTER);
        let gapless =
            behind.scan(call.next_ip(), |next, each| (each.ip() == *next).then(|| *next = each.next_ip()));
        let length = gapless.count();
        Around {
            call,
            before: &chain[found.first..found.call],
            after: &chain[found.call + 1..found.call + 1 + length],
            is_clear: found.is_clear,
            has_far_jump: found.has_far_jump,
        }
    }

    /// Where the branches that were seen lead.
    pub fn branches(&self) -> &[u64] {
        &self.seen.branches
    }

    /// Whether the last run reaches until so near that what follows it is in step, too.
    fn goes_on(&self, at: usize, part: &Range<usize>) -> bool {
        self.run.agreed.is_some_and(|agreed| {
            let is_clear = self.seen.unusual.last().is_none_or(|ip| *ip < agreed);
            is_clear && part.start < self.run.end && at <= self.run.end + NEXT
        })
    }

    /// Begins a run that is in step before `at`, if there is one.
    fn begin(&mut self, at: usize, part: &Range<usize>) {
        let first = self.seen.chain.len();
        for distance in BEFORE {
            self.seen.chain.truncate(first);
            let start = at.saturating_sub(distance).max(part.start);
            self.run = Run { first, end: start, agreed: None };
            self.go_on(at + 2);
            let agreed = if start == part.start { Some(start) } else { self.agree(start, at) };
            let sure = agreed.filter(|offset| start == part.start || offset + SURE <= at);
            self.run.agreed = sure.map(|offset| self.base + offset as u64);
            if sure.is_some() {
                break;
            }
        }
    }

    /// Decodes on until `end` is reached or passed.
    fn go_on(&mut self, end: usize) {
        self.at(self.run.end);
        while self.decoder.position() < end {
            let each = self.decoder.decode();
            if each.op0_kind() == OpKind::NearBranch64 {
                self.seen.branches.push(each.near_branch64());
            }
            if !is_usual(&each) {
                self.seen.unusual.push(each.ip());
            }
            if is_far_jump(&each) {
                self.seen.far.push(each.ip());
            }
            self.seen.chain.push(each);
        }
        self.run.end = self.decoder.position();
    }

    fn at(&mut self, offset: usize) {
        self.decoder.set_position(offset).expect("within the code");
        self.decoder.set_ip(self.base + offset as u64);
    }

    /// From where on decoding from any of the next bytes is in step with the run that began at `start`; None where
    /// it is not before `at`.
    fn agree(&mut self, start: usize, at: usize) -> Option<usize> {
        let first = self.base + start as u64;
        self.marks.clear();
        self.marks.resize(at + 1 - start, false);
        for each in &self.seen.chain[self.run.first..] {
            if let Some(mark) = self.marks.get_mut((each.ip() - first) as usize) {
                *mark = true;
            }
        }
        let mut one = Instruction::default();
        let mut agreed = start;
        for offset in start + 1..start + STARTS {
            self.at(offset);
            while !*self.marks.get(self.decoder.position() - start)? {
                self.decoder.decode_out(&mut one);
            }
            agreed = agreed.max(self.decoder.position());
        }
        Some(agreed)
    }
}

/// A jump to what a register or an element of a table says. What a PLT does, a jump to what one fixed word says, is
/// none.
fn is_far_jump(each: &Instruction) -> bool {
    each.flow_control() == FlowControl::IndirectBranch
        && !(each.op0_kind() == OpKind::Memory && each.memory_base() == Register::RIP)
}

/// Whether a program may hold such an instruction; data that are read as code soon show one that it may not.
fn is_usual(each: &Instruction) -> bool {
    let zeros = each.code() == Code::Add_rm8_r8
        && each.op1_register() == Register::AL
        && each.memory_base() == Register::RAX
        && each.memory_displacement64() == 0;
    let rare = matches!(
        each.mnemonic(),
        Mnemonic::INVALID | Mnemonic::In | Mnemonic::Out | Mnemonic::Retf | Mnemonic::Enter | Mnemonic::Xlatb
    );
    // `_start` ends with hlt.
    let forbidden = each.is_privileged() && each.mnemonic() != Mnemonic::Hlt;
    !(zeros || rare || forbidden)
}
