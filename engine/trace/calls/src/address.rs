//! `struct sockaddr_un`: to what a Unix socket is bound, or connected.

use std::ops::RangeInclusive;

use crate::Call;

/// The address of a Unix socket that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// A name in the file system.
    Path(&'a [u8]),
    /// A name that is in no file system, with the zero byte before it.
    Abstract(&'a [u8]),
}

impl Address<'_> {
    /// AF_UNIX.
    pub const UNIX: u16 = 1;
    /// Lengths of a structure that has a name, in bytes.
    pub const LENGTHS: RangeInclusive<usize> = 3..=110;

    /// The address in a structure; None where it is another family's, or has no name.
    pub fn of(bytes: &[u8]) -> Option<Address<'_>> {
        let (family, name) = bytes.split_at_checked(2).filter(|_| Self::LENGTHS.contains(&bytes.len()))?;
        if family != Self::UNIX.to_le_bytes() {
            return None;
        }
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(if end == 0 { Address::Abstract(name) } else { Address::Path(&name[..end]) })
    }
}

impl Call {
    /// Which argument is the address to which a socket is bound or connected; its length is the next one.
    pub fn address(self) -> Option<usize> {
        matches!(self.name(), "bind" | "connect").then_some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_or_an_abstract_name() {
        assert_eq!(Address::of(b"\x01\x00/run/s\x00junk"), Some(Address::Path(b"/run/s")));
        assert_eq!(Address::of(b"\x01\x00s"), Some(Address::Path(b"s")));
        assert_eq!(Address::of(b"\x01\x00\x00name\x00"), Some(Address::Abstract(b"\x00name\x00")));
        for other in [&b""[..], b"\x01", b"\x01\x00", b"\x02\x00\x1f\x90\x7f\x00\x00\x01", &[1; 111]] {
            assert_eq!(Address::of(other), None);
        }
    }
}
