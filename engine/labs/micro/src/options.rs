//! Values of options: numbers and words. All errors are usage errors of one line.

use std::ffi::OsString;
use std::fmt::Display;

pub use lexopt::{Arg, Parser};

use crate::exit::Fail;

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
    use super::*;

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
        let fail = value(&mut parser, "-b", |text| number(text, 1, 9)).expect_err("there is none");
        assert_eq!(fail, Fail::usage("-b needs a value; --help lists the options"));
    }
}
