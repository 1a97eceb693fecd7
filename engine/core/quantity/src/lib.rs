//! Quantities as text: durations, sizes, rates and shares, a number with a unit.
//!
//! The grammar is that of `src/etude/units/parsing.py`; `tests/data/vectors/quantities.jsonl` holds both to it, and
//! `docs/reference/quantities.md` describes it. All errors are one line with the text and what is expected, without the option.

const NS: u64 = 1;
const US: u64 = 1000 * NS;
const MS: u64 = 1000 * US;
const SECOND: u64 = 1000 * MS;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Each unit in ns, and its names.
const TIMES: [(u64, &str); 7] = [
    (NS, "ns nsec nsecs nanosecond nanoseconds"),
    (US, "us µs μs usec usecs microsecond microseconds"),
    (MS, "ms msec msecs millisecond milliseconds"),
    (SECOND, "s sec secs second seconds"),
    (MINUTE, "m min mins minute minutes"),
    (HOUR, "h hr hour hours"),
    (DAY, "d day days"),
];

/// Units of sizes that are not a letter with `iB`, `B` or nothing.
const SIZES: [(u64, &str); 4] = [
    (1, "B byte bytes Byte Bytes"),
    (1000, "kilobyte kilobytes Kilobytes"),
    (1_000_000, "megabyte megabytes Megabytes"),
    (1_000_000_000, "gigabyte gigabytes Gigabytes"),
];

/// Words for what a rate counts.
const COUNTED: &str = "1 op ops operation operations iter iters iteration iterations call calls req reqs request requests \
     event events item items transaction transactions query querys queries run runs alloc allocs allocation allocations";

const MOST_TEXT: usize = 64;
/// More decimal digits than these are dropped; times a day they still fit 128 bits.
const DIGITS: usize = 24;

/// `1 call`, `2 calls`, `3 processes`.
pub fn counted(count: u64, what: &str) -> String {
    let ending = match (count, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {what}{ending}")
}

/// Nanoseconds, to the nearest: `500ms`, `90s`, `4 min`, `2h`, `1-12:00:00`; `m` is minutes.
///
/// `bare`: the unit of a number without one.
///
/// # Errors
/// One line on what is expected.
pub fn duration(text: &str, bare: &str) -> Result<u64, String> {
    let seconds = if bare == "s" { ", or a number of seconds" } else { "" };
    let expected = format!("a duration such as 500ms, 90s, 4min or 2h{seconds}");
    if let Some(seconds) = clock(text) {
        return Ok(seconds * SECOND);
    }
    let (number, unit) = split(text).ok_or_else(|| wrong(text, &expected))?;
    let unit = named(&TIMES, unit.unwrap_or(bare)).ok_or_else(|| wrong(text, &expected))?;
    number.times(unit, true).ok_or_else(|| wrong(text, "at most 584 years"))
}

/// Bytes, 1 or more: `4096`, `64K` or `64KiB` (powers of 1024), `64kB` (powers of 1000), in any case.
///
/// A fraction of a byte is dropped.
///
/// # Errors
/// One line on what is expected.
pub fn size(text: &str) -> Result<u64, String> {
    let expected = "a size such as 4096, 64K or 64KiB (powers of 1024) or 64kB (of 1000)";
    let found = split(text).and_then(|(number, unit)| Some((number, size_unit(unit.unwrap_or("B"))?)));
    let (number, unit) = found.ok_or_else(|| wrong(text, expected))?;
    match number.times(unit, false).filter(|bytes| *bytes <= i64::MAX as u64) {
        Some(0) => Err(wrong(text, "1 B or more")),
        Some(bytes) => Ok(bytes),
        None => Err(wrong(text, "at most 9223372036854775807 B")),
    }
}

/// A fraction, 0 or more: `5%`, `5 %`, `0.05`.
///
/// `bare`: `1`, or `%` where a number alone is percent.
///
/// # Errors
/// One line on what is expected.
pub fn share(text: &str, bare: &str) -> Result<f64, String> {
    let such = if bare == "%" { "in percent such as 95 or 95%" } else { "such as 5% or 0.05" };
    let scale = |unit: &str| match unit {
        "1" => Some(1.0),
        "%" | "percent" | "Percent" | "pct" => Some(100.0),
        _ => None,
    };
    let found = split(text).and_then(|(number, unit)| Some(number.float()? / scale(unit.unwrap_or(bare))?));
    found.ok_or_else(|| wrong(text, &format!("a share {such}")))
}

/// How often a second: `200`, `5k`, `200/s`, `90 requests/min`; k, M and G are powers of 1000.
///
/// # Errors
/// One line on what is expected.
pub fn rate(text: &str) -> Result<f64, String> {
    let found = split(text).and_then(|(number, unit)| {
        let (times, over) = rate_unit(unit.unwrap_or(""))?;
        Some(number.float()? * times / over).filter(|rate| rate.is_finite())
    });
    found.ok_or_else(|| wrong(text, "a rate such as 200/s, 5k/s or 90/min"))
}

/// A size in the largest unit of which it is a whole number: `16KiB`, `1536B`.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let letters = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = letters.into_iter().find(|(power, _)| bytes != 0 && bytes.is_multiple_of(1 << power));
    unit.map_or(format!("{bytes}B"), |(power, name)| format!("{}{name}", bytes >> power))
}

