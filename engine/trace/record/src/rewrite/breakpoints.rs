//! Breakpoints on system calls that no jump can take, and for each of them a slot: a `syscall` of ours, in which the call is
//! made. `breakpoint_sites.rs` says what happens there.

use std::collections::BTreeMap;
use std::io;

use crate::rewrite::ptrace_stops::Begun;
use crate::rewrite::remote_process::Remote;

/// `syscall`, and the breakpoint behind it; the rest is never run.
const SLOT: [u8; 8] = [0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];

/// The slots of an address space by the `syscall` that each stands for, and the other way round.
#[derive(Clone, Default)]
pub struct Breakpoints {
    pub slots: BTreeMap<u64, u64>,
    pub sites: BTreeMap<u64, u64>,
}

/// A call that is made in a slot.
pub struct SlotCall {
    pub slot: u64,
    pub rsp: u64,
    pub begun: Begun,
}

impl SlotCall {
    pub fn is_of(&self, slot: u64, rsp: u64) -> bool {
        self.slot == slot && self.rsp == rsp
    }
}

/// Bytes that so many slots take.
pub fn area(places: usize) -> u64 {
    ((places * SLOT.len()) as u64).next_multiple_of(4096)
}

impl Breakpoints {
    /// Sets breakpoints; the slots begin at `at`. Those of the places that have one now.
    ///
    /// # Errors
    /// The memory cannot be written.
    pub fn set(&mut self, remote: &Remote, at: u64, places: &[u64]) -> io::Result<Vec<u64>> {
        remote.memory.write(at, &SLOT.repeat(places.len()))?;
        let mut set = Vec::new();
        for (slot, place) in (at..).step_by(SLOT.len()).zip(places) {
            if remote.memory.read(*place, 2)? != SLOT[..2] {
                continue;
            }
            remote.memory.write(*place, &[0xcc])?;
            self.slots.insert(*place, slot);
            self.sites.insert(slot, *place);
            set.push(*place);
        }
        Ok(set)
    }

    /// Other code is there now.
    pub fn forget(&mut self, low: u64, high: u64) {
        self.slots.retain(|place, _| !(low..high).contains(place));
    }
}
