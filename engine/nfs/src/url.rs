//! Where an export is: nfs://HOST[:PORT]/EXPORT[?mountport=N].

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

const PORT: u16 = 2049;
/// Of a path to mount (RFC 1813, section 5.1.2).
const MOST_PATH_BYTES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub text: String,
    host: String,
    /// None: the port mapper is asked; where nobody answers there, 2049.
    port: Option<u16>,
    pub mount_port: Option<u16>,
    /// With its first slash.
    pub export: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = || format!("{text:?}: expected nfs://HOST[:PORT]/EXPORT[?mountport=N]");
        let rest = text.strip_prefix("nfs://").ok_or_else(wrong)?;
        let (place, path) = rest.split_at(rest.find('/').ok_or_else(wrong)?);
        let (export, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let number = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0).ok_or_else(wrong);
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(number(port)?)),
            _ => (place, None),
        };
        let mount_port = match query.map(|query| query.strip_prefix("mountport=")) {
            None => None,
            Some(None) => return Err(wrong()),
            Some(Some(port)) => Some(number(port)?),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let good = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !good(host) || host.contains(['@', '/']) || export.len() > MOST_PATH_BYTES {
            return Err(wrong());
        }
        let (text, host, export) = (text.to_owned(), host.to_owned(), export.to_owned());
        Ok(Url { text, host, port, mount_port, export })
    }
}

impl Url {
    /// Of the server of NFS; at 2049 where no port is named.
    ///
    /// # Errors
    /// The host has none.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.at(self.port.unwrap_or(PORT))
    }

    /// Another port of the host.
    ///
    /// # Errors
    /// The host has no address.
    pub fn at(&self, port: u16) -> io::Result<SocketAddr> {
        let mut found = (self.host.as_str(), port).to_socket_addrs()?;
        found.next().ok_or_else(|| io::Error::other("the host has no address"))
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the port was named.
    pub fn names_port(&self) -> bool {
        self.port.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_ports_and_an_export() {
        let parts = |text: &str| {
            let url: Url = text.parse().ok()?;
            Some((url.host, url.port, url.mount_port, url.export))
        };
        let all =
            |host: &str, port, mount, export: &str| Some((host.to_owned(), port, mount, export.to_owned()));
        assert_eq!(parts("nfs://a/mem"), all("a", None, None, "/mem"));
        assert_eq!(parts("nfs://10.0.0.1:20490/x/y z"), all("10.0.0.1", Some(20490), None, "/x/y z"));
        assert_eq!(parts("nfs://[::1]:8/e?mountport=9"), all("::1", Some(8), Some(9), "/e"));
        assert_eq!(parts("nfs://[::1]/"), all("::1", None, None, "/"));
        for text in [
            "",
            "a",
            "http://a/",
            "nfs://",
            "nfs://a",
            "nfs:///e",
            "nfs://:1/e",
            "nfs://a:x/e",
            "nfs://a:0/e",
            "nfs://a:70000/e",
            "nfs://a/e?port=1",
            "nfs://a/e?mountport=",
            "nfs://a b/e",
            "nfs://u@a/e",
        ] {
            assert_eq!(parts(text), None, "{text:?}");
        }
    }
}
