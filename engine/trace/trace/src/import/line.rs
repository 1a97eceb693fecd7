//! A line of strace taken apart.

use crate::words::seconds_of as seconds;

/// A line with a time.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// None where strace followed one process only, and did not write which.
    pub tid: Option<u32>,
    /// Since 1970, ns.
    pub at_ns: u64,
    pub what: What<'a>,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum What<'a> {
    Call(CallText<'a>),
    /// The beginning of a call that goes on in a later line: all before the mark.
    Unfinished(&'a [u8]),
    /// The end of such a call: its name, and all behind the mark.
    Resumed(&'a [u8], &'a [u8]),
    /// `+++ exited with 3 +++`
    Exited(i32),
    /// `+++ killed by SIGKILL +++`
    Killed(&'a [u8]),
    /// A signal, or what else is of no interest.
    Other,
}

/// A whole call.
#[derive(Debug, PartialEq, Eq)]
pub struct CallText<'a> {
    pub name: &'a [u8],
    pub arguments: Vec<&'a [u8]>,
    /// Behind the equals sign, up to the duration.
    pub result: &'a [u8],
    /// None where it has none.
    pub duration_ns: Option<u64>,
}

/// Whether a line without a time is one that strace writes beside.
pub fn says_nothing(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"strace: ")
}

impl<'a> Line<'a> {
    /// None for what does not begin as a line of strace -ttt, or is not understood behind that.
    pub fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let (tid, rest) = thread(line);
        let blank = rest.iter().position(|byte| *byte == b' ')?;
        let at_ns = seconds(&rest[..blank])?;
        let rest = rest[blank..].trim_ascii_start();
        let what = if let Some(rest) = rest.strip_prefix(b"<... ") {
            let blank = rest.iter().position(|byte| *byte == b' ')?;
            What::Resumed(&rest[..blank], rest[blank..].strip_prefix(b" resumed>")?)
        } else if let Some(rest) = rest.strip_prefix(b"+++ exited with ") {
            What::Exited(number(rest.strip_suffix(b" +++")?)?)
        } else if let Some(rest) = rest.strip_prefix(b"+++ killed by ") {
            What::Killed(rest.split(|byte| *byte == b' ').next()?)
        } else if rest.starts_with(b"--- ") || rest.starts_with(b"+++ ") {
            What::Other
        } else if let Some(rest) = rest.strip_suffix(b"<unfinished ...>") {
            What::Unfinished(rest)
        } else {
            What::Call(CallText::parse(rest)?)
        };
        Some(Line { tid, at_ns, what })
    }
}

impl<'a> CallText<'a> {
    /// `name(argument, …) = result <duration>`
    pub fn parse(text: &'a [u8]) -> Option<CallText<'a>> {
        let open = text.iter().position(|byte| *byte == b'(')?;
        let name = &text[..open];
        if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            return None;
        }
        let (arguments, rest) = arguments(&text[open + 1..])?;
        let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
        let (result, duration_ns) = match rest.iter().rposition(|byte| *byte == b'<') {
            Some(at) if rest.ends_with(b">") => match seconds(&rest[at + 1..rest.len() - 1]) {
                Some(duration) => (rest[..at].trim_ascii(), Some(duration)),
                None => (rest, None),
            },
            _ => (rest, None),
        };
        (!result.is_empty()).then_some(CallText { name, arguments, result, duration_ns })
    }
}

/// `[pid 12] rest`, `12 rest` or `rest`, which begins with a time and so has a point in its first number.
fn thread(line: &[u8]) -> (Option<u32>, &[u8]) {
    let (digits, behind) = match line.strip_prefix(b"[pid ") {
        Some(rest) => (rest.trim_ascii_start(), &b"]"[..]),
        None => (line, &b""[..]),
    };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let rest = digits[end..].strip_prefix(behind).filter(|rest| rest.starts_with(b" "));
    match (number(&digits[..end]), rest) {
        (Some(tid), Some(rest)) => (u32::try_from(tid).ok(), rest.trim_ascii_start()),
        _ => (None, line),
    }
}

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The arguments up to the closing parenthesis, without remarks; and what is behind it. None where there is no such.
fn arguments(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (mut found, mut begin, mut depth, mut at) = (Vec::new(), 0, 0_u32, 0);
    let mut end = None;
    let argument = |begin: usize, end: usize| text[begin..end].trim_ascii();
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at)?,
            b'/' if text[at..].starts_with(b"/*") => {
                end = end.or(Some(at));
                at += text[at..].windows(2).position(|two| two == b"*/")? + 1;
            }
            // What a descriptor is, with -y: `3</a, b (c)>`.
            b'<' if at > begin && (text[at - 1].is_ascii_digit() || text[at - 1] == b'D') => {
                let closing =
                    |two: &[u8]| two[0] == b'>' && matches!(two[1], b',' | b')' | b']' | b' ' | b'}');
                end = end.or(Some(at));
                at += text[at..].windows(2).position(closing)?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = argument(begin, end.unwrap_or(at));
                if !found.is_empty() || !last.is_empty() {
                    found.push(last);
                }
                return Some((found, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(argument(begin, end.unwrap_or(at)));
                (begin, end) = (at + 1, None);
            }
            _ => {}
        }
        // A remark within brackets is not the end of the argument.
        if depth > 0 {
            end = None;
        }
        at += 1;
    }
    None
}

/// Where a string ends that begins at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut next = at + 1;
    loop {
        match text.get(next)? {
            b'\\' => next += 2,
            b'"' => return Some(next),
            _ => next += 1,
        }
    }
}
