//! Numbers and texts out of strace's words.

use etude_calls::{Address, Call, Kind, Outcome};
use smallvec::SmallVec;

use super::line::CallText;
use crate::event::Text;
use crate::words;
pub use crate::words::number_of as number;

/// What a call's words say.
pub struct Values {
    pub arguments: [u64; 6],
    pub texts: SmallVec<[Text; 1]>,
    /// Arguments that were not understood.
    pub strange: u64,
}

/// The arguments of a call.
pub fn arguments(call: Call, text: &CallText) -> Values {
    let mut values = Values { arguments: [0; 6], texts: SmallVec::new(), strange: 0 };
    let kinds = call.row().arguments;
    // What has no meaning is not printed.
    let mut places = (0..kinds.len()).filter(|index| kinds[*index] != Kind::Unused);
    for word in &text.arguments {
        let Some(index) = places.next() else { break };
        let mut put = |bytes: Vec<u8>| values.texts.push(Text { argument: index as u8, bytes: bytes.into() });
        match kinds[index] {
            Kind::Path | Kind::Name | Kind::Socket if word.starts_with(b"\"") => {
                put(string(word).unwrap_or_default());
            }
            Kind::Pair | Kind::OffsetAt if word.starts_with(b"[") => {
                // `[3, 4]`; of `[0] => [4096]` the first.
                let inside = word[1..].split(|byte| *byte == b']').next().unwrap_or_default();
                let numbers: Option<Vec<_>> = inside.split(|byte| *byte == b',').map(number).collect();
                match (kinds[index], numbers.as_deref()) {
                    (Kind::Pair, Some([first, second])) => {
                        put([*first as i32, *second as i32].map(i32::to_le_bytes).concat());
                    }
                    (Kind::OffsetAt, Some([offset])) => put(offset.to_le_bytes().to_vec()),
                    _ => values.strange += 1,
                }
            }
            Kind::Command if word.starts_with(b"{") => {
                let range = words::range_from(word);
                let is_range = call.kind(&values.arguments, index) == Kind::Range;
                range.filter(|_| is_range).into_iter().for_each(|range| put(range.bytes().to_vec()));
            }
            Kind::Socket if word.starts_with(b"{") => unix_address(word).into_iter().for_each(put),
            // What stands in memory: where, strace does not say.
            _ if matches!(word.first(), Some(b'"' | b'[' | b'{')) => {}
            Kind::Buffer | Kind::Pointer | Kind::Iovec | Kind::Socket => {
                values.arguments[index] = number(word).unwrap_or(0);
            }
            _ => match number(word) {
                Some(number) => values.arguments[index] = number,
                None => values.strange += 1,
            },
        }
    }
    values
}

/// `{sa_family=AF_UNIX, sun_path="/run/s"}`, or with `@"s"` of an abstract name, as `struct sockaddr_un`.
fn unix_address(word: &[u8]) -> Option<Vec<u8>> {
    let name = word.strip_prefix(b"{sa_family=AF_UNIX, sun_path=")?;
    let (zero, name) = name.strip_prefix(b"@").map_or((&b""[..], name), |name| (&b"\0"[..], name));
    Some([&Address::UNIX.to_le_bytes()[..], zero, &string(name)?].concat())
}

/// A result; None where the call did not return.
pub fn result(call: Call, text: &[u8]) -> Option<i64> {
    let mut words = text.split(|byte| *byte == b' ');
    let first = words.next()?;
    if first == b"-1"
        && let Some(error) = words.next()
    {
        return words::error(error);
    }
    let first = match call.row().outcome {
        // With -y: `3</etc/hosts>`.
        Outcome::Descriptor => first.split(|byte| *byte == b'<').next()?,
        _ => first,
    };
    number(first).map(|number| number as i64)
}

/// The bytes of a string in quotes.
pub fn string(text: &[u8]) -> Option<Vec<u8>> {
    words::string_of(text).map(|(bytes, _)| bytes)
}

/// The strings of a list, `["tar", "cf"]`.
pub fn strings(text: Option<&[u8]>) -> Vec<String> {
    let Some(mut rest) = text.and_then(|text| text.strip_prefix(b"[")) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some(begin) = rest.iter().position(|byte| *byte == b'"') {
        let Some((bytes, behind)) = words::string_of(&rest[begin..]) else { break };
        found.push(String::from_utf8_lossy(&bytes).into_owned());
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::unix_address;

    #[test]
    fn an_address_of_a_unix_socket_is_that_of_the_structure() {
        let of = |word: &str| unix_address(word.as_bytes());
        assert_eq!(of(r#"{sa_family=AF_UNIX, sun_path="/run/s"}"#).unwrap(), b"\x01\0/run/s");
        assert_eq!(of(r#"{sa_family=AF_UNIX, sun_path=@"a\0b"}"#).unwrap(), b"\x01\0\0a\0b");
        assert_eq!(of(r#"{sa_family=AF_INET, sin_port=htons(80)}"#), None);
        assert_eq!(of("{sa_family=AF_UNIX}"), None);
    }
}
