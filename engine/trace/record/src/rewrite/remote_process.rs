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

/// Which signals a stopped thread blocks from now on.
fn set_mask(pid: Pid, mask: u64) -> io::Result<()> {
    ptrace(libc::PTRACE_SETSIGMASK, pid, size_of_val(&mask), &raw const mask as usize).map(drop)
}

/// Makes system calls in a stopped thread, by an instruction of the hook or, while there is none, of code that is
/// borrowed.
pub struct Remote<'a> {
    pub pid: Pid,
    pub memory: &'a Memory,
    /// As it goes on.
    pub saved: libc::user_regs_struct,
    /// Where the instruction is that makes its calls.
    at: u64,
    /// Where code is borrowed, and what was there; empty where none is.
    borrowed: (u64, Vec<u8>),
    /// The signals that it blocks; meanwhile it blocks all that can be.
    mask: u64,
    /// A signal that stops, which came meanwhile and is sent again.
    stop: Cell<libc::c_int>,
    over: bool,
}

/// All but those that the processor raises: blocked, they would lose the program's handlers for them.
const ALL_SIGNALS: u64 = !(1 << (libc::SIGTRAP - 1) | 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGBUS - 1));
const PAGE: u64 = 4096;

impl<'a> Remote<'a> {
    /// Borrows the beginning of the page of code where the thread stands, for these bytes; calls are made by the
    /// instruction at `call` in them. It has to be the only thread of its process. `mask`: the signals that it blocks.
    ///
    /// # Errors
    /// It is gone, or its memory cannot be written.
    pub fn begin(
        memory: &'a Memory,
        (pid, saved, mask): (Pid, libc::user_regs_struct, u64),
        bytes: &[u8],
        call: u64,
    ) -> io::Result<Remote<'a>> {
        assert!(bytes.len() as u64 <= PAGE);
        let from = saved.rip & !(PAGE - 1);
        let code = memory.read(from, bytes.len())?;
        set_mask(pid, ALL_SIGNALS)?;
        let (at, borrowed) = (from + call, (from, code));
        let remote = Remote { pid, memory, saved, at, borrowed, mask, stop: Cell::new(0), over: false };
        memory.write(from, bytes)?;
        Ok(remote)
    }

    /// By an instruction that is in its memory already: other threads may run.
    ///
    /// # Errors
    /// It is gone.
    pub fn by(
        memory: &'a Memory,
        (pid, saved, mask): (Pid, libc::user_regs_struct, u64),
        at: u64,
    ) -> io::Result<Remote<'a>> {
        set_mask(pid, ALL_SIGNALS)?;
        let borrowed = (0, Vec::new());
        Ok(Remote { pid, memory, saved, at, borrowed, mask, stop: Cell::new(0), over: false })
    }

    /// Puts the borrowed code back; from now on the instruction at `at` makes the calls.
    ///
    /// # Errors
    /// Its memory cannot be written.
    pub fn settle(&mut self, at: u64) -> io::Result<()> {
        self.at = at;
        let (from, code) = std::mem::take(&mut self.borrowed);
        if code.is_empty() { Ok(()) } else { self.memory.write(from, &code) }
    }

    /// Runs the borrowed code from its beginning to the breakpoint at which it ends; the registers then.
    ///
    /// # Errors
    /// It is gone.
    pub fn run_borrowed(&self, regs: &libc::user_regs_struct) -> io::Result<libc::user_regs_struct> {
        let mut after = *regs;
        let regs = libc::user_regs_struct { rip: self.borrowed.0, orig_rax: u64::MAX, ..*regs };
        self.run(&regs, || {
            after = registers(self.pid)?;
            Ok(after.rip == self.at)
        })?;
        Ok(after)
    }

    /// Lets it run with these registers to a breakpoint: until it stops by one and it is `over`. A signal that stops it
    /// is sent again at the end, of one that kills the launcher hears.
    ///
    /// # Errors
    /// It is gone; `EFAULT`: it came to memory that it may not use.
    pub fn run(
        &self,
        regs: &libc::user_regs_struct,
        mut over: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<()> {
        set_registers(self.pid, regs)?;
        loop {
            ptrace(libc::PTRACE_CONT, self.pid, 0, 0)?;
            let mut status = 0;
            // SAFETY: `status` is a valid place.
            let stopped = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) } == self.pid
                && libc::WIFSTOPPED(status);
            let signal = libc::WSTOPSIG(status);
            match status >> 16 {
                0 if stopped && signal == libc::SIGTRAP => {
                    if over()? {
                        return Ok(());
                    }
                }
                0 if stopped && matches!(signal, libc::SIGSEGV | libc::SIGBUS) && self.is_fault()? => {
                    return Err(io::Error::from_raw_os_error(libc::EFAULT));
                }
                0 | libc::PTRACE_EVENT_STOP if stopped => {}
                _ => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
            if status >> 16 == 0 || signal != libc::SIGTRAP {
                self.stop.set(signal); // not a stop that we have asked for
            }
        }
    }

    /// Whether the signal at which it stands is the processor's, and not one that somebody has sent.
    fn is_fault(&self) -> io::Result<bool> {
        // SAFETY: plain numbers, filled by the kernel.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETSIGINFO, self.pid, 0, &raw mut info as usize)?;
        Ok(info.si_code > 0)
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
        self.settle(self.at)?;
        set_registers(self.pid, &self.saved)?;
        set_mask(self.pid, self.mask)?;
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
