//! A line of a script: going along it, and the step that it holds.

use etude_calls::{Call, Kind, Outcome, Processor};
use etude_trace::{Text, words};
use smallvec::SmallVec;

use crate::model::{Action, Called, Step};
use crate::text::next_shown;

/// The step on a line, up to its end.
pub fn step(cursor: &mut Cursor) -> Result<Step, Fault> {
    let thread = thread(cursor)?;
    let begin = cursor.at();
    let word = cursor.word();
    if word.is_empty() || !cursor.eat(b'(') {
        cursor.back_to(begin);
        return Err(cursor.fault(
            "expected a step, such as close(3) = 0 or compute(0.001), or what is needed, such as file \"a\" 4096",
        ));
    }
    let mut numbered = |of: fn(u32) -> Action| {
        let thread = cursor.thread("expected the number of a thread, from 0")?;
        cursor.expect(b')', "expected )").map(|()| of(thread))
    };
    let action = match word {
        b"compute" => compute(cursor)?,
        b"start" => numbered(Action::Start)?,
        b"fork" => numbered(Action::Fork)?,
        b"wait" => numbered(Action::Wait)?,
        b"exec" => {
            cursor.expect(b')', "expected ): exec() has no arguments")?;
            Action::Exec
        }
        name => {
            let call = std::str::from_utf8(name).ok().and_then(Call::named);
            let what = || {
                format!(
                    "there is no call {}: docs/howto/scripts.md says which there are",
                    String::from_utf8_lossy(name)
                )
            };
            let call = call.ok_or_else(|| Fault { at: begin, what: what() })?;
            Action::Call(called(cursor, call)?)
        }
    };
    Ok(Step { thread, action })
}

/// `N: `, or nothing for thread 0.
fn thread(cursor: &mut Cursor) -> Result<u32, Fault> {
    if !cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        return Ok(0);
    }
    let number = cursor.thread("expected the number of a thread, from 0")?;
    cursor.expect(b':', "expected : behind the number of a thread")?;
    cursor.blanks();
    Ok(number)
}

fn compute(cursor: &mut Cursor) -> Result<Action, Fault> {
    cursor.blanks();
    let begin = cursor.at();
    let word = cursor.until(b")");
    let what = "expected seconds with a point and at most nine decimals, such as 0.000020";
    let ns = words::seconds_of(word).ok_or(Fault { at: begin, what: what.into() })?;
    cursor.expect(b')', "expected )")?;
    Ok(Action::Compute(ns))
}

/// What stands behind a call's opening parenthesis.
fn called(cursor: &mut Cursor, call: Call) -> Result<Called, Fault> {
    let (mut arguments, mut texts) = ([0; 6], SmallVec::new());
    let (mut at, mut count) = (0, 0);
    while let Some((index, kind)) = next_shown(call, &arguments, at) {
        cursor.blanks();
        let lacks = matches!(cursor.peek(), None | Some(b')'));
        if lacks || count > 0 && !cursor.eat(b',') {
            let lacking = format!("expected {}, argument {} of {}", expected(kind), count + 1, call.name());
            return Err(cursor.fault(&if lacks { lacking } else { "expected , or )".into() }));
        }
        match argument(cursor, kind)? {
            Value::Number(number) => arguments[index] = number,
            Value::Text(bytes) => texts.push(Text { argument: index as u8, bytes: bytes.into() }),
        }
        (at, count) = (index + 1, count + 1);
    }
    cursor.blanks();
    if cursor.peek() == Some(b',') {
        return Err(cursor.fault(&format!("expected ): {} has {count} arguments here", call.name())));
    }
    cursor.expect(b')', "expected )")?;
    call.normalise(Processor::X86_64, &mut arguments);
    cursor.expect(b'=', "expected = and what the call returned")?;
    let result = result(cursor, call)?;
    Ok(Called { call, arguments, texts, result, duration_ns: duration(cursor)? })
}

enum Value {
    Number(u64),
    Text(Vec<u8>),
}

