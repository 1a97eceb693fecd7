//! Values of options, for `value_parser`; errors are one line with the text and what was expected, without the option.

use std::ops::RangeInclusive;

pub use etude_quantity::size;

const SECOND: u64 = 1_000_000_000;

/// A whole number within bounds.
pub fn whole<T: TryFrom<u64>>(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let found = text.parse().ok().filter(|found| bounds.contains(found));
        let expected = || match (bounds.start(), bounds.end()) {
            (least, &u64::MAX) => format!("{text:?}: expected a whole number, {least} or more"),
            (least, most) => format!("{text:?}: expected a whole number, {least} to {most}"),
        };
        found.and_then(|found| T::try_from(found).ok()).ok_or_else(expected)
    }
}

/// A number within bounds.
pub fn number(bounds: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let found = text.parse().ok().filter(|found| bounds.contains(found));
        let expected = || match (bounds.start(), bounds.end()) {
            (least, &f64::MAX) => format!("{text:?}: expected a number, {least} or more"),
            (least, most) => format!("{text:?}: expected a number, {least} to {most}"),
        };
        found.ok_or_else(expected)
    }
}

/// A number above 0.
pub fn positive(most: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let found = text.parse().ok().filter(|found| *found > 0.0 && *found <= most);
        let most = if most < f64::MAX { format!(", at most {most}") } else { String::new() };
        found.ok_or_else(|| format!("{text:?}: expected a number above 0{most}"))
    }
}

/// A duration within bounds, ns; a number without a unit is seconds.
pub fn duration(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let found = etude_quantity::duration(text, "s")?;
        let (least, most) = (time(*bounds.start()), time(*bounds.end()));
        let within = bounds.contains(&found);
        if within { Ok(found) } else { Err(format!("{text:?}: expected a duration from {least} to {most}")) }
    }
}

/// A duration as [`duration`] has it, or 0.
pub fn duration_or_0(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    let positive = duration(bounds);
    move |text| match etude_quantity::duration(text, "s")? {
        0 => Ok(0),
        _ => positive(text).map_err(|why| why.replace("expected", "expected 0, or")),
    }
}

/// A share above 0, at most 1: `80%` or `0.8`.
pub fn share(text: &str) -> Result<f64, String> {
    let found = etude_quantity::share(text, "1")?;
    let good = found > 0.0 && found <= 1.0;
    if good { Ok(found) } else { Err(format!("{text:?}: expected a share above 0, at most 100%")) }
}

/// A share in percent, from 0.
pub fn percent(text: &str) -> Result<f64, String> {
    etude_quantity::share(text, "%")
}

/// The shortest text of a whole number of nanoseconds.
fn time(ns: u64) -> String {
    let units = [
        (3600 * SECOND, "h"),
        (60 * SECOND, "min"),
        (SECOND, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
        (1, "ns"),
    ];
    let (unit, name) = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}
