//! What bpftrace prints (`script.rs`), line by line. bpftrace puts each into a JSON object; bytes of texts that are no
//! UTF-8 are in it as they are, or, by bpftrace up to 0.20 or so, as `\uffffffe9`.

use crate::kernel_counts::Counters;
use crate::rewrite::remote::Pid;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// bpftrace begins: its pid, and the clock.
    Begin { pid: Pid, ns: u64 },
    /// Something of a thread, with its place among what is said of this thread, from 1.
    Said { tid: Pid, place: u64, pid: Pid, ns: u64, what: What },
    /// A text of the call that will stand at this place.
    Text { tid: Pid, place: u64, argument: u8, bytes: Vec<u8> },
    /// Lines that found no room in bpftrace's buffers.
    Lost(u64),
    /// How many `Said` there were in all.
    Total(u64),
    /// Anything else: bpftrace says what it attached, and so on.
    Other,
}

/// What is said of a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// It is seen for the first time. `born` is 0 where it was there before.
    First {
        born: u64,
        parent: Pid,
        counted: Counters,
    },
    /// It starts another thread, or a process.
    Starts {
        child: Pid,
    },
    Call {
        ended: u64,
        number: u32,
        result: i64,
        arguments: [u64; 6],
    },
    /// It has executed a program; it may have had another tid before.
    Executed {
        before: Pid,
        counted: Counters,
        file: Vec<u8>,
    },
    /// It ends; `status` as `waitpid` tells it, where nothing of its process is left.
    Ends {
        counted: Counters,
        status: Option<i32>,
    },
}

const PRINTED: &[u8] = br#"{"type": "printf", "data": ""#;
const TOTAL: &[u8] = br#"{"type": "map", "data": {"@total": "#;
const LOST: &[u8] = br#"{"type": "lost_events", "data": {"events": "#;

/// Reads a line.
///
/// # Errors
/// It is printed by the program, and not of its form.
pub fn parse(line: &[u8]) -> Result<Line, String> {
    let number = |rest: &[u8]| {
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..digits])
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| wrong(line))
    };
    if let Some(rest) = line.strip_prefix(LOST) {
        return number(rest).map(Line::Lost);
    }
    if let Some(rest) = line.strip_prefix(TOTAL) {
        return number(rest).map(Line::Total);
    }
    let Some(rest) = line.strip_prefix(PRINTED) else { return Ok(Line::Other) };
    unescaped(rest).and_then(|bytes| said(&bytes)).ok_or_else(|| wrong(line))
}

fn wrong(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    format!("bpftrace printed what is not expected of it: {shown:?}")
}

/// Up to the quotation mark that ends it.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        let (&first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => return Some(out),
            b'\\' => {
                let (&which, after) = rest.split_first()?;
                rest = after;
                out.push(match which {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 8,
                    b'f' => 12,
                    b'"' | b'\\' | b'/' => which,
                    b'u' => {
                        // A byte with a sign, printed as a number of 32 bits.
                        let length = if rest.starts_with(b"ffff") { 8 } else { 4 };
                        let value = hexadecimal(rest.get(..length)?)? as u32;
                        rest = &rest[length..];
                        u8::try_from(value)
                            .or_else(|_| i8::try_from(value as i32).map(|byte| byte as u8))
                            .ok()?
                    }
                    _ => return None,
                });
            }
            byte => out.push(byte),
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let text =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, 16).ok()
}

/// Numbers with single blanks between them, and a text behind.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|byte| *byte == b' ').unwrap_or(self.0.len());
        let word = std::str::from_utf8(&self.0[..end]).ok()?;
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(word)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.word()?.parse().ok()
    }

    fn register(&mut self) -> Option<u64> {
        hexadecimal(self.word()?.as_bytes())
    }

    fn counted(&mut self) -> Option<Counters> {
        Some(Counters {
            reads: self.number()?,
            writes: self.number()?,
            read_bytes: self.number()?,
            written_bytes: self.number()?,
        })
    }
}

fn said(bytes: &[u8]) -> Option<Line> {
    let mut words = Words(bytes);
    let kind = words.word()?;
    if kind == "B" {
        return Some(Line::Begin { pid: words.number()?, ns: words.number()? });
    }
    let (tid, place) = (words.number()?, words.number()?);
    if kind == "S" {
        return Some(Line::Text { tid, place, argument: words.number()?, bytes: words.0.to_vec() });
    }
    if kind == "D" {
        let (argument, mut bytes) = (words.number()?, words.register()?.to_le_bytes().to_vec());
        while !words.0.is_empty() {
            bytes.extend(words.register()?.to_le_bytes());
        }
        return Some(Line::Text { tid, place, argument, bytes });
    }
    let (pid, ns) = (words.number()?, words.number()?);
    let what = match kind {
        "T" => What::First { born: words.number()?, parent: words.number()?, counted: words.counted()? },
        "F" => What::Starts { child: words.number()? },
        "C" => {
            let (ended, number, result) = (words.number()?, words.number()?, words.number()?);
            let mut arguments = [0; 6];
            for argument in &mut arguments {
                *argument = words.register()?;
            }
            What::Call { ended, number, result, arguments }
        }
        "X" => What::Executed { before: words.number()?, counted: words.counted()?, file: words.0.to_vec() },
        "E" => What::Ends { counted: words.counted()?, status: status(&mut words)? },
        _ => return None,
    };
    Some(Line::Said { tid, place, pid, ns, what })
}

