//! The code that runs inside the recorded program.
//!
//! Position-independent assembly that is copied into each recorded image. It makes no system call of its own, but to
//! sleep where its ring is full, takes no lock, uses 160 bytes of stack below the red zone of 128, and changes no register but those that a system call may change
//! (rax, rcx, r11, flags). `%gs` points to the thread's ring (`layout`); of a program that sets it itself nothing is
//! read there, for it may point to nothing: `rdgsbase` tells.
//!
//! It is entered from a trampoline with the call's number in rax, its arguments where the kernel expects them, and in
//! rcx the address at which the program goes on; the two bytes before that address are a `syscall` instruction, so
//! that a call that is not to be recorded is made by going there.

use std::arch::global_asm;
use std::ops::Range;

pub use crate::rewrite::clock::Clock;
use crate::rewrite::layout::{
    DATA, DROPPED, DROPS, HEAD, HEADER, LEFT, MAGIC, MARGIN, MODE, OWNER, OWNER_DIED, RING, RINGS, SLOT,
    SPINS, TAIL, WAITS,
};

/// What is recorded of a call, and so by which entry it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Entry {
    /// Not recorded.
    Raw = 0,
    /// Result and the first four arguments.
    Plain = 1,
    /// All six arguments.
    Wide = 2,
    /// As Wide; then the launcher is told if code was mapped.
    Map = 3,
    /// A path in the first argument.
    Path1 = 4,
    /// A path in the second.
    Path2 = 5,
    /// Paths in the first and second.
    Path12 = 6,
    /// In the second and fourth.
    Path24 = 7,
    /// In the first and third.
    Path13 = 8,
    /// Not recorded; but the thread never again, if it forbids itself to read the clock (seccomp's strict mode does).
    Quiet = 9,
    /// The first argument says where the call puts a pair of descriptors.
    Pair1 = 10,
    /// The fourth.
    Pair4 = 11,
    /// The launcher looks before the call and behind it.
    Stop = 12,
    /// Where the second argument is a command of fcntl that locks, the third says where the range stands; else as Plain.
    Range3 = 13,
    /// The second argument is a socket's address, and the third its length.
    Address2 = 14,
    /// The third argument says where an offset stands, or is null.
    Offset3 = 15,
    /// The second and the fourth.
    Offset24 = 16,
}

impl Entry {
    /// In the order of their numbers.
    pub const ALL: [Entry; 17] = {
        use Entry::*;
        [
            Raw, Plain, Wide, Map, Path1, Path2, Path12, Path24, Path13, Quiet, Pair1, Pair4, Stop, Range3,
            Address2, Offset3, Offset24,
        ]
    };
}

