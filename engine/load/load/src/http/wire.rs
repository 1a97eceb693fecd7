//! A socket that never blocks, with what came and what has still to go.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

/// Bytes that are taken from one socket before the others have their turn.
const AT_ONCE: usize = 65536;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Filled {
    /// All that has come is here.
    All,
    /// There may be more.
    Part,
    /// All that will ever come is here.
    Ended,
}

/// Of either side of a conversation.
pub(crate) struct Wire {
    pub stream: TcpStream,
    /// What came and is not yet understood.
    pub input: Vec<u8>,
    output: Vec<u8>,
}

impl Wire {
    /// # Errors
    /// The socket refuses.
    pub fn new(stream: TcpStream) -> io::Result<Wire> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, input: Vec::new(), output: Vec::new() })
    }

    /// Takes what has come, up to a bound: a peer that sends without end would keep it from all else.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    pub fn fill(&mut self) -> io::Result<Filled> {
        let (mut room, mut taken) = ([0; 16384], 0);
        while taken < AT_ONCE {
            match self.stream.read(&mut room) {
                Ok(0) => return Ok(Filled::Ended),
                Ok(bytes) => {
                    self.input.extend_from_slice(&room[..bytes]);
                    taken += bytes;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Filled::All),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Filled::Part)
    }

    /// Sends as much as goes at once, and keeps the rest for [`Wire::flush`].
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.extend_from_slice(bytes);
        self.flush()
    }

    /// There may be room again.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(bytes) => drop(self.output.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
