//! A URL of NFS: where the server is, and what it exports.

use std::str::FromStr;

use crate::options::url::{after_scheme, host_and_port, port_number};

/// `nfs://HOST[:PORT]/EXPORT[?mountport=N]`; of RFC 2224 the part that names one export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NfsUrl {
    pub text: String,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// From its first `/`.
    pub export: String,
    /// None: the server's portmapper is asked.
    pub mount_port: Option<u16>,
}

/// IANA's for NFS.
const PORT: u16 = 2049;

impl FromStr for NfsUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<NfsUrl, String> {
        let wrong = || format!("{text:?}: expected nfs://HOST[:PORT]/EXPORT[?mountport=N]");
        let good = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let rest = after_scheme(text, "nfs").filter(|rest| good(rest)).ok_or_else(wrong)?;
        let (place, path) = rest.split_at(rest.find('/').ok_or_else(wrong)?);
        let (export, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mount_port = match query {
            None => None,
            Some(query) => Some(query.strip_prefix("mountport=").and_then(port_number).ok_or_else(wrong)?),
        };
        let (host, port) = host_and_port(place).ok_or_else(wrong)?;
        let (host, port) = (host.trim_matches(['[', ']']), port.unwrap_or(PORT));
        let (text, host, export) = (text.to_owned(), host.to_owned(), export.to_owned());
        Ok(NfsUrl { text, host, port, export, mount_port })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Option<(String, u16, String, Option<u16>)> {
        text.parse::<NfsUrl>().ok().map(|url| (url.host, url.port, url.export, url.mount_port))
    }

    #[test]
    fn a_url_has_a_host_a_port_an_export_and_the_port_of_mount() {
        let expected =
            |host: &str, port, export: &str, mount| Some((host.to_owned(), port, export.to_owned(), mount));
        assert_eq!(url("nfs://a/b/c"), expected("a", 2049, "/b/c", None));
        assert_eq!(url("nfs://a:20490/vfs?mountport=20491"), expected("a", 20490, "/vfs", Some(20491)));
        assert_eq!(url("NFS://a/b"), expected("a", 2049, "/b", None));
        assert_eq!(url("nfs://[::1]:7/"), expected("::1", 7, "/", None));
        assert_eq!(url("nfs://[fe80::1]/x"), expected("fe80::1", 2049, "/x", None));
        for text in [
            "",
            "a",
            "http://a/",
            "nfs://",
            "nfs://a",
            "nfs:///x",
            "nfs://a:0/x",
            "nfs://a:x/y",
            "nfs://a:70000/x",
            "nfs://a/x?mountport=",
            "nfs://a/x?mountport=0",
            "nfs://a/x?port=3",
            "nfs://a/x?mountport=+3",
            "nfs://a:+3/x",
            "nfs://[::1]x/y",
            "nfs://a/x y",
            "nfs://u@a/x",
            "nfs://::1/x",
            "nfs://[::1/x",
            "nfs://[]/x",
        ] {
            assert_eq!(url(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fall(text in "(nfs://)?[a-z:\\[\\]/?=@0-9]{0,30}|.{0,20}") {
            if let Err(why) = text.parse::<NfsUrl>() {
                prop_assert!(why.contains("expected nfs://") && !why.contains('\n'));
            }
        }
    }
}
