//! Arguments, results and times as words, and such words read again.

use std::fmt::Write as _;

use etude_calls::{Call, Kind, Outcome, Range, RangeKind, Set, errors, value};

/// Appends an argument; `text` is what stood where it pointed, if that is known.
pub fn argument(out: &mut String, kind: Kind, value: u64, text: Option<&[u8]>) {
    match (kind, text) {
        (Kind::Pair, Some(bytes)) if bytes.len() == 8 => {
            let at = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            write!(out, "[{}, {}]", at(0), at(4)).expect("a string grows");
        }
        (Kind::OffsetAt, Some(bytes)) if bytes.len() == 8 => {
            let offset = i64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            write!(out, "[{offset}]").expect("a string grows");
        }
        (Kind::Range, Some(bytes)) => match Range::of(bytes) {
            Some(range) => range_of(out, range),
            None => quoted(out, bytes),
        },
        (_, Some(bytes)) => quoted(out, bytes),
        (kind, None) => plain_argument(out, kind, value),
    }
}

/// Appends an argument that is no text, much as strace prints it: `AT_FDCWD`, `O_RDONLY|O_CLOEXEC`, `0644`, `0x7f00`, `4096`.
fn plain_argument(out: &mut String, kind: Kind, value: u64) {
    let written = match kind {
        Kind::DirFd if value as i32 == -100 => out.write_str("AT_FDCWD"),
        Kind::Fd | Kind::DirFd | Kind::Int | Kind::Id => return number(out, i64::from(value as i32)),
        Kind::Offset => return number(out, value as i64),
        Kind::Size | Kind::Count if value < 1 << 63 => return number(out, value as i64),
        Kind::Size | Kind::Count | Kind::Unused => write!(out, "{value}"),
        Kind::Flags(set) => set.write_flags(out, value),
        Kind::Choice(set) => set.write_choice(out, value),
        Kind::Mode => write!(out, "0{value:o}"),
        // As the kernel packs them into 32 bits (`new_decode_dev`).
        Kind::Device => {
            let (major, minor) = ((value >> 8) & 0xfff, (value & 0xff) | ((value >> 12) & 0xfff00));
            write!(out, "makedev({major:#x}, {minor:#x})")
        }
        _ if value == 0 => out.write_str("NULL"),
        _ => write!(out, "{value:#x}"),
    };
    written.expect("a string grows");
}

/// Appends the range of a lock: `{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=100}`.
pub fn range_of(out: &mut String, range: Range) {
    let Range { kind, whence, start, length } = range;
    let whence = Set::Whence.name(whence.into()).expect("there are three");
    write!(out, "{{l_type={}, l_whence={whence}, l_start={start}, l_len={length}}}", kind.name())
        .expect("a string grows");
}

/// Appends what a call returned: `-1 ENOENT` for an error, `0x7f0000001000` for a place in memory, else a number.
pub fn result(out: &mut String, call: Call, result: i64) {
    match result {
        error @ -4095..0 => match errors::name(error.unsigned_abs() as u16) {
            Some(name) => {
                out.push_str("-1 ");
                out.push_str(name);
            }
            None => number(out, error),
        },
        address if call.row().outcome == Outcome::Address => {
            write!(out, "{address:#x}").expect("a string grows");
        }
        result => number(out, result),
    }
}

/// Appends seconds with nine decimals.
pub fn seconds(out: &mut String, ns: u64) {
    let mut digits = [b'0'; 9];
    let mut rest = ns % 1_000_000_000;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    number(out, (ns / 1_000_000_000) as i64);
    out.push('.');
    digits.iter().for_each(|digit| out.push(char::from(*digit)));
}

/// What `write!` does, in a fifth of the time.
pub fn number(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    let (mut digits, mut at, mut rest) = ([0; 20], 20, value.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    digits[at..].iter().for_each(|digit| out.push(char::from(*digit)));
}

/// Appends a text in quotes, as C writes it: what is not printable ASCII in octal.
pub fn quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => write!(out, "\\{byte:03o}").expect("a string grows"),
        }
    }
    out.push('"');
}

/// The number of an error's name, below 0.
pub fn error(name: &[u8]) -> Option<i64> {
    errors::number(std::str::from_utf8(name).ok()?).map(|number| -i64::from(number))
}

