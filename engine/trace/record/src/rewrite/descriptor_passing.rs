//! Handing the descriptor of the rings to another process, whatever its user, root directory and namespaces are.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::rewrite::remote::Pid;
use crate::rewrite::remote_process::Remote;
use crate::rewrite::ring::Segment;

/// Bytes of a control message that holds one descriptor.
const CONTROL: usize = 24;

/// A descriptor of the segment in a stopped process that may not or cannot open it by its path in /proc (another user,
/// another root, other namespaces): through a pair of sockets that it makes and of which we take one.
///
/// # Errors
/// It may have no more descriptors, or its sockets cannot be taken.
pub fn hand_over(remote: &Remote, segment: &Segment) -> io::Result<u64> {
    let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
    remote.call(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind, 0, remote.scratch(), 0, 0])?;
    let ends = remote.memory.read(remote.scratch(), 8)?;
    let end = |at: usize| u32::from_le_bytes(ends[at..at + 4].try_into().expect("four bytes"));
    let received = taken(remote.pid, end(0))
        .and_then(|socket| send(&socket, segment.descriptor()))
        .and_then(|()| receive(remote, end(4)));
    for at in [0, 4] {
        remote.call(libc::SYS_close, [end(at).into(), 0, 0, 0, 0, 0])?;
    }
    received
}

/// A copy of another process's descriptor.
fn taken(pid: Pid, descriptor: u32) -> io::Result<OwnedFd> {
    let opened = |answer: libc::c_long| match RawFd::try_from(answer) {
        // SAFETY: a new descriptor, which nobody else has.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: numbers alone.
    let process = opened(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: as above.
    opened(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) })
}

fn send(socket: &OwnedFd, descriptor: RawFd) -> io::Result<()> {
    let mut byte = 0u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0u64; CONTROL / 8];
    // SAFETY: plain numbers and pointers to what lives through the call; the control message has room for its header
    // and one descriptor.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the process receive the one descriptor that waits in its socket.
fn receive(remote: &Remote, socket: u32) -> io::Result<u64> {
    // A struct msghdr, and behind it its iovec, the control message, and the byte.
    const HEADER: usize = size_of::<libc::msghdr>();
    let place = remote.scratch();
    let [data, control, byte] =
        [HEADER, HEADER + 16, HEADER + 16 + CONTROL].map(|offset| place + offset as u64);
    let words: [u64; 13] = [0, 0, data, 1, control, CONTROL as u64, 0, byte, 1, 0, 0, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    remote.memory.write(place, &bytes)?;
    let flags = (libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) as u64;
    remote.call(libc::SYS_recvmsg, [socket.into(), place, flags, 0, 0, 0])?;
    let found = remote.memory.read(control, CONTROL)?;
    let number = |at: usize| i32::from_le_bytes(found[at..at + 4].try_into().expect("four bytes"));
    if (number(8), number(12)) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
        return Ok(number(16) as u64);
    }
    Err(io::Error::from_raw_os_error(libc::EMFILE)) // it was cut off: no number was free
}
