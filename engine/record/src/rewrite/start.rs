//! The program's beginning: traced before it executes anything.

use std::ffi::CString;
use std::io;

use crate::rewrite::remote::{Pid, ptrace};
use crate::rewrite::stops;

/// All that it starts is traced, too.
pub const FOLLOW: i32 = libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESYSGOOD;
const OPTIONS: i32 = FOLLOW | libc::PTRACE_O_TRACESECCOMP;

/// What the terminal sends to the whole group is for the program; what it does then is recorded.
pub fn ignore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler runs.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Forks a child that executes the program once it is traced.
///
/// # Errors
/// It cannot be forked, or may not be traced; then nothing is executed.
pub fn start(argv: &[CString], filter: &[libc::sock_filter]) -> io::Result<Pid> {
    let mut words: Vec<*const libc::c_char> = argv.iter().map(|word| word.as_ptr()).collect();
    words.push(std::ptr::null());
    let mut ends = [0; 2];
    // SAFETY: plain system calls; the child calls nothing but async-signal-safe functions.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        let child = libc::fork();
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        if child == 0 {
            let mut byte = 0u8;
            libc::close(ends[1]);
            libc::read(ends[0], (&raw mut byte).cast(), 1); // until it is traced
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                libc::signal(signal, libc::SIG_DFL); // this program and Python ignore them; who starts us does not
            }
            if !filter.is_empty() && !stops::install(filter) {
                libc::_exit(126);
            }
            libc::execvp(words[0], words.as_ptr());
            libc::_exit(if *libc::__errno_location() == libc::ENOENT { 127 } else { 126 });
        }
        libc::close(ends[0]);
        let seized = ptrace(libc::PTRACE_SEIZE, child, 0, OPTIONS as usize);
        if let Err(error) = seized {
            libc::kill(child, libc::SIGKILL); // before it executes anything
            libc::waitpid(child, std::ptr::null_mut(), 0);
            libc::close(ends[1]);
            return Err(error);
        }
        libc::close(ends[1]);
        Ok(child)
    }
}
