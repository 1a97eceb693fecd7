//! The program's beginning: traced before it executes anything.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::rewrite::ptrace_stops;
use crate::rewrite::remote::{Pid, ptrace};

/// All that it starts is traced, too.
pub const FOLLOW: i32 = libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESYSGOOD;
/// The options of a thread of a program that was started here.
pub const OPTIONS: i32 = FOLLOW | libc::PTRACE_O_TRACESECCOMP;

/// What the terminal sends to the whole group is for the program; what it does then is recorded.
pub fn ignore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler runs.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The program that gets what would end this process; 0: there is none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// Signals that would end this process go to the program, whose end ends the recording. What whoever started this process
/// ignores stays ignored.
pub fn pass_on_endings(program: Pid) {
    PROGRAM.store(program, Ordering::Relaxed);
    on_endings(pass_on as *const () as usize);
}

/// The program has ended: its number may be another's. What it has started goes on, and these signals end its recording.
pub fn pass_on_no_more() {
    if PROGRAM.swap(0, Ordering::Relaxed) != 0 {
        on_endings(libc::SIG_DFL);
    }
}

fn on_endings(handler: libc::sighandler_t) {
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler calls nothing but async-signal-safe functions; all zeros are a value.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                (action.sa_sigaction, action.sa_flags) = (handler, libc::SA_RESTART);
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

extern "C" fn pass_on(signal: libc::c_int) {
    let program = PROGRAM.load(Ordering::Relaxed);
    if program > 0 {
        // SAFETY: a child that was not waited for, or has just been.
        unsafe { libc::kill(program, signal) };
    }
}

/// Forks a child that executes the program once it is traced.
///
/// # Errors
/// It cannot be forked, or may not be traced; then nothing is executed.
pub fn start(argv: &[CString], filter: &[libc::sock_filter]) -> io::Result<Pid> {
    let held = Held::fork(argv, filter)?;
    ptrace(libc::PTRACE_SEIZE, held.pid, 0, OPTIONS as usize)?;
    Ok(held.release())
}

/// A child that waits before it executes its program.
pub struct Held {
    pub pid: Pid,
    /// One byte into it lets it go; its end, without one, makes the child end.
    hold: File,
}

impl Held {
    /// The child will be under `filter`, where that is not empty.
    ///
    /// # Errors
    /// It cannot be forked.
    pub fn fork(argv: &[CString], filter: &[libc::sock_filter]) -> io::Result<Held> {
        let mut words: Vec<*const libc::c_char> = argv.iter().map(|word| word.as_ptr()).collect();
        words.push(std::ptr::null());
        let mut ends = [0; 2];
        // SAFETY: plain system calls; the child calls nothing but async-signal-safe functions.
        unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return Err(io::Error::last_os_error());
            }
            let pid = libc::fork();
            if pid < 0 {
                return Err(io::Error::last_os_error());
            }
            if pid == 0 {
                let mut byte = 0u8;
                libc::close(ends[1]);
                while libc::read(ends[0], (&raw mut byte).cast(), 1) != 1 {
                    if *libc::__errno_location() != libc::EINTR {
                        libc::_exit(126); // who would have recorded it is gone
                    }
                }
                for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                    libc::signal(signal, libc::SIG_DFL); // this program and Python ignore them; who starts us does not
                }
                if !filter.is_empty() && !ptrace_stops::install(filter) {
                    libc::_exit(126);
                }
                libc::execvp(words[0], words.as_ptr());
                libc::_exit(if *libc::__errno_location() == libc::ENOENT { 127 } else { 126 });
            }
            libc::close(ends[0]);
            Ok(Held { pid, hold: File::from_raw_fd(ends[1]) })
        }
    }

    pub fn release(mut self) -> Pid {
        let _ = io::Write::write_all(&mut self.hold, &[1]); // if it is gone, its status says so
        std::mem::take(&mut self.pid)
    }
}

impl Drop for Held {
    /// It was not released: it ends without having executed anything.
    fn drop(&mut self) {
        if self.pid != 0 {
            // SAFETY: a child of ours that was not waited for.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
        }
    }
}