/// A number of 0 or more, without its sign and underscores.
struct Number(String);

impl Number {
    /// None: too large.
    fn float(&self) -> Option<f64> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The number times a unit; None where that is too large. A float has 53 bits, which is too few for bytes.
    fn times(&self, unit: u64, nearest: bool) -> Option<u64> {
        let (mantissa, exponent) = self.0.split_once(['e', 'E']).unwrap_or((&self.0, "0"));
        let (whole, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, rest].concat();
        let digits = digits.trim_start_matches('0');
        let used = &digits[..digits.len().min(DIGITS)];
        let exponent = exponent.parse::<i32>().ok()? - rest.len() as i32 + (digits.len() - used.len()) as i32;
        if used.is_empty() {
            return Some(0);
        }
        let product = used.parse::<u128>().ok()? * u128::from(unit);
        let Some(power) = 10u128.checked_pow(exponent.unsigned_abs()) else {
            return if exponent < 0 { Some(0) } else { None };
        };
        let found = match exponent {
            0.. => product.checked_mul(power)?,
            _ => product / power + u128::from(nearest && product % power >= power.div_ceil(2)),
        };
        u64::try_from(found).ok()
    }
}

/// The number and the name of the unit; None for what is no number of 0 or more.
fn split(text: &str) -> Option<(Number, Option<&str>)> {
    if text.chars().count() >= MOST_TEXT {
        return None;
    }
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let mut end = digits(text, true);
    let mut some = end > 0;
    if text[end..].starts_with('.') {
        let decimals = digits(&text[end + 1..], false);
        some |= decimals > 0;
        end += 1 + decimals;
    }
    if !some {
        return None;
    }
    end += exponent(&text[end..]);
    let unit = text[end..].trim_start();
    Some((Number(text[..end].replace('_', "")), Some(unit).filter(|unit| !unit.is_empty())))
}

/// How many bytes of decimal digits the text begins with; one underscore may stand between two.
fn digits(text: &str, underscores: bool) -> usize {
    let text = text.as_bytes();
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while digit(end)
        || (underscores && end > 0 && text.get(end) == Some(&b'_') && digit(end - 1) && digit(end + 1))
    {
        end += 1;
    }
    end
}

/// How many bytes of an exponent of one to three digits the text begins with.
fn exponent(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    match digits(unsigned, false) {
        0 => 0,
        count => text.len() - unsigned.len() + count.min(3),
    }
}

