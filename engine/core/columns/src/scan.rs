//! JSON, byte by byte: strict, without copies, one line at a time.
//!
//! A newline is no blank here. It ends a line wherever it stands, so that lines need not be looked for first.

use std::borrow::Cow;

/// What is wrong with a line.
pub type Wrong = &'static str;

const NO_JSON: Wrong = "it is no JSON";
const DEEPEST: usize = 1024;

/// A place in a text that ends with a newline.
pub struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    pub bytes: &'a [u8],
    escaped: bool,
}

/// A number as it stands, and its digits as far as they fit.
pub struct Number<'a> {
    text: &'a [u8],
    /// No point and no exponent.
    whole: bool,
    negative: bool,
    digits: u64,
    /// Whether `digits` are all.
    exact: bool,
    /// Power of ten to multiply the digits by.
    exponent: i64,
}

impl<'a> Scan<'a> {
    /// Begins at `at`. The text ends with a newline.
    pub fn new(text: &'a [u8], at: usize) -> Self {
        debug_assert_eq!(text.last(), Some(&b'\n'));
        Scan { text, at }
    }

    /// Where it is.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Back, or forward, to a place.
    pub fn go(&mut self, at: usize) {
        self.at = at;
    }

    /// The text from a place up to here.
    pub fn since(&self, from: usize) -> &'a [u8] {
        &self.text[from..self.at]
    }

    /// The next byte; a newline at the end.
    #[inline]
    pub fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(b'\n')
    }

    /// Passes exactly these bytes, if they are next.
    #[inline]
    pub fn eat(&mut self, expected: &[u8]) -> bool {
        let there = self.text[self.at..].starts_with(expected);
        self.at += if there { expected.len() } else { 0 };
        there
    }

    /// Passes blanks.
    #[inline]
    pub fn blank(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Passes blanks and then this byte, if it is there.
    #[inline]
    pub fn has(&mut self, expected: u8) -> bool {
        self.blank();
        let there = self.byte() == expected;
        self.at += usize::from(there);
        there
    }

    /// Passes blanks and then this byte.
    #[inline]
    pub fn need(&mut self, expected: u8) -> Result<(), Wrong> {
        if self.has(expected) { Ok(()) } else { Err(NO_JSON) }
    }

    /// Passes blanks and the line's end.
    pub fn end(&mut self) -> Result<(), Wrong> {
        self.need(b'\n')
    }

    /// A string; blanks may stand before it.
    #[inline]
    pub fn string(&mut self) -> Result<Raw<'a>, Wrong> {
        self.need(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_bytes(&self.text[self.at..]);
            match self.byte() {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(NO_JSON),
            }
        }
        let bytes = self.since(start);
        self.at += 1;
        Ok(Raw { bytes, escaped })
    }

    fn escape(&mut self) -> Result<(), Wrong> {
        self.at += 1;
        let kind = self.byte();
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => match self.four()? {
                0xD800..=0xDBFF if self.eat(b"\\u") && (0xDC00..=0xDFFF).contains(&self.four()?) => Ok(()),
                0xD800..=0xDFFF => Err(NO_JSON), // half of a pair
                _ => Ok(()),
            },
            _ => Err(NO_JSON),
        }
    }

    fn four(&mut self) -> Result<u32, Wrong> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(NO_JSON)?;
        self.at += 4;
        digits
            .iter()
            .try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
            .ok_or(NO_JSON)
    }

    /// A number; no blank before it.
    #[inline]
    pub fn number(&mut self) -> Result<Number<'a>, Wrong> {
        let start = self.at;
        let negative = self.eat(b"-");
        let first = self.at;
        let mut digits = 0u64;
        let mut count = self.digits(&mut digits);
        if count == 0 || (count > 1 && self.text[first] == b'0') {
            return Err(NO_JSON);
        }
        let mut exponent = 0i64;
        let mut whole = true;
        if self.byte() == b'.' {
            self.at += 1;
            whole = false;
            let decimals = self.digits(&mut digits);
            if decimals == 0 {
                return Err(NO_JSON);
            }
            exponent = -(decimals as i64);
            count += decimals;
        }
        if matches!(self.byte(), b'e' | b'E') {
            self.at += 1;
            whole = false;
            let down = self.byte() == b'-';
            self.at += usize::from(matches!(self.byte(), b'+' | b'-'));
            let mut power = 0u64;
            let length = self.digits(&mut power);
            if length == 0 {
                return Err(NO_JSON);
            }
            let power = if length > 9 { 1_000_000_000 } else { power as i64 };
            exponent += if down { -power } else { power };
        }
        Ok(Number { text: self.since(start), whole, negative, digits, exact: count <= 19, exponent })
    }

    /// Passes digits and adds them to a number, which is wrong where there are more than 19; how many they were.
    #[inline]
    fn digits(&mut self, value: &mut u64) -> usize {
        let start = self.at;
        while self.byte().is_ascii_digit() {
            *value = value.wrapping_mul(10).wrapping_add(u64::from(self.byte() - b'0'));
            self.at += 1;
        }
        self.at - start
    }

    /// Passes a value of any kind, and checks that it is one. Blanks may stand before it.
    pub fn skip(&mut self) -> Result<(), Wrong> {
        self.skip_within(0)
    }

    fn skip_within(&mut self, depth: usize) -> Result<(), Wrong> {
        self.blank();
        match self.byte() {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number()?.finite(),
            b't' if self.eat(b"true") => Ok(()),
            b'f' if self.eat(b"false") => Ok(()),
            b'n' if self.eat(b"null") => Ok(()),
            b'[' | b'{' if depth >= DEEPEST => Err("it is nested too deeply"),
            b'[' => self.items(|scan| scan.skip_within(depth + 1)),
            b'{' => self.members(|scan, _| scan.skip_within(depth + 1)),
            _ => Err(NO_JSON),
        }
    }

    /// A list, whose items `each` passes.
    pub fn items(&mut self, mut each: impl FnMut(&mut Self) -> Result<(), Wrong>) -> Result<(), Wrong> {
        self.need(b'[')?;
        if self.has(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.has(b']') {
                return Ok(());
            }
            self.need(b',')?;
        }
    }

    /// An object, whose values `each` passes.
    pub fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, Raw<'a>) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.need(b'{')?;
        if self.has(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.need(b':')?;
            each(self, name)?;
            if self.has(b'}') {
                return Ok(());
            }
            self.need(b',')?;
        }
    }
}

