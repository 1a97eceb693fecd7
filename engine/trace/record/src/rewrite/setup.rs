//! The hook's memory in a program that has just been executed: the rings, and room for code. Most programs map both by
//! themselves, in one go, by code that is borrowed for it; where one may not open the rings, they are handed over
//! (`descriptor_passing.rs`).

use std::arch::global_asm;
use std::io;

use crate::rewrite::descriptor_passing;
use crate::rewrite::maps::{Mapping, mappings};
use crate::rewrite::remote::{Memory, Pid};
use crate::rewrite::remote_process::Remote;
use crate::rewrite::ring::Segment;

// Opens the path at its end, maps it (rbx: the descriptor, rbp: where, r14: its length) and room for code (r12, r13).
global_asm!(
    ".section .rodata.etude_setup,\"a\",@progbits",
    ".balign 64",
    ".globl etude_setup_begin",
    "etude_setup_begin:",
    "lea 3f(%rip), %rsi",
    "mov $-100, %rdi",
    "mov ${open}, %edx",
    "xor %r10d, %r10d",
    "mov $257, %eax", // openat
    "syscall",
    "mov %rax, %rbx",
    "test %rax, %rax",
    "js 2f",
    "mov %rax, %r8",
    "xor %edi, %edi",
    "mov %r14, %rsi",
    "mov $3, %edx", // read, write
    "mov $1, %r10d", // shared
    "xor %r9d, %r9d",
    "mov $9, %eax", // mmap
    "syscall",
    "mov %rax, %rbp",
    "xor %edi, %edi",
    "mov %r13, %rsi",
    "mov $5, %edx", // read, execute
    "mov $0x22, %r10d", // private, anonymous
    "mov $-1, %r8",
    "xor %r9d, %r9d",
    "mov $9, %eax",
    "syscall",
    "mov %rax, %r12",
    "2:",
    "int3",
    ".globl etude_setup_call",
    "etude_setup_call:", // for one call
    "syscall",
    "int3",
    ".globl etude_setup_path",
    "etude_setup_path:",
    "3:",
    open = const libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK,
    options(att_syntax)
);
global_asm!(".text");

unsafe extern "C" {
    static etude_setup_begin: u8;
    static etude_setup_call: u8;
    static etude_setup_path: u8;
}

/// Memory that was mapped into the program.
pub struct Placed {
    pub segment: u64,
    pub code: u64,
    /// A descriptor of the rings that is still open in it.
    pub descriptor: u64,
    /// All that is mapped in it now.
    pub taken: Vec<Mapping>,
}

/// The code to borrow, and where in it a single call is made.
fn borrowed(segment: &Segment) -> (Vec<u8>, u64) {
    let begin = &raw const etude_setup_begin;
    // SAFETY: these labels are in one section of this program, in this order.
    let (mut bytes, call) = unsafe {
        let length = (&raw const etude_setup_path).offset_from(begin) as usize;
        let call = (&raw const etude_setup_call).offset_from(begin) as u64;
        (std::slice::from_raw_parts(begin, length).to_vec(), call)
    };
    bytes.extend(format!("/proc/{}/fd/{}\0", segment.process(), segment.descriptor()).bytes());
    (bytes, call)
}

/// Maps the rings, and `size` bytes for code, in a process with one thread that has just been executed.
///
/// # Errors
/// Its memory cannot be written, or it cannot have the rings.
pub fn place<'a>(
    memory: &'a Memory,
    thread: (Pid, libc::user_regs_struct, u64),
    segment: &Segment,
    size: u64,
) -> io::Result<(Remote<'a>, Placed)> {
    let (code, call) = borrowed(segment);
    let remote = Remote::begin(memory, thread, &code, call)?;
    let none = u64::MAX;
    let regs = remote.run_borrowed(&libc::user_regs_struct {
        rbx: none,
        rbp: none,
        r12: none,
        r13: size,
        r14: Segment::LENGTH as u64,
        ..remote.saved
    })?;
    let taken = mappings(thread.0)?;
    let made = Placed { segment: regs.rbp, code: regs.r12, descriptor: regs.rbx, taken };
    // In another namespace of processes, another one may have our number.
    let is_ours = |each: &Mapping| each.low == made.segment && each.file == segment.identity();
    if is_valid(made.code) && made.taken.iter().any(is_ours) {
        return Ok((remote, made));
    }
    for (at, size) in [(made.segment, Segment::LENGTH as u64), (made.code, size)] {
        if is_valid(at) {
            remote.call(libc::SYS_munmap, [at, size, 0, 0, 0, 0])?;
        }
    }
    if is_valid(made.descriptor) {
        remote.call(libc::SYS_close, [made.descriptor, 0, 0, 0, 0, 0])?;
    }
    let placed = handed_over(&remote, segment, size)?;
    Ok((remote, placed))
}

fn is_valid(answer: u64) -> bool {
    answer <= -4096i64 as u64
}

/// The same with a descriptor of the rings that is sent to it.
fn handed_over(remote: &Remote, segment: &Segment, size: u64) -> io::Result<Placed> {
    let descriptor = descriptor_passing::hand_over(remote, segment)?;
    let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let length = Segment::LENGTH as u64;
    let shared = libc::MAP_SHARED as u64;
    let segment = remote.call(libc::SYS_mmap, [0, length, both, shared, descriptor, 0])?;
    let code = map_code(remote, 0, size, 0)?;
    Ok(Placed { segment, code, descriptor, taken: mappings(remote.pid)? })
}

/// Maps memory for code, as `mmap` with these flags.
///
/// # Errors
/// Those of mmap.
pub fn map_code(remote: &Remote, at: u64, size: u64, flags: libc::c_int) -> io::Result<u64> {
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags) as u64;
    remote.call(libc::SYS_mmap, [at, size, protection, flags, u64::MAX, 0])
}
