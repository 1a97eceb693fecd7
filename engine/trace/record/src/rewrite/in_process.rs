//! The hook in this process itself: to measure what it costs, and to test it.

use std::arch::asm;
use std::io;

use crate::rewrite::hook::{Clock, Code, Entry};
use crate::rewrite::ring::Segment;

const ARCH_SET_GS: libc::c_int = 0x1001;

/// The hook's code, mapped here; it writes to one ring of a segment, in the thread that called `enter`.
pub(crate) struct Native {
    page: u64,
    code: Code,
}

impl Native {
    /// # Errors
    /// No executable memory can be had.
    pub fn new(clock: Clock, entry: impl Fn(u32) -> Entry, segment: &Segment) -> io::Result<Native> {
        let vdso = libc::clock_gettime as *const () as u64; // the same function, one jump further away
        let code = Code::new(clock, entry, segment.address(0), vdso);
        let bytes = code.bytes();
        // SAFETY: a fresh mapping, filled before it becomes code.
        let page = unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), bytes.len(), both, private, -1, 0);
            if page == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), page.cast(), bytes.len());
            if libc::mprotect(page, bytes.len(), libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return Err(io::Error::last_os_error());
            }
            page as u64
        };
        Ok(Native { page, code })
    }

    /// From now on this thread's calls are recorded in that ring. Nothing in this process uses `%gs` otherwise.
    pub fn enter(&self, segment: &Segment, ring: usize) {
        // SAFETY: only the hook looks at it.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, segment.address(ring)) };
    }

    /// No longer.
    pub fn leave(&self) {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, 0) };
    }

    pub fn entry(&self, entry: Entry) -> u64 {
        self.page + self.code.entry(entry)
    }

    #[cfg(test)]
    pub fn page(&self) -> u64 {
        self.page
    }

    #[cfg(test)]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The entry that looks at the number.
    #[cfg(test)]
    pub fn any(&self) -> u64 {
        self.page + self.code.any()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody runs it any more.
        unsafe { libc::munmap(self.page as *mut libc::c_void, self.code.bytes().len()) };
    }
}

/// A system call by way of an entry of the hook, as a trampoline makes it; what the kernel answers.
///
/// # Safety
/// As the call itself; `entry` is one of a `Native` that is alive.
#[inline(always)]
pub(crate) unsafe fn call(entry: u64, number: i64, arguments: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the entry keeps all registers but these, and comes back behind the call.
    unsafe {
        asm!(
            "lea rcx, [rip + 2f]",
            "jmp {entry}",
            "syscall",
            "2:",
            entry = in(reg) entry,
            inout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}
