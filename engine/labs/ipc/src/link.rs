//! What bytes go through: two ends, both made in one process before there is a second one.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use etude_micro::exit::{Fail, OSERR, said};

use crate::options::{Options, Transport};

/// A connection, ready to be used.
#[derive(Debug)]
pub(crate) struct Link {
    pub sending: OwnedFd,
    pub receiving: OwnedFd,
    /// What the pipe holds.
    pub pipe_bytes: Option<u64>,
    /// What the kernel says of the sender's socket buffer: on Linux twice what was set.
    pub send_buffer_bytes: Option<u64>,
    /// The same of the receiver's.
    pub receive_buffer_bytes: Option<u64>,
    /// Of -i tcp, the one that was asked for or found.
    pub port: Option<u16>,
}

impl Link {
    /// Makes one.
    ///
    /// # Errors
    /// The port is taken, or the system gives no descriptor.
    pub fn open(options: &Options) -> Result<Link, Fail> {
        // A larger one cannot even be said to the kernel, which has its own limit far below.
        let wanted =
            options.set_socket_buffers.then(|| options.buffer_bytes.min(i32::MAX as u64) as libc::c_int);
        let (sending, receiving, port) = match options.transport {
            Transport::Pipe => {
                // SAFETY: `ends` has room for the two descriptors.
                pair("a pipe", |ends| unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })
                    .map(|(receiving, sending)| (sending, receiving, None))?
            }
            Transport::Local => {
                let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
                // SAFETY: as above.
                let (sending, receiving) = pair("a pair of sockets", |ends| unsafe {
                    libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr())
                })?;
                set_buffers(&sending, wanted)?;
                set_buffers(&receiving, wanted)?;
                (sending, receiving, None)
            }
            Transport::Tcp => tcp(options.port, wanted)?,
        };
        // SAFETY: takes integers only.
        let pipe = unsafe { libc::fcntl(sending.as_raw_fd(), libc::F_GETPIPE_SZ) };
        Ok(Link {
            pipe_bytes: u64::try_from(pipe).ok(),
            send_buffer_bytes: buffer(&sending, libc::SO_SNDBUF),
            receive_buffer_bytes: buffer(&receiving, libc::SO_RCVBUF),
            sending,
            receiving,
            port,
        })
    }

    /// Makes both ends return at once instead of waiting.
    pub fn unblock(&self) -> Result<(), Fail> {
        for end in [&self.sending, &self.receiving] {
            // SAFETY: takes integers only. Neither end has another flag that could be set.
            if unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } != 0 {
                return Err(Fail::last(OSERR, "make the ends of the connection not block"));
            }
        }
        Ok(())
    }
}

fn pair(what: &str, make: impl FnOnce(&mut [RawFd; 2]) -> libc::c_int) -> Result<(OwnedFd, OwnedFd), Fail> {
    let mut ends = [0; 2];
    if make(&mut ends) != 0 {
        return Err(Fail::last(OSERR, format!("make {what}")));
    }
    // SAFETY: both descriptors are new, and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// A connection over loopback: (sending, receiving, port). The kernel completes it without anybody waiting for it.
fn tcp(port: u16, wanted: Option<libc::c_int>) -> Result<(OwnedFd, OwnedFd, Option<u16>), Fail> {
    let refused = |doing: &str, error: &io::Error| Fail::call(OSERR, format!("{doing} 127.0.0.1"), error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Fail::new(
            OSERR,
            format!("-p {port}: {}; name one that is free, or leave -p out to get one", said(&error)),
        ),
        _ => Fail::call(OSERR, format!("-p {port}: listen on 127.0.0.1"), &error),
    })?;
    // Sizes are set before there is a connection: how far its window can be scaled is settled in its first packet.
    set_buffers(&listener, wanted)?;
    let port = listener.local_addr().map_err(|error| refused("ask for the port of", &error))?.port();
    let sending = connect(port, wanted)?;
    let ours = sending.local_addr().map_err(|error| refused("ask for the sender's port of", &error))?;
    loop {
        let (receiving, peer) =
            listener.accept().map_err(|error| refused("accept a connection to", &error))?;
        // Anybody may connect to a port in between.
        if peer == ours {
            return Ok((sending.into(), receiving.into(), Some(port)));
        }
    }
}

fn connect(port: u16, wanted: Option<libc::c_int>) -> Result<TcpStream, Fail> {
    // SAFETY: takes integers only; the new descriptor is owned by nobody else.
    let socket = unsafe {
        match libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) {
            -1 => return Err(Fail::last(OSERR, "make a socket")),
            fd => OwnedFd::from_raw_fd(fd),
        }
    };
    set_buffers(&socket, wanted)?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let raw = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: the address lives through the call, and its size is said.
    let result = unsafe {
        libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t)
    };
    if result != 0 {
        return Err(Fail::last(OSERR, format!("connect to {address}")));
    }
    Ok(TcpStream::from(socket))
}

/// Sets both buffers of a socket, for whichever of them bytes will go through.
fn set_buffers(socket: &impl AsFd, wanted: Option<libc::c_int>) -> Result<(), Fail> {
    let Some(bytes) = wanted else { return Ok(()) };
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: the value lives through the call, and its size is said.
        let result = unsafe {
            let value = (&raw const bytes).cast();
            libc::setsockopt(fd, libc::SOL_SOCKET, option, value, size_of_val(&bytes) as libc::socklen_t)
        };
        if result != 0 {
            return Err(Fail::last(OSERR, format!("-s: set a socket buffer to {bytes} bytes")));
        }
    }
    Ok(())
}

/// The size of a socket's buffer as the kernel has it; none of what is no socket.
fn buffer(end: &OwnedFd, option: libc::c_int) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    let mut size = size_of_val(&bytes) as libc::socklen_t;
    // SAFETY: `bytes` is a valid place for an answer of that size.
    let result = unsafe {
        libc::getsockopt(end.as_raw_fd(), libc::SOL_SOCKET, option, (&raw mut bytes).cast(), &mut size)
    };
    (result == 0).then_some(bytes as u64)
}
