//! Waiting for sockets and for an instant at once, to the microsecond (epoll_pwait2, Linux 5.11).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use etude_clock::{monotonic_ns, timespec, without_slack};

/// What became ready: whoever is named reads and writes until that would block.
pub(crate) type Token = u64;

const EDGES: libc::c_int = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// Of how many descriptors one wait tells.
const AT_ONCE: usize = 256;

impl Poller {
    /// # Errors
    /// There is no descriptor left.
    pub fn new() -> io::Result<Poller> {
        without_slack();
        // SAFETY: no pointers; the descriptor is new and owned by nobody else.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Poller { epoll, events: Vec::with_capacity(AT_ONCE) })
    }

    /// Tells each time that something comes, or that there is room again; a descriptor that is closed is forgotten.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch_edges(&self, fd: &impl AsFd, token: Token) -> io::Result<()> {
        self.add(fd, token, EDGES)
    }

    /// Tells once more, after all others had their turn, what [`Poller::watch_edges`] has told and still holds.
    ///
    /// # Errors
    /// It is not watched.
    pub fn tell_again(&self, fd: &impl AsFd, token: Token) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, EDGES)
    }

    /// Tells as long as there is something to read.
    ///
    /// # Errors
    /// The kernel's; EPERM for a file on a disk.
    pub fn watch(&self, fd: &impl AsFd, token: Token) -> io::Result<()> {
        self.add(fd, token, libc::EPOLLIN)
    }

    /// Changes what [`Poller::watch`] tells of: `room`, also as long as there is room to write.
    ///
    /// # Errors
    /// It is not watched.
    pub fn watch_room(&self, fd: &impl AsFd, token: Token, room: bool) -> io::Result<()> {
        let events = if room { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        self.control(libc::EPOLL_CTL_MOD, fd, token, events)
    }

    fn add(&self, fd: &impl AsFd, token: Token, events: libc::c_int) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, events)
    }

    fn control(
        &self,
        what: libc::c_int,
        fd: &impl AsFd,
        token: Token,
        events: libc::c_int,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_fd().as_raw_fd());
        // SAFETY: both descriptors are open, and `event` lives through the call.
        match unsafe { libc::epoll_ctl(epoll, what, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until something is ready or that instant of the monotonic clock; how many descriptors are ([`Poller::token`]).
    ///
    /// # Errors
    /// The kernel is too old.
    pub fn wait(&mut self, until_ns: Option<u64>) -> io::Result<usize> {
        let time = until_ns.map(|until| timespec(until.saturating_sub(monotonic_ns())));
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        self.events.clear();
        // SAFETY: there is room for so many events, of which the kernel fills as many as it says; `time` lives through the
        // call; a null mask leaves the mask alone.
        let ready = unsafe {
            let events = self.events.as_mut_ptr();
            let mask: *const libc::sigset_t = ptr::null();
            let fd = self.epoll.as_raw_fd();
            let ready = libc::syscall(libc::SYS_epoll_pwait2, fd, events, AT_ONCE, time, mask, 0_usize);
            self.events.set_len(ready.max(0) as usize);
            ready
        };
        let error = io::Error::last_os_error();
        if ready < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        Ok(self.events.len())
    }

    /// Whose descriptor was the `at`-th that became ready in the last wait.
    pub fn token(&self, at: usize) -> Token {
        self.events[at].u64
    }
}
