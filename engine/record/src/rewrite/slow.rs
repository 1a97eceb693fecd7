//! Places that no jump can take, recorded by stops: a breakpoint stands on the `syscall`, and the call is made by an
//! instruction of ours, one for each place, so that wherever a thread is found it is known where it goes on: also a child
//! that begins behind the call.

use std::collections::BTreeMap;
use std::io;

use crate::rewrite::borrow::{Remote, set_registers};
use crate::rewrite::clock::ticks;
use crate::rewrite::remote::{Pid, ptrace};
use crate::rewrite::ring::Raw;
use crate::rewrite::rings::Sink;
use crate::rewrite::stops::{self, Begun};
use crate::rewrite::tracer::Tracer;

/// `syscall`, and the breakpoint behind it; the rest is never run.
const SLOT: [u8; 8] = [0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];
const BREAKPOINT: u64 = 1;
const SYSCALL: u64 = 2;

/// Of an address space: by the `syscall` of each place its slot, and the other way round.
#[derive(Clone, Default)]
pub struct Slow {
    slots: BTreeMap<u64, u64>,
    sites: BTreeMap<u64, u64>,
}

/// A call that is made in a slot.
pub struct Made {
    slot: u64,
    rsp: u64,
    pub begun: Begun,
}

impl Made {
    pub fn is_of(&self, slot: u64, rsp: u64) -> bool {
        self.slot == slot && self.rsp == rsp
    }
}

/// Bytes that so many slots take.
pub fn area(places: usize) -> u64 {
    ((places * SLOT.len()) as u64).next_multiple_of(4096)
}

impl Slow {
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

impl<S: Sink> Tracer<S> {
    fn slow(&self, tid: Pid) -> Option<&Slow> {
        let group = self.threads.get(&tid)?.group;
        self.processes.get(&group)?.image.as_ref().map(|image| &image.slow)
    }

    /// Whether it came to a breakpoint of ours: before a call, or behind it.
    pub fn at_breakpoint(&mut self, tid: Pid, mut regs: libc::user_regs_struct) -> io::Result<bool> {
        let Some(slow) = self.slow(tid).filter(|slow| !slow.slots.is_empty()) else { return Ok(false) };
        let at = regs.rip - BREAKPOINT;
        let (slot, site) = (slow.slots.get(&at).copied(), slow.sites.get(&at.wrapping_sub(SYSCALL)).copied());
        if !by_breakpoint(tid)? {
            return Ok(false);
        }
        if let Some(slot) = slot {
            self.before_call(tid, slot, &regs);
            regs.rip = slot;
        } else if let Some(site) = site {
            self.behind_call(tid, at - SYSCALL, &regs, ticks(self.way.clock));
            (regs.rip, regs.rcx) = (site + SYSCALL, site + SYSCALL);
        } else {
            return Ok(false);
        }
        set_registers(tid, &regs)?;
        Ok(true)
    }

    pub fn before_call(&mut self, tid: Pid, slot: u64, regs: &libc::user_regs_struct) {
        let arguments = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let clock = self.way.clock;
        let mut begun = stops::begins(tid, regs.rax, arguments, self.way.texts, || ticks(clock));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let told = begun.as_mut().map_or(Vec::new(), |begun| self.queues.begins(thread.group, begun));
        // Calls that a handler left by a jump are further down a stack that has been given up.
        thread.slow.retain(|made| made.rsp > regs.rsp);
        thread.slow.extend(begun.map(|begun| Made { slot, rsp: regs.rsp, begun }));
        self.tell(tid, told);
    }

    /// `now`: in ticks.
    pub fn behind_call(&mut self, tid: Pid, slot: u64, regs: &libc::user_regs_struct, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(place) = thread.slow.iter().rposition(|made| made.is_of(slot, regs.rsp)) else { return };
        let made = thread.slow.split_off(place).swap_remove(0);
        let (group, requests) = (thread.group, made.begun.requests.clone());
        let call = stops::returned(tid, made.begun, regs.rax as i64, now).0;
        let calls = self.queues.ended(group, tid, call, &requests);
        self.tell(tid, calls);
    }

    /// The call within which a stopped thread stands, if that is made in a slot.
    pub fn within_slot(&self, tid: Pid, regs: &libc::user_regs_struct, now: u64) -> Option<Raw> {
        let slot = regs.rip.wrapping_sub(SYSCALL);
        self.slow(tid)?.sites.get(&slot)?;
        let made = self.threads.get(&tid)?.slow.last().filter(|made| made.slot == slot)?;
        Some(stops::returned(tid, made.begun.clone(), regs.rax as i64, now).0)
    }
}

/// Whether the SIGTRAP at which a thread stands is the processor's, and not one that a program has sent.
fn by_breakpoint(tid: Pid) -> io::Result<bool> {
    const SI_KERNEL: libc::c_int = 0x80;
    // SAFETY: plain numbers, filled by the kernel.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info as usize)?;
    Ok(info.si_code == SI_KERNEL)
}
