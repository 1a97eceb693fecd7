//! Values of options, each with one line for what it cannot be.

use std::path::PathBuf;
use std::str::FromStr;

use etude_clock::SECOND;
use lexopt::Parser;

pub(crate) fn text(name: &str, parser: &mut Parser) -> Result<String, String> {
    parser.value().and_then(lexopt::ValueExt::string).map_err(|error| format!("--{name}: {error}"))
}

pub(crate) fn path(name: &str, parser: &mut Parser) -> Result<PathBuf, String> {
    let value = parser.value().map_err(|error| format!("--{name}: {error}"))?;
    if value.is_empty() { Err(format!("--{name} \"\": expected a path")) } else { Ok(value.into()) }
}

pub(crate) fn read<T: FromStr>(name: &str, parser: &mut Parser, expected: &str) -> Result<T, String> {
    let text = text(name, parser)?;
    text.parse().map_err(|_| format!("--{name} {text:?}: expected {expected}"))
}

/// One of these words.
pub(crate) fn one_of<T: Copy>(name: &str, parser: &mut Parser, known: &[(&str, T)]) -> Result<T, String> {
    let text = text(name, parser)?;
    let found = known.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
    found.ok_or_else(|| format!("--{name} {text:?}: expected {}", words.join(" or ")))
}

pub(crate) fn whole(name: &str, parser: &mut Parser, least: usize, most: usize) -> Result<usize, String> {
    let text = text(name, parser)?;
    let found = text.parse().ok().filter(|found| (least..=most).contains(found));
    let bound = if most == usize::MAX { String::new() } else { format!(", {most} at most") };
    found.ok_or_else(|| format!("--{name} {text:?}: expected a whole number, {least} or more{bound}"))
}

pub(crate) fn number(
    name: &str,
    parser: &mut Parser,
    expected: &str,
    good: impl Fn(f64) -> bool,
) -> Result<f64, String> {
    let text = text(name, parser)?;
    let found = text.parse().ok().filter(|found: &f64| found.is_finite() && good(*found));
    found.ok_or_else(|| format!("--{name} {text:?}: expected {expected}"))
}

/// A duration, as ns; `none`: 0 is allowed. `bare`: the unit of a number without one.
pub(crate) fn time(name: &str, parser: &mut Parser, none: bool, bare: &str) -> Result<u64, String> {
    let text = text(name, parser)?;
    let found = etude_quantity::duration(&text, bare).map_err(|why| format!("--{name} {why}"))?;
    let good = found <= 1_000_000 * SECOND && (found >= SECOND / 1000 || none && found == 0);
    let expected = if none { "0, or a duration of 1ms or more" } else { "a duration of 1ms or more" };
    if good { Ok(found) } else { Err(format!("--{name} {text:?}: expected {expected}")) }
}
