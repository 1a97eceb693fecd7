//! `etude-engine monitor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use etude_clock::SECOND;
use etude_options::values;

use crate::monitor::{Wish, monitor};

/// Sample what the machine does, until standard input ends
#[derive(Debug, Parser)]
#[command(
    override_usage = "--output FILE [options]",
    after_help = "It prints a line, monitoring, when it has begun. SIGTERM, SIGINT or the end of standard input end it with a last \
                  sample and a line on what it cost itself. The file and its columns: docs/howto/monitor.md.\n\nexit status: 0; 2 usage; \
                  5 FILE cannot be written, or there is no /proc"
)]
struct Options {
    /// Write here; the file must not be there yet
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Between two samples, 10ms to 1h
    #[arg(long, value_name = "TIME", value_parser = values::duration(SECOND / 100..=3600 * SECOND))]
    #[arg(default_value = "1s")]
    every: u64,
    /// The N processes that used most CPU time, 0 to 100
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(0..=100), default_value = "5")]
    top: usize,
    /// Read DIR/proc, DIR/sys and DIR/dev/kmsg instead of the machine's own (default /)
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Runs it; the exit status.
pub fn monitor_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine monitor", arguments, |options: Options| {
        let Options { output, every: every_ns, top, root } = options;
        monitor(&Wish { output, every_ns, top, root }).map(|()| 0)
    })
}

#[cfg(test)]
mod tests {
    use etude_options::Ended;

    use super::*;

    fn of(words: &[&str]) -> Result<Options, Ended> {
        etude_options::read("", words.iter().map(OsString::from))
    }

    #[test]
    fn times_have_units() {
        let every = |text| of(&["--output", "m", "--every", text]).map(|options| options.every);
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
        for text in ["s", "-1s", "9ms", "61m", "1d", "1.1.1s", "NaN", "inf", "1e4", "٣s"] {
            let Err(Ended::Wrong(line)) = every(text) else { panic!("{text}") };
            assert!(line.contains("expected a duration"), "{line}");
        }
    }

    #[test]
    fn what_is_asked_for_is_understood_or_refused_in_one_line() {
        let found = of(&["--output", "m.jsonl", "--every", "100ms", "--top=0", "--root", "/r"]).unwrap();
        assert_eq!((found.every, found.top, found.root), (100_000_000, 0, PathBuf::from("/r")));
        for wrong in [
            &["--every", "1s"][..],
            &["--output", "a", "--top", "101"],
            &["--output"],
            &["--output", "a", "b"],
            &["--tops"],
        ] {
            let Err(Ended::Wrong(line)) = of(wrong) else { panic!("{wrong:?}") };
            assert_eq!(line.lines().count(), 1, "{wrong:?}");
        }
    }
}
