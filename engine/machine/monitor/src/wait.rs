//! Waiting for the next instant, or for the end.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use etude_launch::sys;

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    Time,
    /// SIGTERM, SIGINT, or the end of standard input.
    End,
}

/// The signals that end it, taken as something to be read.
pub struct Wait {
    signals: OwnedFd,
}

impl Wait {
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Wait> {
        // SAFETY: calls with valid places. No other thread is there that could take the signals. A file that reaches the
        // limit of its size (SIGXFSZ) is told by the write that fails.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGXFSZ] {
                libc::sigaddset(&mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::sigdelset(&mut set, libc::SIGXFSZ);
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                fd if fd < 0 => Err(io::Error::last_os_error()),
                fd => Ok(Wait { signals: OwnedFd::from_raw_fd(fd) }),
            }
        }
    }

    /// Waits until this instant of the monotonic clock.
    ///
    /// # Errors
    /// The kernel's.
    pub fn until(&self, instant_ns: u64) -> io::Result<Came> {
        loop {
            let left_ns = instant_ns.saturating_sub(etude_clock::monotonic_ns());
            if left_ns == 0 {
                return Ok(Came::Time);
            }
            let mut fds = [sys::wanted(0), sys::wanted(self.signals.as_raw_fd())];
            sys::poll(&mut fds, Some(left_ns))?;
            if fds[1].revents != 0 || fds[0].revents != 0 && input_ended() {
                return Ok(Came::End);
            }
        }
    }
}

/// Reads what came in; true where nothing more will.
fn input_ended() -> bool {
    let mut buffer = [0u8; 512];
    // SAFETY: a buffer of this size.
    let read = unsafe { libc::read(0, buffer.as_mut_ptr().cast(), buffer.len()) };
    let again = read < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
    read <= 0 && !again
}
