//! `etude-engine monitor`.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use etude_micro::options::{Arg, Parser, number};

use crate::Wrong;
use crate::monitor::{Wish, monitor};

const HELP: &str = "\
Sample what the machine does, until standard input ends.

usage: etude-engine monitor --output FILE [options]

      --output FILE    write here; the file must not be there yet
      --every TIME     between two samples, 10ms to 1h (default 1s)
      --top N          the N processes that used most CPU time, 0 to 100 (default 5)
      --root DIR       read DIR/proc, DIR/sys and DIR/dev/kmsg instead of the machine's own
  -h, --help

It prints a line, monitoring, when it has begun. SIGTERM, SIGINT or the end of standard input end it with a last sample
and a line on what it cost itself. The file and its columns: docs/monitor.md.

exit status: 0; 2 usage; 5 FILE cannot be written, or there is no /proc
";

/// Runs it; the exit status.
pub fn monitor_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let done = match wish(arguments) {
        Ok(Some(wish)) => monitor(&wish),
        Ok(None) => {
            print!("{HELP}");
            Ok(())
        }
        Err(why) => Err((format!("{why}; see etude-engine monitor --help"), 2)),
    };
    done.map_or_else(
        |(line, code): Wrong| {
            eprintln!("etude-engine monitor: {line}");
            code
        },
        |()| 0,
    )
}

fn wish(arguments: impl Iterator<Item = OsString>) -> Result<Option<Wish>, String> {
    let said = |error: &dyn Display| error.to_string();
    let (mut output, mut every_ns, mut top, mut root) = (None, etude_clock::SECOND, 5, PathBuf::from("/"));
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| said(&error))? {
        match argument {
            Arg::Long("output") => output = Some(path("output", &mut parser)?),
            Arg::Long("root") => root = path("root", &mut parser)?,
            Arg::Long("every") => {
                every_ns = duration(&text("every", &mut parser)?).map_err(|why| format!("--every {why}"))?;
            }
            Arg::Long("top") => {
                let count =
                    number(&text("top", &mut parser)?, 0, 100).map_err(|why| format!("--top {why}"))?;
                top = count as usize;
            }
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            _ => return Err(said(&argument.unexpected())),
        }
    }
    let output = output.ok_or("--output is missing: where to write")?;
    Ok(Some(Wish { output, every_ns, top, root }))
}

fn path(name: &str, parser: &mut Parser) -> Result<PathBuf, String> {
    parser.value().map(PathBuf::from).map_err(|error| format!("--{name}: {error}"))
}

fn text(name: &str, parser: &mut Parser) -> Result<String, String> {
    let value = parser.value().map_err(|error| format!("--{name}: {error}"))?;
    value.into_string().map_err(|value| format!("--{name} {value:?}: expected text"))
}

/// `250ms`, `1s`, `0.5`, `2m`: a time between two samples, ns.
fn duration(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("{text:?}: expected a time from 10ms to 1h: a number with ms, s, m or h, or seconds");
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let unit_s = match &text[end..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = text[..end].parse::<f64>().map(|count| count * unit_s);
    let seconds = seconds.ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.map(|seconds| (seconds * 1e9).round() as u64).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(words: &[&str]) -> Result<Option<Wish>, String> {
        wish(words.iter().map(OsString::from))
    }

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("1", 1e9),
            ("1s", 1e9),
            ("250ms", 25e7),
            ("0.5s", 5e8),
            ("10ms", 1e7),
            ("1h", 36e11),
            ("2m", 12e10),
        ] {
            assert_eq!(duration(text), Ok(ns as u64), "{text}");
        }
        for text in ["", "s", "1 s", "-1s", "9ms", "61m", "1d", "1.1.1s", "NaN", "inf", "1e3", "٣s"] {
            assert!(duration(text).unwrap_err().contains("expected a time"), "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_is_understood_or_refused_in_one_line() {
        let wish =
            of(&["--output", "m.jsonl", "--every", "100ms", "--top=0", "--root", "/r"]).unwrap().unwrap();
        assert_eq!((wish.every_ns, wish.top, wish.root), (100_000_000, 0, PathBuf::from("/r")));
        assert_eq!(of(&["--help"]), Ok(None));
        for wrong in [
            &["--every", "1s"][..],
            &["--output", "a", "--top", "101"],
            &["--output"],
            &["--output", "a", "b"],
            &["--tops"],
        ] {
            assert_eq!(of(wrong).unwrap_err().lines().count(), 1, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_time_is_understood_or_refused(text in "[0-9.]{0,4}\\PC{0,3}", ms in 10u64..3_600_000) {
            let _ = duration(&text);
            prop_assert_eq!(duration(&format!("{ms}ms")), Ok(ms * 1_000_000));
        }
    }
}