fn argument(cursor: &mut Cursor, kind: Kind) -> Result<Value, Fault> {
    cursor.blanks();
    let begin = cursor.at();
    let wrong = |at| Fault { at, what: format!("expected {}", expected(kind)) };
    match (cursor.peek(), kind) {
        (Some(b'"'), Kind::Path | Kind::Name | Kind::Socket | Kind::Pair | Kind::OffsetAt | Kind::Range) => {
            let bytes = cursor.string()?;
            if matches!(kind, Kind::Path | Kind::Name) && bytes.contains(&0) {
                return Err(Fault { at: begin, what: "a path or a name has no zero byte in it".into() });
            }
            Ok(Value::Text(bytes))
        }
        (Some(b'['), Kind::Pair | Kind::OffsetAt) => {
            cursor.eat(b'[');
            let bytes = bracketed(kind, cursor.until(b"]")).ok_or_else(|| wrong(begin))?;
            cursor.expect(b']', "expected ]").map(|()| Value::Text(bytes))
        }
        (Some(b'{'), Kind::Range) => {
            let inside = cursor.until(b"}");
            cursor.expect(b'}', "expected }")?;
            let range = words::range_from(&[inside, b"}"].concat()).ok_or_else(|| wrong(begin))?;
            Ok(Value::Text(range.bytes().to_vec()))
        }
        _ => {
            let mut word = cursor.until(b",)");
            if word.starts_with(b"makedev(") {
                cursor.back_to(begin);
                word = cursor.until(b")");
                // The parenthesis is part of it.
                let end = cursor.eat(b')');
                let number = if end { makedev(kind, word) } else { None };
                return number.map(Value::Number).ok_or_else(|| wrong(begin));
            }
            number(kind, word).map(Value::Number).ok_or_else(|| wrong(begin))
        }
    }
}

fn makedev(kind: Kind, word: &[u8]) -> Option<u64> {
    (kind == Kind::Device).then(|| words::number_of(&[word, b")"].concat())).flatten()
}

/// `3, 4` or an offset, as the bytes that stood there.
fn bracketed(kind: Kind, inside: &[u8]) -> Option<Vec<u8>> {
    let whole = |word: &[u8]| std::str::from_utf8(word.trim_ascii()).ok()?.parse::<i64>().ok();
    match kind {
        Kind::Pair => {
            let comma = inside.iter().position(|byte| *byte == b',')?;
            let both = [&inside[..comma], &inside[comma + 1..]].map(|word| i32::try_from(whole(word)?).ok());
            Some([both[0]?, both[1]?].map(i32::to_le_bytes).concat())
        }
        _ => whole(inside).map(|offset| offset.to_le_bytes().to_vec()),
    }
}

/// An argument that is no text; None where it is none of its kind.
fn number(kind: Kind, word: &[u8]) -> Option<u64> {
    // Most arguments are these.
    let plain = || decimal(word).filter(|_| word.len() < 2 || word[0] != b'0');
    let first = *word.first()?;
    let named = !first.is_ascii_digit() && first != b'-';
    let value = match plain() {
        Some(number) => number,
        None if word.contains(&b' ') => return None,
        None => words::number_of(word)?,
    };
    let small = i32::try_from(value as i64).is_ok();
    let fits = match kind {
        Kind::DirFd => small && (!named || word == b"AT_FDCWD"),
        Kind::Fd | Kind::Int => small && !named,
        Kind::Id => (small || u32::try_from(value).is_ok()) && !named,
        Kind::Size => !named && first != b'-',
        Kind::Offset => !named && (first != b'-' || (value as i64) < 0) && (first == b'-' || value < 1 << 63),
        Kind::Count | Kind::Device => u32::try_from(value).is_ok() && !named,
        Kind::Flags(_) | Kind::Choice(_) => u32::try_from(value).is_ok() && first != b'-',
        Kind::Mode => u16::try_from(value).is_ok() && first != b'-',
        _ => !named || word == b"NULL",
    };
    fits.then_some(value)
}

/// What an argument of a kind looks like.
fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Fd => "a descriptor, such as 3",
        Kind::DirFd => "a directory's descriptor, or AT_FDCWD",
        Kind::Path => "a path in quotes",
        Kind::Name => "a name in quotes",
        Kind::Size => "a number of bytes, such as 4096",
        Kind::Offset => "a place in a file in bytes, such as 4096",
        Kind::OffsetAt => "NULL, or a place in a file in bytes, such as [4096]",
        Kind::Int => "a number of 32 bits, such as -1",
        Kind::Count => "a number from 0 to 4294967295",
        Kind::Address => "NULL, or a place in memory, such as 0x7f0000001000",
        Kind::Flags(_) => "flags, such as O_RDONLY or names joined by |",
        Kind::Choice(_) => "one of the names of this argument, such as SEEK_SET, or a number",
        Kind::Mode => "permissions, such as 0644",
        Kind::Id => "a user or a group by number, or -1",
        Kind::Device => "a device, such as makedev(0x1, 0x3)",
        Kind::Pair => "two descriptors, such as [3, 4]",
        Kind::Range => {
            "NULL, or a range, such as {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=4096}; a length of 0 is up to the end"
        }
        Kind::Socket => "NULL, or an address in quotes",
        Kind::Buffer | Kind::Iovec | Kind::Pointer | Kind::Command | Kind::Unused => "nothing",
    }
}

