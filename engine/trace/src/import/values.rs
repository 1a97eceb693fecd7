//! Numbers and texts out of strace's words.

use etude_calls::{Call, Kind, Outcome, errors, value};
use smallvec::SmallVec;

use super::line::CallText;
use crate::event::Text;

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

/// A result; None where the call did not return.
pub fn result(call: Call, text: &[u8]) -> Option<i64> {
    let mut words = text.split(|byte| *byte == b' ');
    let first = words.next()?;
    if first == b"-1"
        && let Some(error) = words.next()
    {
        let error = errors::number(std::str::from_utf8(error).ok()?)?;
        return Some(-i64::from(error));
    }
    let first = match call.row().outcome {
        // With -y: `3</etc/hosts>`.
        Outcome::Descriptor => first.split(|byte| *byte == b'<').next()?,
        _ => first,
    };
    number(first).map(|number| number as i64)
}

/// A sum of numbers and names.
pub fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    // `BTRFS_IOC_CLONE or FICLONE`
    let text = text.rsplit(" or ").next()?;
    let mut sum = 0;
    for word in text.split('|') {
        sum |= plain(word.trim())?;
    }
    Some(sum)
}

fn plain(word: &str) -> Option<u64> {
    if let Some(inside) = word.strip_prefix("makedev(").and_then(|rest| rest.strip_suffix(')')) {
        let (major, minor) = inside.split_once(',')?;
        let (major, minor) = (plain(major.trim())?, plain(minor.trim())?);
        return Some((minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12);
    }
    if let Some(digits) = word.strip_prefix('-') {
        return Some(unsigned(digits)?.wrapping_neg());
    }
    match word.as_bytes().first()? {
        b'0'..=b'9' => unsigned(word),
        _ => value(word).or_else(|| file_type(word)),
    }
}

fn unsigned(digits: &str) -> Option<u64> {
    // `1<<3`, of bits without names.
    if let Some((number, shift)) = digits.split_once("<<") {
        return unsigned(number)?.checked_shl(unsigned(shift)?.try_into().ok()?);
    }
    if let Some(hex) = digits.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}

fn file_type(word: &str) -> Option<u64> {
    let bits = match word {
        "S_IFREG" => 0o100000,
        "S_IFIFO" => 0o10000,
        "S_IFCHR" => 0o20000,
        "S_IFBLK" => 0o60000,
        "S_IFSOCK" => 0o140000,
        "S_ISUID" => 0o4000,
        "S_ISGID" => 0o2000,
        "S_ISVTX" => 0o1000,
        _ => return None,
    };
    Some(bits)
}

/// The bytes of a string in quotes; None where it has no end.
pub fn string(text: &[u8]) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut bytes = Vec::new();
    loop {
        let (&byte, next) = rest.split_first()?;
        rest = next;
        match byte {
            b'"' => return Some(bytes),
            b'\\' => {
                let (&escaped, next) = rest.split_first()?;
                rest = next;
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'x' => {
                        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                        rest = &rest[2..];
                        u8::from_str_radix(digits, 16).ok()?
                    }
                    b'0'..=b'7' => {
                        let mut value = u32::from(escaped - b'0');
                        let more = rest.iter().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                        for digit in &rest[..more] {
                            value = 8 * value + u32::from(digit - b'0');
                        }
                        rest = &rest[more..];
                        value as u8
                    }
                    other => other,
                });
            }
            other => bytes.push(other),
        }
    }
}

/// The strings of a list, `["tar", "cf"]`.
pub fn strings(text: Option<&[u8]>) -> Vec<String> {
    let Some(mut rest) = text.and_then(|text| text.strip_prefix(b"[")) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some(begin) = rest.iter().position(|byte| *byte == b'"') {
        let Some(bytes) = string(&rest[begin..]) else { break };
        found.push(String::from_utf8_lossy(&bytes).into_owned());
        let mut end = begin + 1;
        while end < rest.len() && rest[end] != b'"' {
            end += if rest[end] == b'\\' { 2 } else { 1 };
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    found
}
