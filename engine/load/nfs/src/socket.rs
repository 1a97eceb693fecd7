//! Connections to a server, from a port below 1024 where this process may: many servers take calls from no other.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Ports that only root may have, and that nothing well known uses.
const RESERVED: std::ops::Range<u16> = 700..1024;
const TRIES: usize = 64;

/// Begins to connect and does not wait.
pub(crate) fn begin(address: SocketAddr) -> io::Result<TcpStream> {
    from_some_port(address, |socket| {
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(()),
        }
    })
}

/// Connects within that time; so long it also waits for each answer.
pub(crate) fn connect(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = from_some_port(address, |socket| socket.connect_timeout(&address.into(), patience))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

fn from_some_port(address: SocketAddr, connect: impl Fn(&Socket) -> io::Result<()>) -> io::Result<TcpStream> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..TRIES {
        let at =
            (NEXT.fetch_add(1, Ordering::Relaxed) as usize + std::process::id() as usize) % RESERVED.len();
        let socket = made(address)?;
        let own = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, RESERVED.start + at as u16)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, RESERVED.start + at as u16)),
        };
        match socket.bind(&own.into()).and_then(|()| connect(&socket)) {
            Ok(()) => return finished(socket),
            // Another's, or one of ours to the same server that has just ended.
            Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => break,
            Err(error) => return Err(error),
        }
    }
    let socket = made(address)?;
    connect(&socket)?;
    finished(socket)
}

fn made(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn finished(socket: Socket) -> io::Result<TcpStream> {
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}