fn result(cursor: &mut Cursor, call: Call) -> Result<i64, Fault> {
    cursor.blanks();
    let begin = cursor.at();
    let what = match call.row().outcome {
        Outcome::Descriptor => "expected what it returned: a descriptor, or an error, such as -1 ENOENT",
        Outcome::Address => {
            "expected what it returned: a place, such as 0x7f0000001000, or an error, such as -1 ENOMEM"
        }
        _ => "expected what it returned: a number, or an error, such as -1 ENOENT",
    };
    let word = cursor.until(b" \t<#");
    if word == b"-1" {
        cursor.blanks();
        let name = cursor.at();
        return words::error(cursor.word()).ok_or(Fault {
            at: name,
            what: "expected the name of an error behind -1, such as ENOENT".into(),
        });
    }
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let number = match decimal(digits) {
        Some(number) if digits.len() == word.len() => i64::try_from(number).ok(),
        Some(number) => 0_i64.checked_sub_unsigned(number),
        // A place may have its highest bit set.
        None if digits.starts_with(b"0x") && digits.len() == word.len() => {
            words::number_of(digits).map(|number| number as i64)
        }
        None => None,
    };
    number.ok_or(Fault { at: begin, what: what.into() })
}

/// `<0.000004000>`, or nothing.
fn duration(cursor: &mut Cursor) -> Result<Option<u64>, Fault> {
    cursor.blanks();
    if !cursor.eat(b'<') {
        return Ok(None);
    }
    let begin = cursor.at();
    let word = cursor.until(b">");
    let what = "expected seconds with a point and at most nine decimals, such as 0.000004000";
    let ns = words::seconds_of(word).ok_or(Fault { at: begin, what: what.into() })?;
    cursor.expect(b'>', "expected >")?;
    Ok(Some(ns))
}

/// A place in a line.
pub struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

/// An error at a byte of the line.
#[derive(Debug)]
pub struct Fault {
    pub at: usize,
    pub what: String,
}

impl<'a> Cursor<'a> {
    pub fn new(line: &'a [u8]) -> Cursor<'a> {
        Cursor { line, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    pub fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    pub fn at_end(&self) -> bool {
        self.at == self.line.len()
    }

    pub fn fault(&self, what: &str) -> Fault {
        Fault { at: self.at, what: what.into() }
    }

    pub fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    pub fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Passes over blanks and this byte.
    pub fn expect(&mut self, byte: u8, what: &str) -> Result<(), Fault> {
        self.blanks();
        if self.eat(byte) { Ok(()) } else { Err(self.fault(what)) }
    }

    /// Letters, digits and low lines from here on; it can be empty.
    pub fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    pub fn keyword(&mut self, keyword: &str, what: &str) -> Result<(), Fault> {
        self.blanks();
        let begin = self.at;
        if self.word() == keyword.as_bytes() {
            return Ok(());
        }
        Err(Fault { at: begin, what: what.into() })
    }

    /// Passes over blanks and up to one of `ends`, or to the end; blanks at its end are not part of it.
    pub fn until(&mut self, ends: &[u8]) -> &'a [u8] {
        self.blanks();
        let rest = self.rest();
        let end = rest.iter().position(|byte| ends.contains(byte)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim_ascii_end()
    }

    /// A number of bytes.
    pub fn bytes(&mut self, what: &str) -> Result<u64, Fault> {
        self.blanks();
        let begin = self.at;
        let word = self.word();
        let number = if word.first().is_some_and(u8::is_ascii_digit) { words::number_of(word) } else { None };
        number.ok_or(Fault { at: begin, what: what.into() })
    }

    /// The number of a thread.
    pub fn thread(&mut self, what: &str) -> Result<u32, Fault> {
        self.blanks();
        let begin = self.at;
        decimal(self.word())
            .and_then(|number| u32::try_from(number).ok())
            .ok_or(Fault { at: begin, what: what.into() })
    }

    /// A text in quotes, whose first quote is here.
    pub fn string(&mut self) -> Result<Vec<u8>, Fault> {
        match words::string_of(self.rest()) {
            Some((bytes, rest)) => {
                self.at = self.line.len() - rest.len();
                Ok(bytes)
            }
            None => {
                Err(self.fault("this text has no end: expected a \" behind it, with \\\" for one within it"))
            }
        }
    }

    /// Nothing more but a remark.
    pub fn end(&mut self) -> Result<(), Fault> {
        self.blanks();
        match self.peek() {
            None | Some(b'#') => Ok(()),
            Some(_) => Err(self.fault("expected the end of the line")),
        }
    }
}

/// Digits only.
fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}
