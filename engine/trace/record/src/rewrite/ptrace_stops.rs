//! The slow way: each recorded call stops its thread twice, and the launcher looks. For code that cannot be rewritten.
//!
//! A seccomp filter lets all other calls through untouched; it is inherited by all that the program starts.

use std::io;
use std::mem::offset_of;

use etude_calls::{Address, Call, Kind, Processor, Range, RangeLock};

use crate::PROCESSOR;
use crate::requests::Found;
use crate::rewrite::layout::MOST_TEXT;
use crate::rewrite::remote::{Memory, Pid, ptrace};
use crate::rewrite::ring::Raw;

const PAGE: u64 = 4096;
/// What the kernel answers where a call is made again by itself.
pub const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// This processor, as seccomp and ptrace call it.
const AUDIT_ARCH: u32 = match PROCESSOR {
    Processor::X86_64 => 0xc000_003e,
    Processor::Aarch64 => 0xc000_00b7,
};

/// A call that has begun.
#[derive(Clone)]
pub struct Begun {
    pub number: u32,
    pub arguments: [u64; 6],
    texts: [Option<Vec<u8>>; 2],
    pub at: u64,
    /// Those that it hands over (`queues.rs`).
    pub requests: Vec<Found>,
}

/// Makes this process, and all that it starts, stop at these calls. It must be traced already.
///
/// # Safety
/// Only between fork and exec: it calls nothing but the kernel, and the program can no longer get the rights of a
/// setuid file.
pub unsafe fn install(filter: &[libc::sock_filter]) -> bool {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the filter lives through the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

/// The filter for some calls of this processor.
pub fn filter(numbers: impl Iterator<Item = u32>) -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = vec![
        step(LOAD, 0, 0, offset_of!(libc::seccomp_data, arch) as u32),
        step(EQUAL, 1, 0, AUDIT_ARCH),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(LOAD, 0, 0, offset_of!(libc::seccomp_data, nr) as u32),
    ];
    for number in numbers {
        steps.push(step(EQUAL, 0, 1, number));
        steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_TRACE));
    }
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps
}

/// Whether a thread that has stopped at a call stands before it.
///
/// # Errors
/// It is gone, or the kernel is older than 5.3.
pub fn is_before(tid: Pid) -> io::Result<bool> {
    Ok(info(tid)?.op != libc::PTRACE_SYSCALL_INFO_EXIT)
}

/// A thread has stopped before a call; `texts` says which arguments are texts, if it is recorded.
///
/// # Errors
/// It is gone, or the kernel is older than 5.3.
pub fn begun(
    tid: Pid,
    texts: impl Fn(u32) -> Option<Vec<u8>>,
    now: impl Fn() -> u64,
) -> io::Result<Option<Begun>> {
    let info = info(tid)?;
    if info.arch != AUDIT_ARCH {
        return Ok(None);
    }
    // SAFETY: at such stops these are the members that the kernel fills.
    let (number, arguments) = unsafe {
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => (info.u.entry.nr, info.u.entry.args),
            _ => (info.u.seccomp.nr, info.u.seccomp.args),
        }
    };
    Ok(begins(tid, number, arguments, texts, now))
}

/// A thread is about to make a call; None if that is not recorded.
pub fn begins(
    tid: Pid,
    number: u64,
    arguments: [u64; 6],
    texts: impl Fn(u32) -> Option<Vec<u8>>,
    now: impl Fn() -> u64,
) -> Option<Begun> {
    let number = u32::try_from(number).ok()?;
    let mut kept = [None, None];
    for (place, argument) in kept.iter_mut().zip(texts(number)?) {
        let (at, call) = (usize::from(argument), Call::from_number(PROCESSOR, number.into())?);
        *place = match call.kind(&arguments, at) {
            Kind::Path | Kind::Name => text(tid, arguments[at]),
            Kind::Range => read(tid, arguments[at], Range::BYTES),
            Kind::Socket => address(tid, arguments[at], arguments[at + 1]),
            _ => None,
        };
    }
    Some(Begun { number, arguments, texts: kept, at: now(), requests: Vec::new() })
}

/// The same thread has stopped behind the call. Whether the kernel will make it again by itself is told, too.
///
/// # Errors
/// As `begun`.
pub fn ended(tid: Pid, begun: Begun, now: u64) -> io::Result<(Raw, bool)> {
    let info = info(tid)?;
    // SAFETY: as above.
    let result = unsafe { info.u.exit.sval };
    Ok(returned(tid, begun, result, now))
}

/// A call with its result, and whether the kernel will make it again by itself.
pub fn returned(tid: Pid, begun: Begun, result: i64, now: u64) -> (Raw, bool) {
    let again = RESTARTS.contains(&result);
    let result = if again { -i64::from(libc::EINTR) } else { result };
    let Begun { number, arguments, mut texts, at, .. } = begun;
    if let Some(argument) = pair_argument(number).filter(|_| result == 0) {
        texts[0] = read(tid, arguments[argument], 8);
    }
    for (place, argument) in texts.iter_mut().zip(offset_arguments(number)).filter(|_| result >= 0) {
        *place = read(tid, arguments[argument], 8);
    }
    if !RangeLock::is_read(result) && is_lock(number, &arguments) || result != 0 && has_address(number) {
        texts[0] = None;
    }
    (Raw { number, begun: at, ended: now, result, arguments, texts }, again)
}

/// Which argument of a call says where it puts a pair of descriptors.
fn pair_argument(number: u32) -> Option<usize> {
    let call = Call::from_number(PROCESSOR, number.into())?;
    call.row().arguments.iter().position(|kind| *kind == Kind::Pair)
}

/// Which arguments of a call say where offsets stand that it moves on.
fn offset_arguments(number: u32) -> impl Iterator<Item = usize> {
    let kinds = Call::from_number(PROCESSOR, number.into()).map_or(&[][..], |call| call.row().arguments);
    (0..kinds.len()).filter(|at| kinds[*at] == Kind::OffsetAt)
}

fn is_lock(number: u32, arguments: &[u64; 6]) -> bool {
    let call = Call::from_number(PROCESSOR, number.into());
    call.is_some_and(|call| RangeLock::of(call, arguments).is_some())
}

fn has_address(number: u32) -> bool {
    Call::from_number(PROCESSOR, number.into()).is_some_and(|call| call.address().is_some())
}

/// The address of a Unix socket.
fn address(tid: Pid, at: u64, length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| Address::LENGTHS.contains(length))?;
    read(tid, at, length).filter(|bytes| Address::of(bytes).is_some())
}

fn read(tid: Pid, at: u64, length: usize) -> Option<Vec<u8>> {
    Memory::of(tid).and_then(|memory| memory.read(at, length)).ok()
}

fn info(tid: Pid) -> io::Result<libc::ptrace_syscall_info> {
    // SAFETY: plain numbers.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size_of_val(&info), &raw mut info as usize)?;
    Ok(info)
}

/// A text of another process, up to its zero byte; read page by page, since the next may not be there.
fn text(pid: Pid, at: u64) -> Option<Vec<u8>> {
    let memory = Memory::of(pid).ok()?;
    let mut bytes = Vec::new();
    let mut place = at;
    while bytes.len() < MOST_TEXT {
        let room = (PAGE - place % PAGE) as usize;
        let piece = memory.read(place, room.min(MOST_TEXT - bytes.len())).ok()?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            bytes.extend(&piece[..end]);
            return Some(bytes);
        }
        place += piece.len() as u64;
        bytes.extend(piece);
    }
    Some(bytes)
}