/// The value of a sum of numbers and names: `O_WRONLY|O_CREAT`, `0644`, `-1`, `makedev(0x1, 0x3)`.
pub fn number_of(text: &[u8]) -> Option<u64> {
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
pub fn string_of(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
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
pub fn range_from(text: &[u8]) -> Option<Range> {
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
pub fn seconds_of(text: &[u8]) -> Option<u64> {
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
            assert_eq!(number_of(word.as_bytes()), wanted, "{word}");
        }
    }

    #[test]
    fn a_range_is_read_as_it_is_written() {
        let range = Range { kind: RangeKind::Write, whence: 1, start: i64::MIN, length: 7 };
        let mut text = String::new();
        range_of(&mut text, range);
        assert_eq!(range_from(text.as_bytes()), Some(range));
        for wrong in [
            "",
            "{}",
            "{l_type=F_WRLCK, l_whence=SEEK_DATA, l_start=0, l_len=0}",
            "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0}",
            "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0, l_pid=1}",
            "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=99999999999999999999}",
        ] {
            assert_eq!(range_from(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_nested_without_end_is_no_number() {
        assert_eq!(number_of("1<<".repeat(1 << 20).as_bytes()), None);
        let devices = format!("{}1{}", "makedev(1, ".repeat(1 << 18), ")".repeat(1 << 18));
        assert_eq!(number_of(devices.as_bytes()), None);
    }

    fn words(name: &str, arguments: [u64; 6]) -> String {
        let (call, mut out) = (Call::named(name).unwrap(), String::new());
        for index in 0..call.used(&arguments) {
            out += if index > 0 { ", " } else { "" };
            argument(&mut out, call.kind(&arguments, index), arguments[index], None);
        }
        out
    }

    #[test]
    fn arguments_are_printed_as_strace_prints_them() {
        let cwd = -100_i64 as u64;
        let none = u64::MAX;
        for (name, arguments, expected) in [
            ("openat", [cwd, 16, 0o2000000, 0, 0, 0], "AT_FDCWD, 0x10, O_RDONLY|O_CLOEXEC"),
            ("openat", [3, 16, 0o1101, 0o644, 0, 0], "3, 0x10, O_WRONLY|O_CREAT|O_TRUNC, 0644"),
            ("openat", [3, 16, 0o20200002, 0o600, 0, 0], "3, 0x10, O_RDWR|O_TMPFILE, 0600"),
            ("openat", [3, 16, 0o12000000, 0, 0, 0], "3, 0x10, O_CLOEXEC|O_PATH"),
            ("openat", [3, 16, 0o4010001, 0, 0, 0], "3, 0x10, O_WRONLY|O_SYNC"),
            ("lseek", [3, -1_i64 as u64, 2, 0, 0, 0], "3, -1, SEEK_END"),
            ("lseek", [3, 0, 77, 0, 0, 0], "3, 0, 77"),
            (
                "mmap",
                [0, 4096, 3, 0x22, none, 0],
                "NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0",
            ),
            ("mmap", [0, 1, 0, 0x2000_0001, 3, 8], "NULL, 1, PROT_NONE, MAP_SHARED|0x20000000, 3, 8"),
            ("fcntl", [3, 2, 1, 0, 0, 0], "3, F_SETFD, 1"),
            ("fcntl", [3, 3, 99, 0, 0, 0], "3, F_GETFL"),
            ("fcntl", [3, 4, 0o4002, 0, 0, 0], "3, F_SETFL, O_RDWR|O_NONBLOCK"),
            ("fcntl", [3, 6, 0x10, 0, 0, 0], "3, F_SETLK, 0x10"),
            ("access", [16, 0, 0, 0, 0, 0], "0x10, F_OK"),
            ("access", [16, 5, 0, 0, 0, 0], "0x10, R_OK|X_OK"),
            ("unlinkat", [cwd, 16, 0x200, 0, 0, 0], "AT_FDCWD, 0x10, AT_REMOVEDIR"),
            ("socket", [2, 0o2000001, 0, 0, 0, 0], "AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0"),
            ("mknod", [16, 0o20644, 0x103, 0, 0, 0], "0x10, 020644, makedev(0x1, 0x3)"),
            ("chown", [16, 1000, 0xffff_ffff, 0, 0, 0], "0x10, 1000, -1"),
            ("mremap", [16, 1, 2, 1, 77, 0], "0x10, 1, 2, MREMAP_MAYMOVE"),
            ("mremap", [16, 1, 2, 3, 32, 0], "0x10, 1, 2, MREMAP_MAYMOVE|MREMAP_FIXED, 0x20"),
            ("preadv2", [3, 16, 1, 5, 0, 2], "3, 0x10, 1, 5, 0, RWF_DSYNC"),
            ("ioctl", [3, 0x4004_9409, 4, 0, 0, 0], "3, FICLONE, 0x4"),
            ("sync", [0; 6], ""),
        ] {
            assert_eq!(words(name, arguments), expected);
        }
    }
}
