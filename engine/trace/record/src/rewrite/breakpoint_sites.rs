//! Places that no jump can take, recorded by stops: a breakpoint stands on the `syscall`, and the call is made by an
//! instruction of ours, one for each place, so that wherever a thread is found it is known where it goes on: also a child
//! that begins behind the call.

use std::io;

use crate::rewrite::breakpoints::{Breakpoints, SlotCall};
use crate::rewrite::clock::ticks;
use crate::rewrite::ptrace_stops;
use crate::rewrite::remote::{Pid, ptrace};
use crate::rewrite::remote_process::set_registers;
use crate::rewrite::ring::Raw;
use crate::rewrite::tracer::Tracer;

const BREAKPOINT: u64 = 1;
const SYSCALL: u64 = 2;

impl Tracer {
    fn breakpoints(&self, tid: Pid) -> Option<&Breakpoints> {
        let group = self.threads.get(&tid)?.group;
        self.processes.get(&group)?.image.as_ref().map(|image| &image.breakpoints)
    }

    /// Whether it came to a breakpoint of ours: before a call, or behind it.
    pub fn at_breakpoint(&mut self, tid: Pid, mut regs: libc::user_regs_struct) -> io::Result<bool> {
        let Some(breakpoints) = self.breakpoints(tid).filter(|breakpoints| !breakpoints.slots.is_empty())
        else {
            return Ok(false);
        };
        let at = regs.rip - BREAKPOINT;
        let (slot, site) =
            (breakpoints.slots.get(&at).copied(), breakpoints.sites.get(&at.wrapping_sub(SYSCALL)).copied());
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
        let mut begun = ptrace_stops::begins(tid, regs.rax, arguments, self.way.texts, || ticks(clock));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let told = begun.as_mut().map_or(Vec::new(), |begun| self.queues.begins(thread.group, begun));
        // Calls that a handler left by a jump are further down a stack that has been given up.
        thread.slow.retain(|made| made.rsp > regs.rsp);
        thread.slow.extend(begun.map(|begun| SlotCall { slot, rsp: regs.rsp, begun }));
        self.tell(tid, told);
    }

    /// `now`: in ticks.
    pub fn behind_call(&mut self, tid: Pid, slot: u64, regs: &libc::user_regs_struct, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(place) = thread.slow.iter().rposition(|made| made.is_of(slot, regs.rsp)) else { return };
        let made = thread.slow.split_off(place).swap_remove(0);
        let (group, requests) = (thread.group, made.begun.requests.clone());
        let call = ptrace_stops::returned(tid, made.begun, regs.rax as i64, now).0;
        let calls = self.queues.ended(group, tid, call, &requests);
        self.tell(tid, calls);
    }

    /// The call within which a stopped thread stands, if that is made in a slot.
    pub fn within_slot(&self, tid: Pid, regs: &libc::user_regs_struct, now: u64) -> Option<Raw> {
        let slot = regs.rip.wrapping_sub(SYSCALL);
        self.breakpoints(tid)?.sites.get(&slot)?;
        let made = self.threads.get(&tid)?.slow.last().filter(|made| made.slot == slot)?;
        Some(ptrace_stops::returned(tid, made.begun.clone(), regs.rax as i64, now).0)
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
