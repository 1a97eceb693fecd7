//! Another process, on x86-64: its registers, and system calls made in it.

use std::cell::Cell;
use std::io;

use crate::rewrite::remote::{Memory, Pid, ptrace};

pub fn registers(pid: Pid) -> io::Result<libc::user_regs_struct> {
    // SAFETY: plain numbers.
    let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut regs as usize)?;
    Ok(regs)
}

pub fn set_registers(pid: Pid, regs: &libc::user_regs_struct) -> io::Result<()> {
    ptrace(libc::PTRACE_SETREGS, pid, 0, regs as *const _ as usize).map(drop)
}

/// Which signals it blocks from now on; those before.
fn swap_mask(pid: Pid, new: u64) -> io::Result<u64> {
    let mut old = 0u64;
    ptrace(libc::PTRACE_GETSIGMASK, pid, size_of_val(&old), &raw mut old as usize)?;
    ptrace(libc::PTRACE_SETSIGMASK, pid, size_of_val(&new), &raw const new as usize)?;
    Ok(old)
}

/// Makes system calls in a stopped thread, by way of two bytes of its code that are put back, or of the hook.
pub struct Remote<'a> {
    pub pid: Pid,
    pub memory: &'a Memory,
    saved: libc::user_regs_struct,
    /// Where the instruction is that makes them.
    at: u64,
    /// What was there before; empty where the instruction stays.
    code: Vec<u8>,
    /// The signals that it blocks; meanwhile it blocks all that can be.
    mask: u64,
    /// A signal that stops, which came meanwhile and is sent again.
    stop: Cell<libc::c_int>,
    over: bool,
}

/// All but the one that a single step ends with: blocked, it would lose the program's handler for it.
const ALL_SIGNALS: u64 = !(1 << (libc::SIGTRAP - 1));

impl<'a> Remote<'a> {
    /// Borrows two bytes of the code where the thread stands: it has to be the only one of its process.
    ///
    /// # Errors
    /// It is gone, or its memory cannot be written.
    pub fn begin(pid: Pid, memory: &'a Memory) -> io::Result<Remote<'a>> {
        let saved = registers(pid)?;
        let code = memory.read(saved.rip, 2)?;
        let mask = swap_mask(pid, ALL_SIGNALS)?;
        let remote =
            Remote { pid, memory, saved, at: saved.rip, code, mask, stop: Cell::new(0), over: false };
        memory.write(saved.rip, &[0x0f, 0x05])?;
        Ok(remote)
    }

    /// By an instruction that is in its memory already: other threads may run.
    ///
    /// # Errors
    /// It is gone.
    pub fn by(pid: Pid, memory: &'a Memory, at: u64) -> io::Result<Remote<'a>> {
        let (saved, mask) = (registers(pid)?, swap_mask(pid, ALL_SIGNALS)?);
        Ok(Remote { pid, memory, saved, at, code: Vec::new(), mask, stop: Cell::new(0), over: false })
    }

    pub fn call(&self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let regs = libc::user_regs_struct {
            rax: number as u64,
            orig_rax: u64::MAX,
            rip: self.at,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.saved
        };
        set_registers(self.pid, &regs)?;
        self.step()?;
        match registers(self.pid)?.rax {
            failed if failed > -4096i64 as u64 => Err(io::Error::from_raw_os_error(-(failed as i64) as i32)),
            answer => Ok(answer),
        }
    }

    /// Lets it make one instruction. Signals that cannot be blocked come in between: one that stops it is sent again
    /// at the end, of one that kills the launcher hears.
    fn step(&self) -> io::Result<()> {
        loop {
            ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0)?;
            let mut status = 0;
            // SAFETY: `status` is a valid place.
            let stopped = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) } == self.pid
                && libc::WIFSTOPPED(status);
            match status >> 16 {
                0 if stopped && libc::WSTOPSIG(status) == libc::SIGTRAP => return Ok(()),
                0 | libc::PTRACE_EVENT_STOP if stopped => self.stop.set(libc::WSTOPSIG(status)),
                _ => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        }
    }

    /// Its memory, as it is without us.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.memory.read(at, length)?;
        for (index, byte) in self.code.iter().enumerate() {
            let place = (self.at + index as u64).wrapping_sub(at);
            if let Some(here) = bytes.get_mut(place as usize) {
                *here = *byte;
            }
        }
        Ok(bytes)
    }

    /// Whether the two bytes that are put back at the end are among these.
    pub fn borrows(&self, at: u64, length: usize) -> bool {
        !self.code.is_empty() && at < self.at + self.code.len() as u64 && self.at < at + length as u64
    }

    /// Some room below its stack.
    pub fn scratch(&self) -> u64 {
        (self.saved.rsp - 8192) & !63
    }

    /// Puts the code and the registers back, but for `gs_base`. It is done without one where this is not called.
    pub fn end(mut self, gs_base: Option<u64>) -> io::Result<()> {
        if let Some(base) = gs_base {
            self.saved.gs_base = base;
        }
        self.put_back()
    }

    fn put_back(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        self.memory.write(self.at, &self.code)?;
        set_registers(self.pid, &self.saved)?;
        swap_mask(self.pid, self.mask)?;
        if self.stop.get() != 0 {
            // SAFETY: a thread that is ours to trace.
            unsafe { libc::syscall(libc::SYS_tkill, self.pid, self.stop.get()) };
        }
        Ok(())
    }
}

impl Drop for Remote<'_> {
    fn drop(&mut self) {
        let _ = self.put_back(); // it is gone, or runs as it was
    }
}
