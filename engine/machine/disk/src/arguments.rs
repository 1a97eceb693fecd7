//! Options of these commands: what is wrong with one is said in a line that begins with its name.

use std::ffi::OsString;

use etude_clock::SECOND;
use etude_micro::options::{Arg, Parser};
use etude_terminal::complain;

use crate::Wrong;

const MOST_NS: u64 = 10_000_000 * SECOND;

/// Ends a command: the exit status.
pub fn answer(verb: &str, done: Result<u8, Wrong>) -> u8 {
    done.unwrap_or_else(|(line, code)| {
        complain!("etude-engine {verb}: {line}");
        code
    })
}

pub fn usage(verb: &str, what: impl std::fmt::Display) -> Wrong {
    (format!("{what}; see etude-engine {verb} --help"), 2)
}

/// Each option by its name, `-h` being `help`; paths have none.
pub fn each(
    verb: &str,
    arguments: impl Iterator<Item = OsString>,
    mut take: impl FnMut(Option<&str>, &mut dyn FnMut() -> Result<OsString, String>) -> Result<bool, String>,
) -> Result<(), Wrong> {
    let mut parser = Parser::from_args(arguments);
    loop {
        let (name, value) = match parser.next().map_err(|error| usage(verb, error))? {
            None => return Ok(()),
            Some(Arg::Short('h')) => (Some("help".to_owned()), None),
            Some(Arg::Long(name)) => (Some(name.to_owned()), None),
            Some(Arg::Value(value)) => (None, Some(value)),
            Some(other @ Arg::Short(_)) => return Err(usage(verb, other.unexpected())),
        };
        let mut value = value;
        let mut next = || match value.take() {
            Some(value) => Ok(value),
            None => parser.value().map_err(|_| "expected a value behind it".to_owned()),
        };
        let shown = name.as_ref().map_or(String::new(), |name| format!("--{name}: "));
        match take(name.as_deref(), &mut next) {
            Ok(true) => {}
            Ok(false) => {
                return Err(usage(verb, format!("there is no option --{}", name.unwrap_or_default())));
            }
            Err(why) => return Err(usage(verb, format!("{shown}{why}"))),
        }
    }
}

pub fn text(value: OsString) -> Result<String, String> {
    value.into_string().map_err(|value| format!("{value:?}: expected text"))
}

pub fn bytes(value: OsString) -> Result<u64, String> {
    etude_quantity::size(&text(value)?)
}

pub fn whole(value: OsString, least: u64, most: u64) -> Result<u64, String> {
    etude_micro::options::number(&text(value)?, least, most)
}

/// `80%` or `0.8`.
pub fn share(value: OsString) -> Result<f64, String> {
    share_of(&text(value)?)
}

fn share_of(text: &str) -> Result<f64, String> {
    let found = etude_quantity::share(text, "1")?;
    let good = found > 0.0 && found <= 1.0;
    if good { Ok(found) } else { Err(format!("{text:?}: expected a share above 0 and at most 100%")) }
}

/// A number above 0.
pub fn number(value: OsString, most: f64) -> Result<f64, String> {
    let text = text(value)?;
    let found = text.parse::<f64>().ok().filter(|found| *found > 0.0 && *found <= most);
    found.ok_or_else(|| format!("{text:?}: expected a number above 0 and at most {most}"))
}

/// A duration above 0, ns.
pub fn seconds(value: OsString) -> Result<u64, String> {
    let text = text(value)?;
    let found = etude_quantity::duration(&text, "s")?;
    let good = (1..=MOST_NS).contains(&found);
    if good { Ok(found) } else { Err(format!("{text:?}: expected a duration above 0, at most 10000000s")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_level_is_a_share_or_a_percentage() {
        assert_eq!((share_of("80%"), share_of("0.8"), share_of("1")), (Ok(0.8), Ok(0.8), Ok(1.0)));
        for wrong in ["0", "0%", "101%", "80", "-1%", "", "%", "nan", "inf", "150%"] {
            assert!(share_of(wrong).is_err_and(|why| why.contains("expected a share")), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fall(text in "\\PC*") {
            if let Ok(found) = share_of(&text) {
                prop_assert!(found > 0.0 && found <= 1.0);
            }
        }
    }
}
