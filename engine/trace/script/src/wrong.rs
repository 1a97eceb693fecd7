//! What is wrong with a text, and where.

use std::fmt;

use crate::text::one_line;

/// The most of a line that is shown, in characters.
const WIDTH: usize = 100;

/// Why a text is no script: one line, then the line of the text and a mark below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Of what was read.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub what: String,
    /// The part of the line that is shown, and where the mark stands below it.
    shown: String,
    mark: usize,
}

impl Wrong {
    /// `at` is a byte of `text`, a line without its end.
    pub fn new(name: &str, line: usize, text: &[u8], at: usize, what: String) -> Wrong {
        let at = at.min(text.len());
        // Only what stands near is looked at: a line can be as long as the file.
        let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count();
        let column = count(&text[..at]);
        let begin = at.saturating_sub(WIDTH / 2);
        let end = text.len().min(begin + WIDTH);
        let (before, after) = (if begin > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
        let clean = |bytes: &[u8]| one_line(&String::from_utf8_lossy(bytes));
        let (left, right) = (clean(&text[begin..at]), clean(&text[at..end]));
        let mark = left.chars().count() + before.chars().count();
        let shown = format!("{before}{left}{right}{after}");
        Wrong { name: name.into(), line, column: column + 1, what, shown, mark }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        writeln!(out, "{}:{}:{}: {}", self.name, self.line, self.column, self.what)?;
        writeln!(out, "    {}", self.shown)?;
        write!(out, "    {:1$}^", "", self.mark)
    }
}
