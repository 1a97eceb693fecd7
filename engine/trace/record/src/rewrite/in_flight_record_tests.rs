//! The hook is interrupted behind each of its instructions in turn; where a record is half written, by a handler that
//! fills the ring twice.

use std::arch::asm;
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::rewrite::hook::{Clock, Entry};
use crate::rewrite::in_flight_record::half_written;
use crate::rewrite::in_process::{Native, call};
use crate::rewrite::layout::{DATA, SLOT};
use crate::rewrite::ring::{Raw, Segment};

/// Of the calls that a handler makes: they take two slots each.
const MANY: u64 = (DATA / SLOT) as u64;
const TRAP_FLAG: i64 = 0x100;
const INTERRUPTED: u64 = u64::MAX;

struct Interrupted {
    segment: Segment,
    native: Native,
    /// Instructions of the hook that are still to be run.
    left: usize,
    found: Vec<Raw>,
    /// Whether the record was half written.
    half: bool,
}

static NOW: AtomicPtr<Interrupted> = AtomicPtr::new(std::ptr::null_mut());

/// Short: each instruction of the hook costs a signal, where a virtual machine is slow.
fn path(n: u64) -> CString {
    CString::new([n >> 6, n].map(|part| b'0' + (part & 63) as u8)).expect("no zero in it")
}

impl Interrupted {
    fn make(&self, entry: Entry, n: u64) {
        let path = path(n);
        // SAFETY: the path lives through the call, which takes no argument.
        unsafe { call(self.native.entry(entry), libc::SYS_getppid, [path.as_ptr() as u64, n, 2, 3, 4, 5]) };
    }

    fn drain(&mut self) {
        self.segment.ring(0).drain(false, |raw| self.found.push(raw));
    }

    /// As the launcher, which comes before the handler.
    fn launcher(&mut self, registers: &mut libc::user_regs_struct) {
        let own = std::process::id() as libc::pid_t;
        let half = half_written(own, registers, self.native.code(), self.native.page()).expect("own memory");
        self.half = half.is_some();
        if let Some(raw) = half {
            self.drain();
            self.segment.ring(0).take_back();
            self.found.push(raw);
        }
    }

    fn handler(&mut self) {
        for n in 0..MANY {
            self.make(Entry::Path1, n);
            if n % 256 == 0 {
                self.drain();
            }
        }
    }
}

extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's, and the test's while it makes its call, in this thread.
    let (registers, now) = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        (&mut context.uc_mcontext.gregs, &mut *NOW.load(Ordering::Relaxed))
    };
    let code = now.native.page()..now.native.page() + now.native.code().bytes().len() as u64;
    if !code.contains(&(registers[libc::REG_RIP as usize] as u64)) {
        return;
    }
    if now.left > 0 {
        now.left -= 1;
        return;
    }
    registers[libc::REG_EFL as usize] &= !TRAP_FLAG;
    let mut seen = seen(registers);
    now.launcher(&mut seen);
    (registers[libc::REG_RIP as usize], registers[libc::REG_RAX as usize]) =
        (seen.rip as i64, seen.rax as i64);
    if now.half {
        now.handler();
    }
}

/// As ptrace gives them.
fn seen(registers: &[i64; 23]) -> libc::user_regs_struct {
    let get = |which: libc::c_int| registers[which as usize] as u64;
    // SAFETY: plain numbers.
    let mut seen: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    (seen.rip, seen.rsp, seen.rax) = (get(libc::REG_RIP), get(libc::REG_RSP), get(libc::REG_RAX));
    (seen.rdi, seen.rsi, seen.rdx) = (get(libc::REG_RDI), get(libc::REG_RSI), get(libc::REG_RDX));
    (seen.r10, seen.r8, seen.r9) = (get(libc::REG_R10), get(libc::REG_R8), get(libc::REG_R9));
    seen
}

/// A call that is interrupted when so many instructions of the hook were run; whether it takes more than these.
fn interrupt(now: &mut Interrupted, entry: Entry, after: usize) -> bool {
    (now.left, now.half) = (after, false);
    now.found.clear();
    now.segment.ring(0).begin(true, false);
    NOW.store(now, Ordering::Relaxed);
    // SAFETY: the flags are as they were when the handler is done, or the call is.
    unsafe {
        asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
        now.make(entry, INTERRUPTED);
        asm!("pushfq", "and qword ptr [rsp], -257", "popfq");
    }
    now.drain();
    now.left == 0
}

/// Whether all is there, of the one that is interrupted and of the handler's.
fn check(now: &Interrupted, entry: Entry, told: &str) {
    let dropped = now.segment.ring(0).dropped();
    let many = if now.half { MANY } else { 0 };
    assert_eq!((now.found.len() as u64, dropped), (many + 1, 0), "{told}");
    for raw in &now.found {
        let n = raw.arguments[1];
        assert!(n < MANY || n == INTERRUPTED, "{told}");
        assert_eq!((raw.number, raw.arguments[2], raw.arguments[3]), (110, 2, 3), "{told}");
        assert!(raw.result > 0 && raw.begun < raw.ended, "{told}");
        let text = (n < MANY || entry == Entry::Path1).then(|| path(n).into_bytes());
        assert_eq!(raw.texts[0], text, "{told}");
    }
}

fn catch_traps() {
    // SAFETY: the handler is of this form.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut());
    }
}

#[test]
fn a_handler_that_fills_the_ring_twice_tears_no_record_wherever_it_interrupts_one() {
    catch_traps();
    let segment = Segment::new().expect("memory");
    let native = Native::new(Clock::Tsc, |_| Entry::Path1, &segment).expect("executable memory");
    let mut now = Interrupted { segment, native, left: 0, found: Vec::new(), half: false };
    now.native.enter(&now.segment, 0);
    for entry in [Entry::Plain, Entry::Path1] {
        let (mut after, mut halves) = (0, 0);
        while interrupt(&mut now, entry, after) {
            check(&now, entry, &format!("{entry:?}, interrupted after {after} instructions"));
            (after, halves) = (after + 1, halves + usize::from(now.half));
        }
        assert!(halves >= 15, "{entry:?}: {halves}");
    }
    now.native.leave();
}
