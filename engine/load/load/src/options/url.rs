//! A URL of HTTP: where to connect, and what to send.
//!
//! `etude peak --url` reads the same (src/etude/peak/harnesses/harness_text.py); `tests/data/vectors/urls.jsonl` holds both
//! to it.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A URL in words, for messages.
pub(crate) const EXPECTED: &str = "http://HOST[:PORT][/PATH] in characters of RFC 3986, others as %XX";

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub text: String,
    /// As in the URL.
    host: String,
    port: u16,
    path: String,
}

/// Beside letters and digits: what RFC 3986 allows in a path and a query, and the brackets that many queries have.
const IN_PATH: &str = "-._~:/?[]@!$&'()*+,;=%";

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = || format!("{text:?}: expected {EXPECTED}");
        let rest = after_scheme(text, "http").ok_or_else(wrong)?;
        let (place, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = host_and_port(place).ok_or_else(wrong)?;
        if !path.chars().all(|each| each.is_ascii_alphanumeric() || IN_PATH.contains(each)) {
            return Err(wrong());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { text: text.to_owned(), host: host.to_owned(), port: port.unwrap_or(80), path })
    }
}

/// The text behind `SCHEME://`, whose scheme is in letters of either case (RFC 3986, section 3.1).
pub(crate) fn after_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let (found, rest) = text.split_once("://")?;
    found.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// `HOST[:PORT]`: a name, or an address of IPv6 in its brackets, which stay.
pub(crate) fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rfind(':').filter(|at| !text[*at..].contains(']')) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let good = match host.strip_prefix('[') {
        Some(rest) => is_address(rest.strip_suffix(']')?),
        None => is_of(host, "._-"),
    };
    let port = match port {
        Some(port) => Some(port_number(port)?),
        None => None,
    };
    good.then_some((host, port))
}

/// In digits; `parse` alone would take a sign.
pub(crate) fn port_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number| *number > 0 && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether it is an address of IPv6, with or without its zone after a `%`.
fn is_address(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    address.parse::<Ipv6Addr>().is_ok() && is_of(zone, "._~-")
}

/// Some letters, digits and characters of these.
fn is_of(text: &str, others: &str) -> bool {
    !text.is_empty() && text.chars().all(|each| each.is_ascii_alphanumeric() || others.contains(each))
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
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_url_has_a_host_a_port_and_a_path() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/vectors/urls.jsonl");
        let vectors = std::fs::read_to_string(path).expect("the vectors");
        for line in vectors.lines() {
            let vector: Value = serde_json::from_str(line).expect("JSON");
            let found = vector["text"].as_str().expect("a text").parse::<Url>();
            if vector["host"].is_null() {
                let why = found.expect_err(line);
                assert!(why.contains("expected http://") && !why.contains('\n'), "{why}");
            } else {
                let url = found.expect(line);
                assert_eq!(vector["host"], url.host, "{line}");
                assert_eq!(vector["port"], url.port, "{line}");
                assert_eq!(vector["path"], url.path, "{line}");
            }
        }
        assert!(vectors.lines().count() > 70);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fall(text in "(http://)?[a-z:\\[\\]/?%+@0-9]{0,30}|.{0,20}") {
            if let Err(why) = text.parse::<Url>() {
                prop_assert!(why.contains("expected http://") && !why.contains('\n'));
            }
        }
    }
}
