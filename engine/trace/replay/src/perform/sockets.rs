//! Connections between sockets, which a roll numbers: `connect` and `accept` are the kernel's, at addresses of this replay.
//!
//! Each thread that accepts has a listener of its own, which all processes inherit. Connections come to it as the replay makes
//! them; the first bytes of one say which it is, and one that is not yet to be accepted is kept.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use etude_trace::Event;

use super::{Made, Performer, answer, same, timed};
use crate::clock::now_ns;

/// Where threads accept.
#[derive(Default)]
pub struct Listeners {
    by_thread: HashMap<u64, Listener>,
    /// A random number that a connection begins with, so that no other program's is taken for one.
    token: u64,
}

struct Listener {
    socket: OwnedFd,
    address: libc::sockaddr_un,
    length: libc::socklen_t,
}

impl Listeners {
    /// For these threads.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn new(threads: impl Iterator<Item = u32>) -> io::Result<Listeners> {
        let by_thread =
            threads.map(|thread| Ok((thread.into(), Listener::new()?))).collect::<io::Result<_>>()?;
        let mut token = [0; 8];
        // SAFETY: eight bytes, which the kernel fills or leaves as they are.
        unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) };
        Ok(Listeners { by_thread, token: u64::from_le_bytes(token) })
    }

    /// The first bytes of a connection.
    fn greeting(&self, number: u64) -> [u8; 16] {
        (u128::from(number) << 64 | u128::from(self.token)).to_le_bytes()
    }
}

impl Listener {
    /// At a name that the kernel chooses.
    fn new() -> io::Result<Listener> {
        const MOST: i32 = 4096;
        // SAFETY: numbers and addresses, for all of which zero will do.
        let mut address = unsafe { std::mem::zeroed::<libc::sockaddr_un>() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let mut length = size_of_val(&address) as libc::socklen_t;
        let family = size_of_val(&address.sun_family) as libc::socklen_t;
        // SAFETY: a new descriptor, which nobody else has, and an address with its length.
        unsafe {
            let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
            if socket < 0 {
                return Err(io::Error::last_os_error());
            }
            let at = (&raw mut address).cast();
            let socket = OwnedFd::from_raw_fd(socket);
            if libc::bind(socket.as_raw_fd(), at, family) != 0
                || libc::listen(socket.as_raw_fd(), MOST) != 0
                || libc::getsockname(socket.as_raw_fd(), at, &raw mut length) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(Listener { socket, address, length })
        }
    }
}

impl Performer {
    /// Connects to the thread that accepts this connection, whether it does so yet or not.
    pub(super) fn connect(&self, event: &Event, number: u16) -> Made {
        let [recorded, connection, accepts, ..] = event.arguments;
        let listener = accepts.checked_sub(1).and_then(|thread| self.listeners.by_thread.get(&thread));
        let (Some(live), Some(listener)) = (self.process.table.get(recorded as i64), listener) else {
            return Made::Skipped;
        };
        let at = &raw const listener.address as u64;
        let made =
            timed(number, [live as u64, at, listener.length.into(), 0, 0, 0], |result| same(event, result));
        if let Made::Done { result: 0, .. } = made {
            let greeting = self.listeners.greeting(connection);
            // SAFETY: a descriptor of this replay, with room, and bytes that live through the call.
            unsafe { libc::send(live, greeting.as_ptr().cast(), greeting.len(), libc::MSG_NOSIGNAL) };
            self.process.table.pipes(recorded as i64);
        }
        made
    }

    /// Waits for the connection, and takes it.
    pub(super) fn accept(&mut self, event: &Event) -> Made {
        let [_, connection, _, flags, ..] = event.arguments;
        let listeners = self.listeners.clone();
        let listener = listeners.by_thread.get(&(self.place.thread as u64)).filter(|_| connection > 0);
        let Some(listener) = listener else { return Made::Skipped };
        let begun = now_ns();
        let result = loop {
            if let Some(found) = self.process.early.lock().expect("no thread panics").remove(&connection) {
                break i64::from(std::os::fd::IntoRawFd::into_raw_fd(found));
            }
            // SAFETY: a listener of this replay; who comes is not asked for its address.
            let come = unsafe {
                let (address, length) = (std::ptr::null_mut(), std::ptr::null_mut());
                libc::accept4(listener.socket.as_raw_fd(), address, length, libc::SOCK_CLOEXEC)
            };
            match answer(come.into()) {
                error @ ..0 if error != -i64::from(libc::EINTR) => break error,
                ..0 => {}
                // SAFETY: a new descriptor, which nobody else has.
                live => self.greeted(&listeners, unsafe { OwnedFd::from_raw_fd(live as i32) }),
            }
        };
        if result >= 0 {
            let live = result as i32;
            // SAFETY: flags of a descriptor of this replay.
            unsafe {
                if flags & libc::SOCK_CLOEXEC as u64 == 0 {
                    libc::fcntl(live, libc::F_SETFD, 0);
                }
                if flags & libc::SOCK_NONBLOCK as u64 != 0 {
                    libc::fcntl(live, libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK);
                }
            }
            self.opened(event.result, live);
            self.process.table.pipes(event.result);
        }
        Made::Done { result, begun, ended: now_ns(), same: same(event, result) }
    }

    /// Keeps a connection that is one of this replay.
    fn greeted(&self, listeners: &Listeners, come: OwnedFd) {
        let mut found = [0; 16];
        // SAFETY: places for what is found, of their lengths.
        unsafe {
            let mut who = std::mem::zeroed::<libc::ucred>();
            let mut length = size_of_val(&who) as libc::socklen_t;
            let at = (&raw mut who).cast();
            let (live, kind) = (come.as_raw_fd(), libc::SO_PEERCRED);
            if libc::getsockopt(live, libc::SOL_SOCKET, kind, at, &raw mut length) != 0
                || who.uid != libc::geteuid()
            {
                return;
            }
            libc::recv(live, found.as_mut_ptr().cast(), found.len(), libc::MSG_WAITALL);
        }
        let number = (u128::from_le_bytes(found) >> 64) as u64;
        if found == listeners.greeting(number) {
            self.process.early.lock().expect("no thread panics").insert(number, come);
        }
    }
}
