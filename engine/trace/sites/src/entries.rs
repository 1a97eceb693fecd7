//! Where code is entered by a jump, near the places where that matters.
//!
//! A branch whose distance has 32 bits can be anywhere: each byte of the code is taken for the first of one, whether
//! an instruction begins there or not. That misses none, however the instructions lie, and what is no branch leads to
//! the few places of interest about never. A branch whose distance has 8 bits is found by decoding around the place.

use memchr::{memchr2_iter, memchr3_iter};

/// Places of interest, as a set of blocks of 64 bytes of a piece of code.
pub struct Interest {
    blocks: Vec<u64>,
    length: usize,
}

impl Interest {
    /// No place in code of a length.
    pub fn new(length: usize) -> Self {
        Interest { blocks: vec![0; length / 4096 + 1], length }
    }

    /// Adds the places from one offset to another.
    pub fn add(&mut self, from: usize, to: usize) {
        for block in from / 64..=to.min(self.length) / 64 {
            self.blocks[block / 64] |= 1 << (block % 64);
        }
    }

    fn has(&self, offset: usize) -> bool {
        offset < self.length && self.blocks[offset / 4096] >> (offset / 64 % 64) & 1 == 1
    }
}

/// Addresses that are entered.
pub struct Entries(Vec<u64>);

impl Entries {
    /// Out of addresses in any order.
    pub fn new(mut addresses: Vec<u64>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        Entries(addresses)
    }

    /// Whether one lies behind `from` and before `to`.
    pub fn between(&self, from: u64, to: u64) -> bool {
        let next = self.0.partition_point(|address| *address <= from);
        self.0.get(next).is_some_and(|address| *address < to)
    }
}

/// Adds the addresses of interest to which a branch of 32 bits, or an address made by lea, leads.
pub fn add_far(code: &[u8], base: u64, interest: &Interest, found: &mut Vec<u64>) {
    let mut add = |field: usize| {
        if let Some(bytes) = code.get(field..field + 4) {
            let distance = i32::from_le_bytes(bytes.try_into().expect("four bytes"));
            let target = (field + 4).wrapping_add_signed(distance as isize);
            if interest.has(target) {
                found.push(base + target as u64);
            }
        }
    };
    let second = |at: usize| code.get(at + 1).copied().unwrap_or(0);
    for at in memchr3_iter(0xe8, 0xe9, 0x0f, code) {
        if code[at] != 0x0f {
            add(at + 1); // call, jmp
        } else if second(at) & 0xf0 == 0x80 {
            add(at + 2); // jcc
        }
    }
    for at in memchr2_iter(0x8d, 0xc7, code) {
        // lea, whose address may be jumped to later; xbegin
        if (code[at] == 0x8d && second(at) & 0xc7 == 0x05) || (code[at] == 0xc7 && second(at) == 0xf8) {
            add(at + 2);
        }
    }
}
