//! System calls and copies that a stopped thread of a program makes one behind the other, by code that stands beside
//! the hook: the launcher writes the list of them to memory that both share, and the thread stops once, when all are
//! made. To make each call by itself takes four system calls of the launcher.

use std::arch::global_asm;
use std::io;

use crate::rewrite::layout::{EXCHANGE, EXCHANGE_LENGTH};
use crate::rewrite::remote_process::Remote;
use crate::rewrite::ring::Segment;

/// Bytes of an entry: what is to be done, six arguments, the result.
const ENTRY: usize = 64;
/// Before the first entry: how many were not done, written at the end.
const HEAD: usize = 64;
/// In place of a call's number: bytes are copied.
const COPY: u64 = 1 << 31;
/// Beside that: only where other bytes are that are expected.
const CHECKED: u64 = 1 << 30;
/// Beside a call's number: the rest is done also if it fails.
const MAY_FAIL: u64 = 1 << 32;
/// In place of the number that were not done, until the end.
const BUSY: u64 = u64::MAX;

// rbx: the list; r12: how many; r13: the next. All registers are given back by the launcher.
global_asm!(
    ".section .rodata.etude_batch,\"a\",@progbits",
    ".balign 64",
    ".globl etude_batch_begin",
    "etude_batch_begin:",
    "cld",
    "2:",
    "test %r12, %r12",
    "jz 5f",
    "mov (%r13), %rax",
    "mov 8(%r13), %rdi",
    "mov 16(%r13), %rsi",
    "mov 24(%r13), %rdx",
    "test %eax, %eax",
    "js 3f",
    "mov 32(%r13), %r10",
    "mov 40(%r13), %r8",
    "mov 48(%r13), %r9",
    "mov %eax, %eax", // without what stands beside it
    "syscall",
    "mov %rax, 56(%r13)",
    "cmp $-4096, %rax",
    "jbe 4f",
    "testl $1, 4(%r13)",
    "jz 5f",
    "jmp 4f",
    "3:",
    "test ${checked}, %eax",
    "jz 6f",
    "mov 32(%r13), %rsi",
    "mov 40(%r13), %rcx",
    "repe cmpsb",
    "setne 56(%r13)",
    "jne 4f",
    "mov 8(%r13), %rdi",
    "mov 16(%r13), %rsi",
    "6:",
    "mov %rdx, %rcx",
    "rep movsb",
    "4:",
    "add $64, %r13",
    "dec %r12",
    "jmp 2b",
    "5:",
    "mov %r12, (%rbx)",
    "int3",
    ".globl etude_batch_end",
    "etude_batch_end:",
    ".text",
    checked = const CHECKED,
    options(att_syntax)
);

unsafe extern "C" {
    static etude_batch_begin: u8;
    static etude_batch_end: u8;
}

/// The code that works off a list.
pub fn code() -> &'static [u8] {
    let (begin, end) = (&raw const etude_batch_begin, &raw const etude_batch_end);
    // SAFETY: both labels are in one section of this program, in this order.
    unsafe { std::slice::from_raw_parts(begin, end.offset_from(begin) as usize) }
}

/// Where in a program that code is, and the shared memory.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub code: u64,
    pub segment: u64,
}

/// A list of calls and copies.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    entries: Vec<[u64; ENTRY / 8]>,
    data: Vec<u8>,
}

/// The entry at which a batch ended, with the call's error; what comes behind it was not done.
#[derive(Debug)]
pub struct Failed {
    pub index: usize,
    pub error: io::Error,
}

impl Batch {
    pub fn call(&mut self, number: i64, arguments: [u64; 6]) {
        let [a, b, c, d, e, f] = arguments;
        self.entries.push([number as u64, a, b, c, d, e, f, 0]);
    }

    /// A call that may fail.
    pub fn attempt(&mut self, number: i64, arguments: [u64; 6]) {
        self.call(number | MAY_FAIL as i64, arguments);
    }

    pub fn copy(&mut self, to: u64, bytes: &[u8]) {
        self.entries.push([COPY, to, self.data.len() as u64, bytes.len() as u64, 0, 0, 0, 0]);
        self.data.extend(bytes);
    }

