//! `etude-engine monitor`.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use etude_clock::SECOND;
use etude_micro::options::{Arg, Parser, number};
use etude_quantity::duration;
use etude_terminal::complain;

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
            complain!("etude-engine monitor: {line}");
            code
        },
        |()| 0,
    )
}

fn wish(arguments: impl Iterator<Item = OsString>) -> Result<Option<Wish>, String> {
    let said = |error: &dyn Display| error.to_string();
    let (mut output, mut every_ns, mut top, mut root) = (None, SECOND, 5, PathBuf::from("/"));
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| said(&error))? {
        match argument {
            Arg::Long("output") => output = Some(path("output", &mut parser)?),
            Arg::Long("root") => root = path("root", &mut parser)?,
            Arg::Long("every") => {
                every_ns = every(&text("every", &mut parser)?).map_err(|why| format!("--every {why}"))?;
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

/// A time between two samples, ns.
fn every(text: &str) -> Result<u64, String> {
    let found = duration(text, "s")?;
    let good = (SECOND / 100..=3600 * SECOND).contains(&found);
    if good { Ok(found) } else { Err(format!("{text:?}: expected a duration from 10ms to 1h")) }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(every(text), Ok(ns as u64), "{text}");
        }
        for text in ["", "s", "-1s", "9ms", "61m", "1d", "1.1.1s", "NaN", "inf", "1e4", "٣s"] {
            assert!(every(text).unwrap_err().contains("expected a duration"), "{text}");
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
}
