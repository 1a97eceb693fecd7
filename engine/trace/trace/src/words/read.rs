//! Numbers, texts and times out of words, as strace and we write them.

use etude_calls::{Range, RangeKind, Set, errors, value};

/// The number of an error's name, below 0.
pub fn error(name: &[u8]) -> Option<i64> {
    errors::number(std::str::from_utf8(name).ok()?).map(|number| -i64::from(number))
}

/// The value of a sum of numbers and names: `O_WRONLY|O_CREAT`, `0644`, `-1`, `makedev(0x1, 0x3)`.
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
        let (major, minor) = (digits(major.trim())?, digits(minor.trim())?);
        return Some((minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12);
    }
    if let Some(rest) = word.strip_prefix('-') {
        return Some(unsigned(rest)?.wrapping_neg());
    }
    match word.as_bytes().first()? {
        b'0'..=b'9' => unsigned(word),
        _ => value(word).or_else(|| file_type(word)),
    }
}

fn unsigned(word: &str) -> Option<u64> {
    // `1<<3`, of bits without names.
    match word.split_once("<<") {
        Some((number, shift)) => digits(number)?.checked_shl(digits(shift)?.try_into().ok()?),
        None => digits(word),
    }
}

fn digits(word: &str) -> Option<u64> {
    // The library's own functions take a sign as well.
    if !word.as_bytes().first()?.is_ascii_digit() || word.as_bytes().contains(&b'+') {
        return None;
    }
    if let Some(hex) = word.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    match word.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => word.parse().ok(),
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

/// The bytes of the string in quotes with which a text begins, and what is behind it; None where it has no end.
pub fn string(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut bytes = Vec::new();
    loop {
        let (&byte, next) = rest.split_first()?;
        rest = next;
        match byte {
            b'"' => return Some((bytes, rest)),
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

/// The range of a lock, `{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=100}`; None where it is none.
pub fn range(text: &[u8]) -> Option<Range> {
    let inside = std::str::from_utf8(text).ok()?.strip_prefix('{')?.strip_suffix('}')?;
    let mut members = inside.split(',').map(str::trim);
    let mut member = |name: &str| members.next()?.strip_prefix(name)?.strip_prefix('=');
    let (kind, whence) = (member("l_type")?, member("l_whence")?);
    let (start, length) = (member("l_start")?.parse().ok()?, member("l_len")?.parse().ok()?);
    let (kind, _) = *RangeKind::NAMES.iter().find(|(_, name)| *name == kind)?;
    let (whence, _) = *Set::Whence.names()[..3].iter().find(|(_, name)| *name == whence)?;
    members.next().is_none().then_some(Range { kind, whence: whence as u8, start, length })
}

/// `12.345` in ns; at most nine decimals.
pub fn seconds(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.')?;
    let (whole, parts) = (&text[..point], &text[point + 1..]);
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if !digits(whole) || !digits(parts) || parts.len() > 9 {
        return None;
    }
    let whole: u64 = std::str::from_utf8(whole).ok()?.parse().ok()?;
    let parts =
        parts.iter().chain(&[b'0'; 9]).take(9).fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0'));
    whole.checked_mul(1_000_000_000)?.checked_add(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_all_forms_in_which_they_are_written() {
        for (word, wanted) in [
            ("0644", Some(0o644)),
            ("0x1f", Some(31)),
            ("-1", Some(u64::MAX)),
            ("1<<3", Some(8)),
            ("O_WRONLY|O_CREAT|0x40000000", Some(0x4000_0041)),
            ("makedev(0x1, 0x3)", Some(0x103)),
            ("+1", None),
            ("0x+1", None),
            ("1<<64", None),
            ("O_NOTHING", None),
            ("", None),
        ] {
            assert_eq!(number(word.as_bytes()), wanted, "{word}");
        }
    }

    #[test]
    fn a_range_is_read_as_it_is_written() {
        let range = Range { kind: RangeKind::Write, whence: 1, start: i64::MIN, length: 7 };
        let mut text = String::new();
        crate::words::range_of(&mut text, range);
        assert_eq!(self::range(text.as_bytes()), Some(range));
        for wrong in [
            "",
            "{}",
            "{l_type=F_WRLCK, l_whence=SEEK_DATA, l_start=0, l_len=0}",
            "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0}",
            "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0, l_pid=1}",
            "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=99999999999999999999}",
        ] {
            assert_eq!(self::range(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_nested_without_end_is_no_number() {
        assert_eq!(number("1<<".repeat(1 << 20).as_bytes()), None);
        let devices = format!("{}1{}", "makedev(1, ".repeat(1 << 18), ")".repeat(1 << 18));
        assert_eq!(number(devices.as_bytes()), None);
    }
}