// Frame: 0 return, 8 rdx, 16 rax (number), 24 t0, 32 result, 40 and 48 texts, 56 word, 64 t1, 72 and 76 their lengths, 80 slots,
// 84 how many bytes of the first are not copied; while it waits for room
// 104 rdi, 112 rsi, 120 r10, 128 time, 144 and 152 where it goes on.
macro_rules! hook {
    ($prefix:literal, $stamp:literal) => {
        global_asm!(
            ".section .rodata.etude_hook,\"a\",@progbits",
            ".balign 64",
            concat!(".globl ", $prefix, "begin"),
            concat!($prefix, "begin:"),
            // the vdso's clock_gettime, filled in for each image
            ".quad 0",
            // where the rings are
            concat!($prefix, "rings:"),
            ".quad 0",
            concat!($prefix, "entries:"),
            concat!(".long ", $prefix, "raw - ", $prefix, "begin"),
            concat!(".long ", $prefix, "plain - ", $prefix, "begin"),
            concat!(".long ", $prefix, "wide - ", $prefix, "begin"),
            concat!(".long ", $prefix, "map - ", $prefix, "begin"),
            concat!(".long ", $prefix, "path1 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "path2 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "path12 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "path24 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "path13 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "quiet - ", $prefix, "begin"),
            concat!(".long ", $prefix, "pair1 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "pair4 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "stop - ", $prefix, "begin"),
            concat!(".long ", $prefix, "range3 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "address2 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "offset3 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "offset24 - ", $prefix, "begin"),
            concat!(".long ", $prefix, "any - ", $prefix, "begin"),
            concat!(".long ", $prefix, "trap - ", $prefix, "begin"),
            concat!(".long ", $prefix, "remote - ", $prefix, "begin"),
            concat!(".long ", $prefix, "made - ", $prefix, "begin"),
            concat!(".long ", $prefix, "long_made - ", $prefix, "begin"),
            concat!(".long ", $prefix, "reserved - ", $prefix, "begin"),
            concat!(".long ", $prefix, "written - ", $prefix, "begin"),
            concat!(".long ", $prefix, "long_reserved - ", $prefix, "begin"),
            concat!(".long ", $prefix, "long_written - ", $prefix, "begin"),
            concat!(".long ", $prefix, "stops - ", $prefix, "begin"),
            concat!(".long ", $prefix, "stopped - ", $prefix, "begin"),
            // which entry each number takes, where only rax knows it
            concat!($prefix, "kinds:"),
            ".fill 512, 1, 0",
            ".balign 16",
            concat!($prefix, "any:"),
            "cmp $511, %rax",
            concat!("ja ", $prefix, "raw"),
            concat!("lea ", $prefix, "kinds(%rip), %r11"),
            "movzbl (%r11,%rax), %r11d",
            "test %r11d, %r11d",
            concat!("jz ", $prefix, "raw"),
            "lea -288(%rsp), %rsp",
            "mov %rdx, 8(%rsp)",
            concat!("lea ", $prefix, "entries(%rip), %rdx"),
            "movslq (%rdx,%r11,4), %r11",
            concat!("lea ", $prefix, "begin(%rip), %rdx"),
            "add %rdx, %r11",
            "mov 8(%rsp), %rdx",
            "lea 288(%rsp), %rsp",
            "jmp *%r11",
            concat!($prefix, "remote:"), // for calls that the launcher makes in this thread
            "syscall",
            "int3",
            concat!($prefix, "raw:"),
            "sub $2, %rcx",
            "jmp *%rcx",
            // --- prctl 157: PR_SET_SECCOMP 22 strict 1 filter 2, PR_SET_TSC 26 fault 2; seccomp 317: strict 0 filter 1
            concat!($prefix, "quiet:"),
            "cmp $157, %eax",
            "jne 3f",
            "cmp $26, %edi",
            "je 2f",
            "cmp $22, %edi",
            concat!("jne ", $prefix, "raw"),
            "cmp $1, %esi",
            "je 4f",
            "cmp $2, %esi",
            concat!("jne ", $prefix, "raw"),
            "jmp 5f",
            "2:",
            "cmp $2, %esi",
            concat!("jne ", $prefix, "raw"),
            "jmp 4f",
            "3:",
            "test %edi, %edi",
            "jz 4f",
            "cmp $1, %edi",
            concat!("jne ", $prefix, "raw"),
            "5:", // a filter may kill for calls that are not the program's: its threads make none any more
            "rdgsbase %r11",
            concat!("sub ", $prefix, "rings(%rip), %r11"),
            "cmp ${length}, %r11",
            concat!("jae ", $prefix, "raw"),
            "orl ${spins}, %gs:{mode}",
            concat!("jmp ", $prefix, "raw"),
            "4:",
            "rdgsbase %r11",
            concat!("sub ", $prefix, "rings(%rip), %r11"),
            "cmp ${length}, %r11",
            concat!("jae ", $prefix, "raw"),
            "movl $0, %gs:0",
            concat!("jmp ", $prefix, "raw"),
            ".balign 16",
            // --- the launcher looks behind the call, and but for io_uring before it, if it is there: else the trap would
            // be a signal that kills
            concat!($prefix, "stop:"),
            "rdgsbase %r11",
            concat!("sub ", $prefix, "rings(%rip), %r11"),
            "cmp ${length}, %r11",
            concat!("jae ", $prefix, "raw"),
            "cmpl ${magic}, %gs:0",
            concat!("jne ", $prefix, "raw"),
            "testl ${died}, %gs:{owner}",
            concat!("jnz ", $prefix, "raw"),
            "lea -288(%rsp), %rsp",
            "mov %rcx, (%rsp)",
            "mov %rdx, 8(%rsp)",
            "mov %rax, 16(%rsp)",
            $stamp,
            "mov %rax, 24(%rsp)", // it comes (`LOOK`)
            "mov %rax, 32(%rsp)",
            "mov 16(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "cmp ${uring}, %eax",
            "jae 3f",
            concat!($prefix, "stops:"),
            "int3",
            $stamp,
            "mov %rax, 32(%rsp)", // the call begins
            "mov 16(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "3:",
            "syscall",
            "mov %rax, 48(%rsp)",
            $stamp,
            "mov %rax, 40(%rsp)", // it ended
            "mov 48(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "testl ${died}, %gs:{owner}",
            "jnz 2f",
            concat!($prefix, "stopped:"),
            "int3",
            "2:",
            $stamp,
            "mov %rax, %gs:{left}",
            "mov 48(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "mov (%rsp), %rcx",
            "lea 288(%rsp), %rsp",
            "jmp *%rcx",
            ".balign 16",
            // --- one slot
            concat!($prefix, "plain:"),
            "rdgsbase %r11",
            concat!("sub ", $prefix, "rings(%rip), %r11"),
            "cmp ${length}, %r11",
            concat!("jae ", $prefix, "raw"),
            "cmpl ${magic}, %gs:0",
            concat!("jne ", $prefix, "raw"),
            "lea -288(%rsp), %rsp",
            "mov %rcx, (%rsp)",
            "mov %rdx, 8(%rsp)",
            "mov %rax, 16(%rsp)",
            "mov %gs:{head}, %r11",
            "and ${mask}, %r11d",
            "prefetchw %gs:{data}(%r11)", // the launcher has read this line last
            $stamp,
            "mov %rax, 24(%rsp)",
            "mov 16(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "syscall",
            concat!($prefix, "made:"),
            "mov %rax, 32(%rsp)",
            $stamp,
            "mov %rax, %rdx",
            "2:",
            "mov %gs:{head}, %rcx",
            "sub %gs:{tail}, %rcx",
            "cmp ${full}, %rcx",
            "jae 7f",
            "3:",
            "mov ${slot}, %ecx",
            "xadd %rcx, %gs:{head}", // one instruction: a signal sees it done or not
            // from here a signal makes the launcher take the record (`half`); rdx is when it ended until it is written
            concat!($prefix, "reserved:"),
            "mov %rcx, %r11",
            "and ${mask}, %r11d",
            "mov %rdx, %gs:{data}+16(%r11)",
            "mov 24(%rsp), %rax",
            "mov %rax, %gs:{data}+8(%r11)",
            "mov 8(%rsp), %rax",
            "mov %rax, %gs:{data}+48(%r11)",
            "mov 32(%rsp), %rax",
            "mov %rax, %gs:{data}+24(%r11)",
            "mov %rdi, %gs:{data}+32(%r11)",
            "mov %rsi, %gs:{data}+40(%r11)",
            "mov %r10, %gs:{data}+56(%r11)",
            "shl $10, %rcx",
            "or 16(%rsp), %rcx",
            "mov %rcx, %gs:{data}(%r11)", // last: now it is there
            concat!($prefix, "written:"),
            "4:",
            "mov 8(%rsp), %rdx",
            "mov (%rsp), %rcx",
            "lea 288(%rsp), %rsp",
            "jmp *%rcx",
            // full: wait for the consumer, or drop
            "7:",
            "mov %rdx, 64(%rsp)",
            "lea 5f(%rip), %rcx",
            "lea 8f(%rip), %r11",
            concat!("jmp ", $prefix, "wait"),
            "5:",
            "mov 64(%rsp), %rdx",
            "jmp 3b",
            "8:",
            "incq %gs:{dropped}",
            "mov 32(%rsp), %rax",
            "jmp 4b",
            ".balign 16",
            // --- wait for room: goes on at rcx where there is some, at r11 where none comes. rax and rdx are lost
            concat!($prefix, "wait:"),
            "mov %rdi, 104(%rsp)",
            "mov %rsi, 112(%rsp)",
            "mov %r10, 120(%rsp)",
            "mov %rcx, 144(%rsp)",
            "mov %r11, 152(%rsp)",
            "mov $1024, %esi", // looks before it sleeps
            "2:",
            "testl ${drops}, %gs:{mode}",
            "jnz 5f",
            "testl ${died}, %gs:{owner}",
            "jnz 5f",
            "mov %gs:{tail}, %rdx",
            "mov %gs:{head}, %rcx",
            "sub %rdx, %rcx",
            "cmp ${full}, %rcx",
            "jb 4f",
            "pause",
            "testl ${spins}, %gs:{mode}",
            "jnz 2b",
            "dec %esi",
            "jns 2b",
            "cmp $-1, %esi",
            "jne 3f",
            "movl $1, %gs:{waits}", // and looks once more, since the consumer may have missed that
            "mfence",
            "jmp 2b",
            "3:",
            "rdgsbase %rdi",
            "add ${tail}, %rdi",
            "xor %esi, %esi", // FUTEX_WAIT, 10 ms: of the recorder's end nobody tells
            "movq $0, 128(%rsp)",
            "movq $10000000, 136(%rsp)",
            "lea 128(%rsp), %r10",
            "mov $202, %eax",
            "syscall",
            "xor %esi, %esi",
            "jmp 2b",
            "4:",
            "mov 144(%rsp), %rcx",
            "jmp 6f",
            "5:",
            "mov 152(%rsp), %rcx",
            "6:",
            "mov 104(%rsp), %rdi",
            "mov 112(%rsp), %rsi",
            "mov 120(%rsp), %r10",
            "jmp *%rcx",
            ".balign 16",
            // --- several slots: all arguments, and up to two texts
            concat!($prefix, "path1:"),
            "lea -288(%rsp), %rsp",
            "mov %rdi, 40(%rsp)",
            "movq $0, 48(%rsp)",
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "path2:"),
            "lea -288(%rsp), %rsp",
            "mov %rsi, 40(%rsp)",
            "movq $0, 48(%rsp)",
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "path12:"),
            "lea -288(%rsp), %rsp",
            "mov %rdi, 40(%rsp)",
            "mov %rsi, 48(%rsp)",
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "path24:"),
            "lea -288(%rsp), %rsp",
            "mov %rsi, 40(%rsp)",
            "mov %r10, 48(%rsp)",
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "path13:"),
            "lea -288(%rsp), %rsp",
            "mov %rdi, 40(%rsp)",
            "mov %rdx, 48(%rsp)",
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "pair1:"),
            "lea -288(%rsp), %rsp",
            "mov %rdi, 40(%rsp)",
            "movq $1, 48(%rsp)", // no place of a text: the first is a pair
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "pair4:"),
            "lea -288(%rsp), %rsp",
            "mov %r10, 40(%rsp)",
            "movq $1, 48(%rsp)",
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "range3:"), // F_SETLK 6, F_SETLKW 7, F_OFD_SETLK 37, F_OFD_SETLKW 38
            "lea -6(%rsi), %r11d",
            "cmp $1, %r11d",
            "jbe 2f",
            "lea -37(%rsi), %r11d",
            "cmp $1, %r11d",
            concat!("ja ", $prefix, "plain"),
            "2:",
            "lea -288(%rsp), %rsp",
            "mov %rdx, 40(%rsp)",
            "movq $2, 48(%rsp)", // nor is this one: the first is a range
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "address2:"),
            "lea -288(%rsp), %rsp",
            "mov %rsi, 40(%rsp)",
            "movq $3, 48(%rsp)", // nor this one: the first is an address
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "offset3:"),
            "lea -288(%rsp), %rsp",
            "movq $4, 48(%rsp)", // nor this one: rdx says where an offset is
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "offset24:"),
            "lea -288(%rsp), %rsp",
            "movq $5, 48(%rsp)", // rsi and r10 do
            concat!("jmp ", $prefix, "long"),
            concat!($prefix, "wide:"),
            concat!($prefix, "map:"),
            "lea -288(%rsp), %rsp",
            "movq $0, 40(%rsp)",
            "movq $0, 48(%rsp)",
            concat!($prefix, "long:"),
            "rdgsbase %r11",
            concat!("sub ", $prefix, "rings(%rip), %r11"),
            "cmp ${length}, %r11",
            "jae 9f",
            "cmpl ${magic}, %gs:0",
            "jne 9f",
            "mov %rcx, (%rsp)",
            "mov %rdx, 8(%rsp)",
            "mov %rax, 16(%rsp)",
            "mov %gs:{head}, %r11",
            "and ${mask}, %r11d",
            "prefetchw %gs:{data}(%r11)", // the launcher has read this line last
            $stamp,
            "mov %rax, 24(%rsp)",
            "mov 16(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "syscall",
            concat!($prefix, "long_made:"),
            "mov %rax, 32(%rsp)",
            $stamp,
            "mov %rax, 64(%rsp)", // t1
            "movl $0, 84(%rsp)",
            "cmpq $-14, 32(%rsp)", // EFAULT: the texts cannot be read
            "je 3f",
            "cmpq $-38, 32(%rsp)", // ENOSYS: nobody has read them
            "jne 2f",
            "3:",
            "movq $0, 40(%rsp)",
            "movq $0, 48(%rsp)",
            "2:",
            "cmpq $2, 48(%rsp)",
            "jne 2f",
            "movq $0, 48(%rsp)",
            "mov ${range} + 1, %ecx", // with a final zero that nobody reads
            "cmpq $0, 32(%rsp)",
            "je 3f",
            "cmpq $-11, 32(%rsp)", // EAGAIN
            "je 3f",
            "cmpq $-35, 32(%rsp)", // EDEADLK; after all others the range may not be there
            "je 3f",
            "movq $0, 40(%rsp)",
            "xor %ecx, %ecx",
            "jmp 3f",
            "2:",
            "cmpq $3, 48(%rsp)",
            "jne 2f",
            "movq $0, 48(%rsp)",
            "xor %ecx, %ecx",
            "mov 40(%rsp), %rdx",
            "movq $0, 40(%rsp)",
            "cmpq $0, 32(%rsp)", // after an error the address may not be there
            "jne 3f",
            "mov 8(%rsp), %eax",
            "lea -{shortest}(%rax), %r11d",
            "cmp ${longest} - {shortest}, %r11d",
            "ja 3f",
            "cmpw ${unix}, (%rdx)",
            "jne 3f",
            "mov %rdx, 40(%rsp)",
            "lea 1(%rax), %ecx", // without the final zero, which is not there
            "movl $1, 84(%rsp)",
            "jmp 3f",
            "2:",
            "mov 8(%rsp), %rdx",
            "xor %eax, %eax",
            "cmpq $4, 48(%rsp)",
            "je 4f",
            "mov %rsi, %rdx",
            "mov %r10, %rax",
            "cmpq $5, 48(%rsp)",
            "jne 2f",
            "4:",
            "movq $0, 40(%rsp)",
            "movq $0, 48(%rsp)",
            "xor %ecx, %ecx",
            "cmpq $0, 32(%rsp)", // after an error the offsets may not be there
            "jl 3f",
            "xor %r11d, %r11d",
            "test %rax, %rax",
            "jz 4f",
            "mov (%rax), %rax",
            "mov %rax, 96(%rsp)",
            "lea 96(%rsp), %rax",
            "mov %rax, 48(%rsp)",
            "mov $9, %r11d", // with a final zero that nobody reads
            "4:",
            "test %rdx, %rdx",
            "jz 4f",
            "mov (%rdx), %rdx",
            "mov %rdx, 88(%rsp)",
            "lea 88(%rsp), %rdx",
            "mov %rdx, 40(%rsp)",
            "mov $9, %ecx",
            "4:",
            "mov %ecx, 72(%rsp)",
            concat!("jmp ", $prefix, "lengths"),
            "2:",
            "cmpq $1, 48(%rsp)",
            "jne 2f",
            "movq $0, 48(%rsp)",
            "cmpq $0, 32(%rsp)",
            "mov $0, %ecx",
            "mov 40(%rsp), %rdx",
            "mov %rcx, 40(%rsp)",
            "jne 3f", // nothing was put there
            "mov (%rdx), %rdx",
            "mov %rdx, 88(%rsp)",
            "movb $0, 96(%rsp)",
            "lea 88(%rsp), %rdx",
            "mov %rdx, 40(%rsp)",
            "mov $9, %ecx",
            "jmp 3f",
            "2:",
            // slots: 2 for the arguments, more for texts; lengths are taken with their final zero
            "xor %ecx, %ecx",
            "mov 40(%rsp), %rdx",
            "test %rdx, %rdx",
            "jz 3f",
            "2:",
            "movzbl (%rdx), %eax",
            "inc %rdx",
            "inc %ecx",
            "test %eax, %eax",
            "jz 3f",
            "cmp $1900, %ecx",
            "jb 2b",
            "3:",
            "mov %ecx, 72(%rsp)",
            "xor %r11d, %r11d",
            "mov 48(%rsp), %rdx",
            "test %rdx, %rdx",
            "jz 3f",
            "2:",
            "movzbl (%rdx), %eax",
            "inc %rdx",
            "inc %r11d",
            "test %eax, %eax",
            "jz 3f",
            "cmp $1900, %r11d",
            "jb 2b",
            "3:",
            concat!($prefix, "lengths:"),
            "mov %r11d, 76(%rsp)",
            "lea 24+63(%rcx,%r11), %ecx", // r8, r9, both lengths, texts
            "shr $6, %ecx",
            "mov %ecx, 80(%rsp)", // further slots
            "mov %gs:{head}, %rdx",
            "sub %gs:{tail}, %rdx",
            "cmp ${full}, %rdx",
            "jae 7f",
            "33:", // with a name of its own: another 3 comes before the wait below
            "mov 80(%rsp), %ecx",
            "inc %ecx",
            "shl $6, %ecx",
            "xadd %rcx, %gs:{head}",
            concat!($prefix, "long_reserved:"),
            "mov %rcx, 56(%rsp)",
            "mov %rcx, %r11",
            "and ${mask}, %r11d",
            "mov 24(%rsp), %rax",
            "mov %rax, %gs:{data}+8(%r11)",
            "mov 64(%rsp), %rax",
            "mov %rax, %gs:{data}+16(%r11)",
            "mov 32(%rsp), %rax",
            "mov %rax, %gs:{data}+24(%r11)",
            "mov %rdi, %gs:{data}+32(%r11)",
            "mov %rsi, %gs:{data}+40(%r11)",
            "mov 8(%rsp), %rax",
            "mov %rax, %gs:{data}+48(%r11)",
            "mov %r10, %gs:{data}+56(%r11)",
            "add ${slot}, %rcx",
            "mov %rcx, %r11",
            "and ${mask}, %r11d",
            "mov %r8, %gs:{data}(%r11)",
            "mov %r9, %gs:{data}+8(%r11)",
            "mov 72(%rsp), %rax",
            "mov %rax, %gs:{data}+16(%r11)",
            "add $24, %rcx",
            // rcx: where the next byte goes; rdx: from where
            "mov 40(%rsp), %rdx",
            "mov 72(%rsp), %eax",
            "sub 84(%rsp), %eax",
            "add %rdx, %rax",
            "mov %rax, 104(%rsp)",
            "2:",
            "cmp 104(%rsp), %rdx",
            "je 3f",
            "movzbl (%rdx), %eax",
            "mov %rcx, %r11",
            "and ${mask}, %r11d",
            "mov %al, %gs:{data}(%r11)",
            "inc %rcx",
            "inc %rdx",
            "jmp 2b",
            "3:",
            "mov 48(%rsp), %rdx",
            "mov 76(%rsp), %eax",
            "add %rdx, %rax",
            "mov %rax, 104(%rsp)",
            "2:",
            "cmp 104(%rsp), %rdx",
            "je 3f",
            "movzbl (%rdx), %eax",
            "mov %rcx, %r11",
            "and ${mask}, %r11d",
            "mov %al, %gs:{data}(%r11)",
            "inc %rcx",
            "inc %rdx",
            "jmp 2b",
            "3:",
            "mov 56(%rsp), %rcx",
            "mov %rcx, %r11",
            "and ${mask}, %r11d",
            "shl $10, %rcx",
            "mov 80(%rsp), %eax",
            "shl $10, %eax",
            "or %rax, %rcx",
            "or 16(%rsp), %rcx",
            "mov %rcx, %gs:{data}(%r11)",
            concat!($prefix, "long_written:"),
            "4:",
            // was code mapped? mmap 9, mprotect 10, pkey_mprotect 329, remap never makes code
            "mov 16(%rsp), %rax",
            "mov 8(%rsp), %rdx",
            "test $4, %dl",
            "jz 6f",
            "cmp $9, %eax",
            "je 5f",
            "cmp $10, %eax",
            "je 5f",
            "cmp $329, %eax",
            "jne 6f",
            "5:",
            "cmpq $-4096, 32(%rsp)",
            "ja 6f",
            "testl ${died}, %gs:{owner}", // nobody would hear of it, and the trap be a signal that kills
            "jnz 6f",
            concat!($prefix, "trap:"),
            "int3",
            "6:",
            "mov 32(%rsp), %rax",
            "mov (%rsp), %rcx",
            "lea 288(%rsp), %rsp",
            "jmp *%rcx",
            "7:",
            "lea 33b(%rip), %rcx",
            "lea 8f(%rip), %r11",
            concat!("jmp ", $prefix, "wait"),
            "8:",
            "incq %gs:{dropped}",
            "jmp 4b",
            "9:",
            "lea 288(%rsp), %rsp",
            "sub $2, %rcx",
            "jmp *%rcx",
            concat!(".globl ", $prefix, "end"),
            concat!($prefix, "end:"),
            ".text",
            magic = const MAGIC,
            length = const RINGS * RING,
            owner = const OWNER,
            died = const OWNER_DIED,
            uring = const URING,
            head = const HEAD,
            tail = const TAIL,
            mode = const MODE,
            drops = const DROPS,
            spins = const SPINS,
            waits = const WAITS,
            left = const LEFT,
            dropped = const DROPPED,
            data = const HEADER,
            range = const etude_calls::Range::BYTES,
            unix = const etude_calls::Address::UNIX,
            shortest = const *etude_calls::Address::LENGTHS.start(),
            longest = const *etude_calls::Address::LENGTHS.end(),
            slot = const SLOT,
            mask = const DATA - 1,
            full = const DATA - MARGIN,
            options(att_syntax)
        );
    };
}

