//! What options mean: sizes, numbers, words. All errors are usage errors of one line.

use std::ffi::OsString;
use std::fmt::Display;

pub use lexopt::{Arg, Parser};

use crate::exit::Fail;

const UNITS: [(&str, u64); 4] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];

/// A size of 1 byte or more: `16384`, `16K`, `16KiB`, `16k`. Units are powers of 1024, as those of the lab's programs.
///
/// # Errors
/// One line on what was expected, without the option's name.
pub fn size(text: &str) -> Result<u64, String> {
    let expected = |what: &str| {
        format!("{text:?} is {what}: expected bytes, or a number with K, M, G or T (powers of 1024)")
    };
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(expected(if text.starts_with('-') { "negative" } else { "not a size" }));
    }
    let factor = factor(unit).ok_or_else(|| expected("not a size"))?;
    let number: u64 = number.parse().map_err(|_| expected("too large"))?;
    match number.checked_mul(factor).filter(|bytes| *bytes <= i64::MAX as u64) {
        Some(0) => Err(expected("nothing")),
        Some(bytes) => Ok(bytes),
        None => Err(expected("too large")),
    }
}

fn factor(unit: &str) -> Option<u64> {
    if matches!(unit, "" | "B") {
        return Some(1);
    }
    let upper = unit.to_ascii_uppercase();
    let letter = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    UNITS.iter().find(|(name, _)| *name == letter).map(|(_, factor)| *factor)
}

/// A size as it is written in options: in the largest unit that divides it.
pub fn written(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    unit.map_or(bytes.to_string(), |(name, factor)| format!("{}{name}", bytes / factor))
}

/// A whole number within bounds.
///
/// # Errors
/// One line on what was expected, without the option's name.
pub fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    let bounds = if most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
    number.ok_or_else(|| format!("{text:?}: expected a whole number, {bounds}"))
}

/// One of some words; its index.
///
/// # Errors
/// One line with all of them, without the option's name.
pub fn word(text: &str, words: &[&str]) -> Result<usize, String> {
    let index = words.iter().position(|word| *word == text);
    index.ok_or_else(|| format!("{text:?}: expected {}", words.join(", ")))
}

/// The value of the option that was just read.
///
/// # Errors
/// A usage error that begins with the option's name.
pub fn value<T>(
    parser: &mut Parser,
    option: impl Display,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, Fail> {
    let text = parser
        .value()
        .map_err(|_| Fail::usage(format!("{option} needs a value; --help lists the options")))?;
    let text = text.into_string().map_err(|raw| Fail::usage(format!("{option} {raw:?}: is not UTF-8")))?;
    read(&text).map_err(|why| Fail::usage(format!("{option} {why}")))
}

/// An option or argument that is not known, as a usage error.
pub fn unexpected(argument: Arg<'_>) -> Fail {
    let what = match argument {
        Arg::Short(letter) => format!("there is no option -{letter}"),
        Arg::Long(name) => format!("there is no option --{name}"),
        Arg::Value(value) => format!("one argument too many: {value:?}"),
    };
    Fail::usage(format!("{what}; --help lists the options"))
}

/// What the parser itself refuses (`-q=x`), as a usage error.
pub fn refused(error: &lexopt::Error) -> Fail {
    Fail::usage(format!("{error}; --help lists the options"))
}

/// A parser of these arguments, the program's name not among them. `-b=1` is no way to write `-b 1`.
pub fn parser(arguments: impl Iterator<Item = OsString>) -> Parser {
    let mut parser = Parser::from_args(arguments);
    parser.set_short_equals(false);
    parser
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in
            [("1", 1), ("8B", 8), ("16384", 16384), ("16K", 16384), ("16KiB", 16384), ("16kb", 16384)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for (text, bytes) in [("16M", 1 << 24), ("1G", 1 << 30), ("1GiB", 1 << 30), ("2T", 1 << 41)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_what_was_expected() {
        for (text, what) in [
            ("0", "nothing"),
            ("0K", "nothing"),
            ("-1", "negative"),
            ("", "not a size"),
            ("K", "not a size"),
            ("1.5K", "not a size"),
            ("1 K", "not a size"),
            ("16Kx", "not a size"),
            ("1iB", "not a size"),
            ("+1", "not a size"),
            ("٣", "not a size"),
            ("99999999999999999999", "too large"),
            ("9223372036854775808", "too large"),
            ("16777216T", "too large"),
        ] {
            let why = size(text).expect_err(text);
            assert!(why.contains(&format!("is {what}: expected bytes")), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn a_size_is_read_as_it_was_written(bytes in 1..=i64::MAX as u64) {
            prop_assert_eq!(size(&written(bytes)), Ok(bytes));
        }

        #[test]
        fn large_units_are_read_as_they_were_written(number in 1u64..1024, unit in 0usize..4) {
            let (name, factor) = UNITS[unit];
            prop_assert_eq!(written(number * factor), format!("{number}{name}"));
            prop_assert_eq!(size(&format!("{number}{name}iB")), Ok(number * factor));
        }

        #[test]
        fn no_text_makes_it_fall(text in "\\PC*") {
            if let Ok(bytes) = size(&text) {
                prop_assert!(bytes > 0);
            }
        }
    }

    #[test]
    fn a_number_is_within_its_bounds() {
        assert_eq!(number("7", 1, u64::MAX), Ok(7));
        assert_eq!(number("0", 1, u64::MAX), Err("\"0\": expected a whole number, 1 or more".to_owned()));
        assert!(number("70000", 0, 65535).is_err_and(|why| why.ends_with("0 to 65535")));
        assert!(number("1e3", 1, 9).is_err());
    }

    #[test]
    fn an_option_without_its_value_is_named() {
        let mut parser = parser(["-b".into()].into_iter());
        assert!(matches!(parser.next(), Ok(Some(Arg::Short('b')))));
        let fail = value(&mut parser, "-b", size).expect_err("there is none");
        assert_eq!(fail, Fail::usage("-b needs a value; --help lists the options"));
    }
}
