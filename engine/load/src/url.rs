//! A URL of HTTP: where to connect, and what to send.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Where requests go.
#[derive(Debug)]
pub(crate) struct Url {
    pub text: String,
    /// As in the URL.
    host: String,
    port: u16,
    path: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = || format!("{text:?}: expected http://HOST[:PORT][/PATH]");
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (place, 80),
        };
        let good = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !good(host) || host.contains('@') || !good(path) {
            return Err(wrong());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { text: text.to_owned(), host: host.to_owned(), port, path })
    }
}

impl Url {
    /// # Errors
    /// It has none.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let mut found = (host, self.port).to_socket_addrs()?;
        found.next().ok_or_else(|| io::Error::other("the host has no address"))
    }

    /// What is sent.
    pub fn request(&self) -> Vec<u8> {
        let Url { host, port, path, .. } = self;
        format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: etude\r\nAccept: */*\r\n\r\n")
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Option<(String, u16, String)> {
        text.parse::<Url>().ok().map(|url| (url.host, url.port, url.path))
    }

    #[test]
    fn a_url_has_a_host_a_port_and_a_path() {
        let expected = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
        assert_eq!(url("http://a"), expected("a", 80, "/"));
        assert_eq!(url("http://127.0.0.1:81/x?y=1"), expected("127.0.0.1", 81, "/x?y=1"));
        assert_eq!(url("http://[::1]:8/"), expected("[::1]", 8, "/"));
        assert_eq!(url("http://[::1]?q"), expected("[::1]", 80, "/?q"));
        for text in [
            "",
            "a",
            "https://a/",
            "http://",
            "http://:80/",
            "http://a:x",
            "http://a:70000",
            "http://a/ b",
            "http://a/\r\nX: y",
            "http://u@a/",
        ] {
            assert_eq!(url(text), None, "{text:?}");
        }
    }
}