    /// Copies where these bytes are `expected`; see `was_other`.
    pub fn replace(&mut self, at: u64, expected: &[u8], bytes: &[u8]) {
        let [from, to] = [expected, bytes].map(|each| {
            self.data.extend(each);
            (self.data.len() - each.len()) as u64
        });
        let lengths = (bytes.len() as u64, expected.len() as u64);
        self.entries.push([COPY | CHECKED, at, to, lengths.0, from, lengths.1, 0, 0]);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether so many entries and bytes more have room in the shared memory.
    pub fn has_room(&self, entries: usize, bytes: usize) -> bool {
        HEAD + ENTRY * (self.entries.len() + entries) + self.data.len() + bytes <= EXCHANGE_LENGTH
    }

    /// The list as it stands at that address.
    fn bytes(&self, list: u64) -> Vec<u8> {
        let data = list + (HEAD + ENTRY * self.entries.len()) as u64;
        let mut bytes = Vec::with_capacity((data - list) as usize + self.data.len());
        bytes.extend(BUSY.to_le_bytes());
        bytes.resize(HEAD, 0);
        for entry in &self.entries {
            let mut entry = *entry;
            if entry[0] & COPY != 0 {
                entry[2] += data;
                entry[4] += data;
            }
            entry.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        bytes.extend(&self.data);
        bytes
    }

    /// Has a stopped thread do it all; `Some` where a call failed.
    ///
    /// # Errors
    /// The thread is gone; `EFAULT`: it may not write where it was to copy to, and how far it came is not known.
    pub fn run(&self, remote: &Remote, segment: &Segment, place: Place) -> io::Result<Option<Failed>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let list = place.segment + EXCHANGE as u64;
        segment.exchange(&self.bytes(list));
        let regs = libc::user_regs_struct {
            rip: place.code,
            orig_rax: u64::MAX,
            rbx: list,
            r12: self.entries.len() as u64,
            r13: list + HEAD as u64,
            ..remote.saved
        };
        remote.run(&regs, || Ok(segment.exchanged(0) != BUSY))?;
        Ok(self.failed(segment))
    }

    fn failed(&self, segment: &Segment) -> Option<Failed> {
        let left = segment.exchanged(0) as usize;
        let index = self.entries.len().checked_sub(left).filter(|_| left > 0)?;
        let answer = segment.exchanged(HEAD + ENTRY * index + 56) as i64;
        Some(Failed { index, error: io::Error::from_raw_os_error(-answer as i32) })
    }
}

/// Whether the bytes that an entry of the last batch was to replace were others, and are as they were.
pub fn was_other(segment: &Segment, index: usize) -> bool {
    segment.exchanged(HEAD + ENTRY * index + 56) != 0
}

#[cfg(test)]
mod tests {
    use std::arch::asm;

    use super::*;

    /// Runs a batch in this thread: its code ends with a return here, not with a breakpoint.
    fn run(batch: &Batch, segment: &Segment) -> Option<Failed> {
        let list = segment.address(0) + EXCHANGE as u64;
        segment.exchange(&batch.bytes(list));
        let mut bytes = code().to_vec();
        *bytes.last_mut().unwrap() = 0xc3;
        // SAFETY: a fresh mapping, filled before it becomes code; the code keeps the registers that are not named.
        unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), 4096, both, private, -1, 0);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), page.cast(), bytes.len());
            libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC);
            asm!(
                "push rbx", "mov rbx, r14", "call r15", "pop rbx",
                in("r14") list, in("r15") page as u64,
                inout("r12") batch.len() as u64 => _, inout("r13") list + HEAD as u64 => _,
                out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            );
            libc::munmap(page, 4096);
        }
        batch.failed(segment)
    }

    #[test]
    fn calls_and_copies_are_made_in_order_up_to_one_that_fails() {
        let segment = Segment::new().unwrap();
        let (mut first, mut second, mut third) = (*b"....", *b"one two", *b"....");
        let mut batch = Batch::default();
        batch.copy(first.as_mut_ptr() as u64, b"done");
        batch.attempt(libc::SYS_close, [u64::MAX, 0, 0, 0, 0, 0]);
        batch.replace(second.as_mut_ptr() as u64, b"one", b"1");
        batch.replace(second.as_mut_ptr() as u64 + 4, b"three", b"3");
        batch.call(libc::SYS_getpid, [0; 6]);
        batch.call(libc::SYS_close, [u64::MAX, 0, 0, 0, 0, 0]);
        batch.copy(third.as_mut_ptr() as u64, b"done");
        let failed = run(&batch, &segment).unwrap();
        assert_eq!((failed.index, failed.error.raw_os_error()), (5, Some(libc::EBADF)));
        assert_eq!((&first, &second, &third), (b"done", b"1ne two", b"...."));
        assert_eq!([2, 3].map(|index| was_other(&segment, index)), [false, true]);
        assert_eq!(segment.exchanged(HEAD + 4 * ENTRY + 56), u64::from(std::process::id()));
        assert!(run(&Batch::default(), &segment).is_none());
    }
}
