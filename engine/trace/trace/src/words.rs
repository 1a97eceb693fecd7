//! Arguments, results and times as words, and such words read again.

mod read;

use std::fmt::Write as _;

use etude_calls::{Call, Kind, Outcome, Range, Set, errors, write_argument};

pub use read::{error, number as number_of, range as range_from, seconds as seconds_of, string as string_of};

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
        // Most arguments are these.
        (Kind::Fd | Kind::Int, None) => number(out, i64::from(value as i32)),
        (Kind::Size | Kind::Count, None) if value < 1 << 63 => number(out, value as i64),
        (_, None) => write_argument(out, kind, value).expect("a string grows"),
    }
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