// A stamp goes to rax; rcx, rdx and r11 are lost, nothing else.
hook!("etude_tsc_", "rdtsc\n shl $32, %rdx\n or %rdx, %rax");
// By the vdso: CLOCK_MONOTONIC in ns. It is a C function: what it may change is kept, the stack is aligned. The 64 bytes
// from 88(%rsp) on are free; rbx keeps the stack pointer, and is itself kept.
hook!(
    "etude_vdso_",
    "mov %rbx, 88(%rsp)\n mov %rsp, %rbx\n mov %rdi, 96(%rsp)\n mov %rsi, 104(%rsp)\n mov %r8, 112(%rsp)\n \
     mov %r9, 120(%rsp)\n mov %r10, 128(%rsp)\n lea 136(%rsp), %rsi\n mov $1, %edi\n and $-16, %rsp\n \
     lea etude_vdso_begin(%rip), %rax\n call *(%rax)\n mov %rbx, %rsp\n mov 88(%rsp), %rbx\n mov 96(%rsp), %rdi\n \
     mov 104(%rsp), %rsi\n mov 112(%rsp), %r8\n mov 120(%rsp), %r9\n mov 128(%rsp), %r10\n \
     imul $1000000000, 136(%rsp), %rax\n add 144(%rsp), %rax"
);