/// The status of a process whose last thread ends: that of its group if one was given, else its first thread's.
fn status(words: &mut Words) -> Option<Option<i32>> {
    const SIGNAL_GROUP_EXIT: u32 = 4;
    let (live, flags, first, group): (i64, i64, i32, i32) =
        (words.number()?, words.number()?, words.number()?, words.number()?);
    let code = if flags as u32 & SIGNAL_GROUP_EXIT != 0 { group } else { first };
    Some((live == 0).then_some(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(data: &[u8]) -> Vec<u8> {
        [PRINTED, data, b"\"}"].concat()
    }

    /// As bpftrace 0.17 writes it.
    fn escaped(bytes: &[u8]) -> Vec<u8> {
        let one = |byte: &u8| match byte {
            b'"' => b"\\\"".to_vec(),
            b'\\' => b"\\\\".to_vec(),
            b'\n' => b"\\n".to_vec(),
            0x80.. => format!("\\u{:04x}", i32::from(*byte as i8)).into_bytes(),
            ..0x20 => format!("\\u{byte:04x}").into_bytes(),
            _ => vec![*byte],
        };
        bytes.iter().flat_map(one).collect()
    }

    #[test]
    fn each_kind_of_line_is_read() {
        let call =
            parse(&printed(b"C 12 3 11 500 700 257 -2 ffffff9c 7f00 80000 0 0 ffffffffffffffff")).unwrap();
        let arguments = [0xffff_ff9c, 0x7f00, 0x80000, 0, 0, u64::MAX];
        let what = What::Call { ended: 700, number: 257, result: -2, arguments };
        assert_eq!(call, Line::Said { tid: 12, place: 3, pid: 11, ns: 500, what });
        let file = b"/bin/a b".to_vec();
        let counted = Counters { reads: 1, writes: 2, read_bytes: 3, written_bytes: 4 };
        let what = What::Executed { before: 12, counted, file };
        let line = parse(&printed(b"X 11 4 11 800 12 1 2 3 4 /bin/a b")).unwrap();
        assert_eq!(line, Line::Said { tid: 11, place: 4, pid: 11, ns: 800, what });
        let end = |text: &[u8]| match parse(&printed(text)) {
            Ok(Line::Said { what: What::Ends { status, .. }, .. }) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(end(b"E 11 5 11 900 1 2 3 4 0 4 0 9"), Some(9));
        assert_eq!(end(b"E 11 5 11 900 1 2 3 4 0 0 256 0"), Some(256));
        assert_eq!(end(b"E 12 5 11 900 1 2 3 4 1 4 0 9"), None);
        let bytes = [[3, 0, 0, 0, 4, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 0]].concat();
        let words = parse(&printed(b"D 5 6 0 400000003 201"));
        assert_eq!(words, Ok(Line::Text { tid: 5, place: 6, argument: 0, bytes }));
        assert_eq!(parse(b"{\"type\": \"lost_events\", \"data\": {\"events\": 17}}"), Ok(Line::Lost(17)));
        assert_eq!(parse(b"{\"type\": \"map\", \"data\": {\"@total\": 65570}}\n"), Ok(Line::Total(65570)));
        assert_eq!(parse(b"{\"type\": \"attached_probes\", \"data\": {\"probes\": 6}}"), Ok(Line::Other));
    }

    proptest! {
        #[test]
        fn a_text_comes_back_whatever_bytes_it_has(text: Vec<u8>, raw: bool) {
            let text: Vec<u8> = text.into_iter().filter(|byte| *byte != 0).collect();
            let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
            let data = if raw && text.iter().all(plain) { text.clone() } else { escaped(&text) };
            let line = parse(&printed(&[b"S 5 6 1 ", &data[..]].concat()));
            prop_assert_eq!(line, Ok(Line::Text { tid: 5, place: 6, argument: 1, bytes: text }));
        }

        #[test]
        fn no_line_is_too_odd_to_be_read_or_refused(kind in "[BSDTFCXEQ ]?", words: Vec<u8>, cut in 0usize..60) {
            let line = printed(&[kind.as_bytes(), b" ", &words[..]].concat());
            let _ = parse(&line);
            let _ = parse(&line[..cut.min(line.len())]);
            let _ = parse(&words);
        }

        #[test]
        fn a_line_that_is_cut_off_within_its_numbers_is_refused(cut in 1usize..40) {
            let whole = b"C 12 3 11 500 700 257 -2 1 2 3 4 5 6";
            prop_assert!(parse(&printed(&whole[..cut.min(whole.len() - 2)])).is_err());
        }
    }
}