/// Seconds of `[DAYS-]HOURS:MM:SS`.
fn clock(text: &str) -> Option<u64> {
    let text = text.trim();
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let [hours, minutes, seconds] = rest.split(':').collect::<Vec<_>>().try_into().ok()?;
    let most_59 = |text: &str| whole(text, 4).filter(|number| text.len() == 2 && *number < 60);
    Some(86400 * whole(days, 4)? + 3600 * whole(hours, 4)? + 60 * most_59(minutes)? + most_59(seconds)?)
}

fn whole(text: &str, most_digits: usize) -> Option<u64> {
    let plain = text.len() <= most_digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn named(table: &[(u64, &str)], name: &str) -> Option<u64> {
    table.iter().find(|(_, names)| names.split(' ').any(|known| known == name)).map(|(unit, _)| *unit)
}

fn size_unit(name: &str) -> Option<u64> {
    if let Some(unit) = named(&SIZES, name) {
        return Some(unit);
    }
    let (letter, end) = name.split_at_checked(1)?;
    let power = "kmgt".find(&letter.to_ascii_lowercase())? as u32 + 1;
    match end.to_ascii_lowercase().as_str() {
        "" | "ib" => Some(1024u64.pow(power)),
        "b" => Some(1000u64.pow(power)),
        _ => None,
    }
}

/// In times a second.
fn rate_unit(name: &str) -> Option<(f64, f64)> {
    let hertz = [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)];
    if let Some((_, times)) = hertz.into_iter().find(|(known, _)| *known == name) {
        return Some((times, 1.0));
    }
    let (above, below) = name.split_once('/').unwrap_or((name, "s"));
    let (above, below) = (above.trim(), below.trim());
    // `/m` could be a minute or a million.
    let ns = named(&TIMES, below).filter(|ns| *ns != DAY && below != "m")?;
    let times = match above {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ if name.contains('/') && COUNTED.split(' ').any(|word| word == above) => 1.0,
        _ => return None,
    };
    Some(if ns < SECOND { (times * (SECOND / ns) as f64, 1.0) } else { (times, (ns / SECOND) as f64) })
}

fn wrong(text: &str, expected: &str) -> String {
    let end = if text.chars().nth(MOST_TEXT).is_some() { "…" } else { "" };
    let text: String = text.chars().take(MOST_TEXT).collect();
    format!("{text:?}{end}: expected {expected}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_of_a_thing_has_no_ending() {
        assert_eq!([0, 1, 2].map(|count| super::counted(count, "call")), ["0 calls", "1 call", "2 calls"]);
        assert_eq!(super::counted(2, "process"), "2 processes");
    }

    proptest! {
        #[test]
        fn a_size_is_read_as_it_was_written(bytes in 1..=i64::MAX as u64) {
            prop_assert_eq!(size(&size_text(bytes)), Ok(bytes));
        }

        #[test]
        fn large_units_are_read_as_they_were_written(number in 1u64..1024, power in 1u32..5) {
            let text = size_text(number << (10 * power));
            prop_assert_eq!(size(&text), Ok(number << (10 * power)));
            prop_assert_eq!(size(&text.to_lowercase().replace("ib", "")), Ok(number << (10 * power)));
        }

        #[test]
        fn whole_nanoseconds_are_exact_in_every_unit(ns in 0..1u64 << 60) {
            for (unit, names) in TIMES {
                let text = format!("{}.{:018}", ns / unit, u128::from(ns % unit) * 10u128.pow(18) / u128::from(unit));
                let name = names.split(' ').next().expect("one");
                prop_assert_eq!(duration(&format!("{text}{name}"), "s"), Ok(ns));
            }
        }

        #[test]
        fn any_text_is_a_quantity_or_one_line(text in "\\PC*|[0-9.eE+_-]{0,9} ?[a-zA-Z%/µ]{0,7}|[0-9:-]{0,12}") {
            let errors = [duration(&text, "s").err(), size(&text).err(), share(&text, "1").err(), rate(&text).err()];
            for error in errors.into_iter().flatten() {
                prop_assert!(error.contains("expected") && !error.contains('\n'), "{}", error);
            }
            if let Ok(found) = size(&text) {
                prop_assert!(found > 0);
            }
        }
    }
}