unsafe extern "C" {
    static etude_tsc_begin: u8;
    static etude_tsc_end: u8;
    static etude_vdso_begin: u8;
    static etude_vdso_end: u8;
}

/// The code for a clock: to be copied with `kinds` filled in.
#[derive(Clone)]
pub struct Code {
    bytes: Vec<u8>,
}

/// Where the number of a call stands above the stack pointer of a thread that the launcher looks at behind it, and times in
/// ticks: when it came, and the call's own.
pub const LOOK: u64 = 16;
/// io_uring_setup. At it and those that follow the launcher looks behind the call alone.
pub const URING: u32 = 425;

const ENTRIES: usize = 16;
/// Places behind those of the entries: any, trap, remote, made, long_made, reserved, written, long_reserved, long_written,
/// stops, stopped.
const ANY: usize = Entry::ALL.len();
const KINDS: usize = ENTRIES + (ANY + 11) * 4;

impl Code {
    /// `kind`: the entry of each call number. `rings`: where the segment is in the image; `vdso`: its `clock_gettime`.
    pub fn new(clock: Clock, kind: impl Fn(u32) -> Entry, rings: u64, vdso: u64) -> Code {
        let (begin, end) = match clock {
            Clock::Tsc => (&raw const etude_tsc_begin, &raw const etude_tsc_end),
            Clock::Vdso => (&raw const etude_vdso_begin, &raw const etude_vdso_end),
        };
        // SAFETY: both labels are in one section of this program, in this order.
        let mut bytes =
            unsafe { std::slice::from_raw_parts(begin, end.offset_from(begin) as usize).to_vec() };
        for number in 0..512 {
            bytes[KINDS + number] = kind(number as u32) as u8;
        }
        Code { bytes }.placed(rings, vdso)
    }

