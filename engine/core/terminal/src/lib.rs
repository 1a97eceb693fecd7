//! Text for a terminal: lines as wide as it is, in the characters of its encoding, and none that would steer it.

use std::borrow::Cow;
use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::os::fd::AsRawFd;

/// Columns of a terminal that does not say how wide it is.
const USUAL: usize = 80;
/// Narrower terminals are written to as if they were so wide.
const LEAST: usize = 20;
/// The stand-in for a character where the encoding is ASCII.
const PLAIN: [(char, &str); 7] =
    [('µ', "u"), ('–', "-"), ('…', ".."), ('×', "x"), ('±', "+-"), ('≤', "<="), ('≥', ">=")];

/// The units that stay in the line of the number before them.
const UNITS: [&str; 6] = ["s", "ms", "µs", "us", "ns", "%"];

/// The width, encoding and abilities of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Its columns; none of what is no terminal, where no line is broken.
    pub width: Option<usize>,
    /// Whether it has nothing but ASCII.
    pub ascii: bool,
    /// Whether it draws over a line.
    pub obeys: bool,
}

impl Screen {
    /// The screen that an open stream and the environment tell.
    pub fn of(stream: &(impl IsTerminal + AsRawFd)) -> Screen {
        let width = stream.is_terminal().then(|| {
            let stated = env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&n| n > 0);
            stated.or_else(|| columns(stream)).unwrap_or(USUAL).max(LEAST)
        });
        let term = env::var("TERM").unwrap_or_default();
        let obeys = width.is_some() && !["", "dumb", "unknown"].contains(&&*term);
        Screen { width, ascii: is_ascii(|name| env::var(name).ok()), obeys }
    }

    /// The lines of a text, wrapped at blanks; further ones are indented by so many columns more than the first.
    pub fn wrapped(&self, text: &str, further: usize) -> String {
        let text = self.characters(text);
        let Some(width) = self.width else { return text };
        text.split_inclusive('\n').map(|line| wrapped(line, width, further)).collect()
    }

    /// The text, shortened to a line that can be drawn over.
    pub fn cut(&self, text: &str) -> String {
        let text = self.characters(text);
        match self.width {
            Some(width) if text.chars().count() >= width => {
                let dots = self.characters("…");
                text.chars().take(width - 1 - dots.chars().count()).collect::<String>() + &dots
            }
            _ => text,
        }
    }

    fn characters(&self, text: &str) -> String {
        let text = &*escaped(text);
        if !self.ascii || text.is_ascii() {
            return text.to_owned();
        }
        let instead = |c: char| PLAIN.iter().find(|(each, _)| *each == c).map(|(_, plain)| *plain);
        text.chars().map(|c| instead(c).map_or_else(|| c.to_string(), str::to_owned)).collect()
    }
}

/// Writes a line to standard error, wrapped where that is a terminal.
pub fn say(line: &str) {
    tell(&format!("{}\n", Screen::of(&io::stderr()).wrapped(line, 2)));
}

/// Writes text to standard error as it is. What cannot be written there, on a full device, cannot be reported either:
/// the work goes on, and `eprint!` would abort it.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Clears a line of progress on the terminal.
pub fn clear_line() {
    tell("\r\x1b[K");
}

/// Writes a line to standard error, escaped but not wrapped; takes what `format!` does.
#[macro_export]
macro_rules! complain {
    ($($parts:tt)*) => { $crate::tell(&format!("{}\n", $crate::escaped(&format!($($parts)*)))) };
}

/// The text with what would steer a terminal in the notation of JSON, so that a document of JSON stays the same;
/// line ends and tabs are kept. So does `etude/escaping.py`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(steers) {
        return text.into();
    }
    let mut found = String::with_capacity(2 * text.len());
    for character in text.chars() {
        if !steers(character) {
            found.push(character);
        } else if character == '\r' {
            found.push_str("\\r");
        } else if character < ' ' {
            write!(found, "\\x{:02x}", u32::from(character)).expect("a string grows");
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(found, "\\u{unit:04x}").expect("a string grows");
            }
        }
    }
    found.into()
}

