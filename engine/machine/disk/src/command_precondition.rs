//! `etude-engine precondition`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Parser;
use etude_options::{Failed, values};
use etude_terminal::complain;

use crate::command::{Printed, mib, say};
use crate::device::open;
use crate::ending::catch_signals;
use crate::precondition::{Done, Wish, precondition};
use crate::steady::Rule;
use crate::{BLOCK, MOST_NS, machine};

/// Write over a device or a file until its throughput is steady. What is on it is lost
#[derive(Parser)]
#[command(
    after_help = "More: docs/howto/disk-state.md.\n\nexit status: 0 it is steady; 1 it is not, and time or bytes were used up; 2 usage; 5 \
                  the machine does not allow it; 128 + signal"
)]
struct Options {
    /// Write only the first so many bytes; make a file that large
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    size: Option<u64>,
    /// Discard all of it first
    #[arg(long)]
    trim: bool,
    /// Write the whole so often in sequence before rounds count
    #[arg(long, value_name = "N", value_parser = values::number(0.0..=1000.0), default_value = "2")]
    passes: f64,
    /// Rounds: sequential or random (default random)
    #[arg(long, value_name = "WORD", value_parser = ["sequential", "random"], default_value = "random")]
    pattern: String,
    /// Of each write, a multiple of 4096
    #[arg(long, value_name = "BYTES", value_parser = block, default_value = "128K")]
    write: u64,
    /// Seconds of a round
    #[arg(long, value_name = "S", value_parser = values::duration(1..=MOST_NS), default_value = "10")]
    round: u64,
    /// Rounds that must be steady (default 5)
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(2..=1000))]
    window: Option<usize>,
    /// No further apart than this share of their mean (default 20%)
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    range: Option<f64>,
    /// Rising or falling by no more than this (default 10%)
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    slope: Option<f64>,
    /// End after this time
    #[arg(long, value_name = "S", value_parser = values::duration(1..=MOST_NS), default_value = "3600")]
    seconds: u64,
    /// End after so many bytes
    #[arg(long, value_parser = values::size)]
    bytes: Option<u64>,
    /// Of the random places
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX), default_value = "1")]
    seed: u64,
    /// Also over a file system, or a file that is not empty; never over what is mounted
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    printed: Printed,
    #[arg(value_name = "DEVICE|FILE")]
    path: PathBuf,
}

/// `etude-engine precondition`; the exit status.
pub fn precondition_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine precondition", arguments, command)
}

fn command(options: Options) -> Result<u8, Failed> {
    let usual = Rule::default();
    let wish = Wish {
        trim: options.trim,
        block: options.write,
        random: options.pattern == "random",
        seed: options.seed,
        passes: options.passes,
        round_ns: options.round,
        rule: Rule {
            window: options.window.unwrap_or(usual.window),
            most_range: options.range.unwrap_or(usual.most_range),
            most_slope: options.slope.unwrap_or(usual.most_slope),
        },
        most_bytes: options.bytes.unwrap_or(u64::MAX),
        time_ns: options.seconds,
    };
    let path = &options.path;
    let device = open(path, options.size.map(|bytes| bytes / BLOCK * BLOCK), options.force)?;
    catch_signals();
    let shows = io::stderr().is_terminal();
    let done = precondition(&device, &wish, &mut |what, rate| {
        if shows {
            complain!("precondition: {what}: {:.1} MiB/s", mib(rate));
        }
    });
    let done = done.map_err(|error| machine(path.display(), &error))?;
    let members =
        serde_json::to_value(&done).ok().and_then(|found| found.as_object().cloned()).unwrap_or_default();
    say(options.printed.shape("preconditioning"), &members, || in_words(&done));
    let signal = done.ended.strip_prefix("signal ").and_then(|number| number.parse::<u8>().ok());
    Ok(signal.map_or(u8::from(!done.steady), |signal| 128 + signal))
}

fn block(text: &str) -> Result<u64, String> {
    let found = values::size(text)?;
    let good = found.is_multiple_of(BLOCK) && found <= 64 << 20;
    if good { Ok(found) } else { Err(format!("{text:?}: expected a multiple of 4096, at most 64M")) }
}

fn in_words(done: &Done) -> String {
    let last = done.last.map_or(String::new(), |seen| {
        format!(
            "; last {} rounds: {:.1} MiB/s, range {:.1}%, slope {:+.1}%",
            done.window,
            mib(seen.mean),
            seen.range * 100.0,
            seen.slope * 100.0
        )
    });
    let trimmed = match &done.why_not_trimmed {
        Some(why) => format!("not trimmed ({why}), "),
        None if done.trimmed => "trimmed, ".to_owned(),
        None => String::new(),
    };
    format!(
        "{}: {trimmed}{:.0} MiB written over {:.0} MiB in {:.1} s, {} rounds{last}",
        if done.steady { "steady".to_owned() } else { format!("not steady, ended by {}", done.ended) },
        mib(done.written_bytes as f64),
        mib(done.capacity_bytes as f64),
        done.seconds,
        done.series.len(),
    )
}