impl<'a> Raw<'a> {
    /// The text that is meant.
    pub fn text(&self) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(self.bytes);
        if !self.escaped {
            return text;
        }
        // The scanner has passed each of its escapes.
        Cow::Owned(serde_json::from_str(&format!("\"{text}\"")).unwrap_or_default())
    }

    /// Whether it means this text.
    #[inline]
    pub fn is(&self, text: &str) -> bool {
        if self.escaped { self.text() == text } else { self.bytes == text.as_bytes() }
    }
}

/// Powers of ten that a double holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

impl Number<'_> {
    /// The nearest double.
    #[inline]
    pub fn real(&self) -> Result<f64, Wrong> {
        let ten = usize::try_from(self.exponent.unsigned_abs()).unwrap_or(usize::MAX);
        // Of two doubles that are exact the quotient is the nearest (Clinger 1990).
        if self.exact && self.digits <= 1 << 53 && ten < TENS.len() {
            let digits = self.digits as f64;
            let size = if self.exponent < 0 { digits / TENS[ten] } else { digits * TENS[ten] };
            return Ok(if self.negative { -size } else { size });
        }
        let value: f64 =
            std::str::from_utf8(self.text).ok().and_then(|text| text.parse().ok()).ok_or(NO_JSON)?;
        if value.is_finite() { Ok(value) } else { Err("a number in it is too large") }
    }

    /// Whether it is one that a double can hold.
    #[inline]
    pub fn finite(&self) -> Result<(), Wrong> {
        if self.exact && self.exponent < 200 { Ok(()) } else { self.real().map(|_| ()) }
    }

    /// The count that it is, if it is one.
    #[inline]
    pub fn count(&self) -> Option<i64> {
        let fits = self.whole && self.exact && (!self.negative || self.digits == 0);
        if fits { i64::try_from(self.digits).ok() } else { None }
    }

    /// Whether it is a whole number of 64 bits.
    pub fn is_whole(&self) -> bool {
        let text = std::str::from_utf8(self.text).unwrap_or_default();
        self.whole && (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok())
    }
}

/// How many bytes there are before the first quote, backslash or control character: eight at a time.
#[inline]
fn plain_bytes(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut passed = 0;
    for eight in text.chunks_exact(8) {
        let word = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) | control;
        if found != 0 {
            // The lowest is exact: a borrow can only reach bytes above one that was found.
            return passed + found.trailing_zeros() as usize / 8;
        }
        passed += 8;
    }
    let rest = &text[passed..];
    passed + rest.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(rest.len())
}