/// Control characters, separators of lines, and marks that have no glyph, such as those of the direction of writing.
pub fn steers(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

/// A stream that escapes what is written to it, whole characters at a time.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.write_all(escaped(&String::from_utf8_lossy(text)).as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn columns(stream: &impl AsRawFd) -> Option<usize> {
    // SAFETY: winsize is plain numbers, and the kernel writes no more than one.
    let (done, size) = unsafe {
        let mut size: libc::winsize = mem::zeroed();
        (libc::ioctl(stream.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size), size)
    };
    (done == 0 && size.ws_col > 0).then(|| size.ws_col.into())
}

/// Whether the first locale that is set is C, which has no other characters.
fn is_ascii(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|name| !name.is_empty());
    matches!(locale.as_deref(), Some("C" | "POSIX"))
}

fn wrapped(line: &str, width: usize, further: usize) -> String {
    if line.trim_end().chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.chars().take_while(|&c| c == ' ').count();
    let further = (indent + further).min(width / 2);
    let mut lines = " ".repeat(indent);
    let mut used = indent;
    for (number, word) in words(line[indent..].trim_end()).iter().enumerate() {
        let wide = word.chars().count();
        if number > 0 && used + 1 + wide > width {
            lines.truncate(lines.trim_end().len());
            lines += &format!("\n{}", " ".repeat(further));
            used = further;
        } else if number > 0 {
            lines.push(' ');
            used += 1;
        }
        lines += word;
        used += wide;
    }
    lines + if line.ends_with('\n') { "\n" } else { "" }
}

/// The words between blanks; a number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = UNITS.contains(&word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%'));
        match found.last_mut().filter(|last| unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => *number += &format!(" {word}"),
            None => found.push(word.to_owned()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Screen = Screen { width: Some(20), ascii: false, obeys: true };

    #[test]
    fn lines_are_wrapped_at_blanks_and_further_ones_indented() {
        let text = "short\nthe quick brown fox jumps over it\n  and so do others here, too\n";
        let expected = "short\nthe quick brown fox\n  jumps over it\n  and so do others\n    here, too\n";
        assert_eq!(NARROW.wrapped(text, 2), expected);
        assert_eq!(Screen { width: None, ..NARROW }.wrapped(text, 2), text);
        assert_eq!(NARROW.wrapped("at most of it 18.05 µs.", 2), "at most of it\n  18.05 µs.");
        assert_eq!(NARROW.wrapped("all of these are 1.2 % of it", 2), "all of these are\n  1.2 % of it");
    }

    #[test]
    fn what_would_steer_a_terminal_is_written_out() {
        let nasty = "n\u{1b}]0;t\u{7}\r\u{9b}31m\u{2028}\u{202e}\u{e0041}";
        let shown = r"n\x1b]0;t\x07\r\u009b31m\u2028\u202e\udb40\udc41";
        assert_eq!(escaped(nasty), shown);
        assert_eq!(NARROW.cut(&nasty[..2]), r"n\x1b");
        assert_eq!(Screen { width: None, ..NARROW }.wrapped(nasty, 2), shown);
        let mut out = Escaping(Vec::new());
        out.write_all(nasty.as_bytes()).unwrap();
        assert_eq!(out.0, shown.as_bytes());
    }

    #[test]
    fn what_lays_out_a_text_is_kept() {
        for kept in ["two\nlines\t", "naïve 漢字 µ", "no\u{a0}break"] {
            assert_eq!(escaped(kept), kept);
        }
    }

    #[test]
    fn what_is_drawn_over_leaves_the_last_column_free() {
        assert_eq!(NARROW.cut("1234567890123456789"), "1234567890123456789");
        assert_eq!(NARROW.cut("12345678901234567890"), "123456789012345678…");
        assert_eq!(Screen { ascii: true, ..NARROW }.cut("µ2345678901234567890"), "u2345678901234567..");
    }

    #[test]
    fn a_locale_without_characters_gets_ascii() {
        let of = |name: &'static str, value: &'static str| {
            is_ascii(move |each| (each == name).then(|| value.to_owned()))
        };
        assert!(of("LC_ALL", "C") && of("LANG", "POSIX"));
        assert!(!of("LANG", "C.UTF-8") && !of("OTHER", "C"));
        assert_eq!(Screen { ascii: true, ..NARROW }.wrapped("1 µs – 2", 2), "1 us - 2");
    }
}
