//! Waiting for the next instant, or for the end.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
            let left = libc::timespec {
                tv_sec: (left_ns / etude_clock::SECOND).cast_signed(),
                tv_nsec: (left_ns % etude_clock::SECOND).cast_signed(),
            };
            let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut fds = [watched(0), watched(self.signals.as_raw_fd())];
            // SAFETY: two descriptors and a duration.
            let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), 2, &left, std::ptr::null()) };
            if ready < 0 {
                match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => continue,
                    error => return Err(error),
                }
            }
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
