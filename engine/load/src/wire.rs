//! A socket that never blocks, with what came and what has still to go.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

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

    /// Takes all that has come; true: nothing more will.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    pub fn fill(&mut self) -> io::Result<bool> {
        let mut room = [0; 16384];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => return Ok(true),
                Ok(bytes) => self.input.extend_from_slice(&room[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
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
