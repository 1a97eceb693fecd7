//! Reads and writes of pipes and pairs of sockets: as many bytes as the original moved, in however many pieces they come
//! here. Which those are is a matter of time, and of how full the pipe is.

use etude_calls::Kind;
use etude_trace::Event;

use super::ways::By;
use super::{Made, Performer, answer, same};
use crate::clock::now_ns;

const EAGAIN: i64 = -(libc::EAGAIN as i64);

impl Performer {
    /// None where it is no pipe, or too much of one.
    pub(super) fn streamed(&mut self, event: &Event, reads: bool, by: By) -> Option<Made> {
        let recorded = event.arguments[0] as i64;
        let live = self.process.table.get(recorded).filter(|_| self.process.table.is_pipe(recorded))?;
        let moved_before = usize::try_from(event.result).unwrap_or(0);
        let size = match moved_before {
            0 if event.call.row().arguments.get(2) == Some(&Kind::Size) => event.arguments[2] as usize,
            0 => 1,
            size => size,
        };
        let at = match reads {
            true => (size <= self.into.length).then_some(self.into.at as u64)?,
            false => self.piece(size)?,
        } as *mut libc::c_void;
        // What found nothing in the original does not wait.
        let looks = event.result == EAGAIN;
        let (begun, mut moved) = (now_ns(), 0);
        let result = loop {
            // SAFETY: a descriptor of this replay, and memory of `size` bytes from `at` on.
            let done = unsafe { once((live, looks), at.byte_add(moved), size - moved, (reads, by)) };
            let done = answer(done as i64);
            moved += done.max(0) as usize;
            match done {
                EAGAIN if !looks => wait_for(live, reads),
                1.. if moved < moved_before => {}
                _ => break if moved > 0 { moved as i64 } else { done },
            }
        };
        Some(Made::Done { result, begun, ended: now_ns(), same: same(event, result) })
    }
}

/// Reads into memory, or writes what is there. `looks`: it does not wait.
///
/// # Safety
/// From `at` on are `size` bytes.
unsafe fn once(
    (live, looks): (i32, bool),
    at: *mut libc::c_void,
    size: usize,
    (reads, by): (bool, By),
) -> isize {
    // Who waits in `wait_for` goes on as soon as there is room, not when most of the socket is empty.
    const SENT: i32 = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    let received = if looks { libc::MSG_DONTWAIT } else { 0 };
    let mut part = libc::iovec { iov_base: at, iov_len: size };
    // SAFETY: a message is numbers and addresses, for all of which zero will do.
    let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    // SAFETY: memory is that of the caller; the message is all in this function.
    unsafe {
        match (by, reads) {
            (By::File, true) => libc::read(live, at, size),
            (By::File, false) => libc::write(live, at, size),
            (By::Socket, true) => libc::recv(live, at, size, received),
            (By::Socket, false) => libc::send(live, at, size, SENT),
            (By::Message, true) => libc::recvmsg(live, &raw mut message, received),
            (By::Message, false) => libc::sendmsg(live, &raw const message, SENT),
        }
    }
}

/// Until it can be read or written, or nearly so: a socket is said to have room when most of it is empty, and takes more
/// before.
fn wait_for(live: i32, reads: bool) {
    const AGAIN_MS: i32 = 10;
    let (events, until) = if reads { (libc::POLLIN, -1) } else { (libc::POLLOUT, AGAIN_MS) };
    let mut asked = libc::pollfd { fd: live, events, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&raw mut asked, 1, until) };
}
