//! Where an export is.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// As a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// For messages.
    pub text: String,
    pub host: String,
    pub port: u16,
    /// None: the port mapper is asked.
    pub mount_port: Option<u16>,
    /// As the server names it, from its first slash.
    pub path: String,
}

impl Export {
    /// A port of the host.
    ///
    /// # Errors
    /// The host has no address.
    pub fn at(&self, port: u16) -> io::Result<SocketAddr> {
        let mut found = (self.host.as_str(), port).to_socket_addrs()?;
        found.next().ok_or_else(|| io::Error::other("the host has no address"))
    }
}