    /// The same for another image.
    pub fn placed(&self, rings: u64, vdso: u64) -> Code {
        let mut bytes = self.bytes.clone();
        bytes[..8].copy_from_slice(&vdso.to_le_bytes());
        bytes[8..16].copy_from_slice(&rings.to_le_bytes());
        Code { bytes }
    }

    /// The entry that a call takes.
    pub fn kind(&self, number: u32) -> Entry {
        self.bytes[KINDS..KINDS + 512]
            .get(number as usize)
            .map_or(Entry::Raw, |kind| Entry::ALL[usize::from(*kind)])
    }

    /// To be copied to a page of the image.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where an entry is, from the beginning.
    pub fn entry(&self, entry: Entry) -> u64 {
        self.offset(entry as usize)
    }

    /// The entry that looks at rax.
    pub fn any(&self) -> u64 {
        self.offset(ANY)
    }

    /// The instruction that tells the launcher of mapped code.
    pub fn trap(&self) -> u64 {
        self.offset(ANY + 1)
    }

    /// An instruction that makes a system call, for the launcher.
    pub fn remote(&self) -> u64 {
        self.offset(ANY + 2)
    }

    /// Behind the program's own calls: a thread that ends within one ends there.
    pub fn made(&self) -> [u64; 2] {
        [self.offset(ANY + 3), self.offset(ANY + 4)]
    }

    /// Of a record of one slot and of one of several: from its reservation until it is written.
    pub fn halves(&self) -> [Range<u64>; 2] {
        [ANY + 5, ANY + 7].map(|place| self.offset(place)..self.offset(place + 1))
    }

    /// The instructions at which the launcher looks, before a call and behind it.
    pub fn stops(&self) -> [u64; 2] {
        [self.offset(ANY + 9), self.offset(ANY + 10)]
    }

    fn offset(&self, index: usize) -> u64 {
        let at = ENTRIES + 4 * index;
        u64::from(u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes")))
    }
}
