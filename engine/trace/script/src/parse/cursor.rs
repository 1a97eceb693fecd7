//! Going along a line.

use etude_trace::words;

/// A place in a line.
pub struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

/// What is wrong at a byte of the line.
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
pub fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}
