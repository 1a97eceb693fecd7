//! `etude-engine age`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Parser;
use etude_clock::{SECOND, monotonic_ns};
use etude_options::{Failed, values};
use etude_terminal::{clear_line, tell};
use serde_json::{Map, Value};

use crate::MOST_NS;
use crate::age::{PLACE, Wish, age, remove};
use crate::command::{Printed, mib, say, status};
use crate::ending::catch_signals;

/// Age the file system that DIR is on: files are made, grow in turn and are deleted, in a history that depends on the seed
/// alone
#[derive(Parser)]
#[command(
    override_usage = "DIR [options]\n--remove DIR",
    after_help = "All of it is in DIR/etude-aged, with a manifest.json that says what was done. A signal ends it where it is, and \
                  what it has made stays; the manifest then says that it is not complete. More: docs/howto/disk-state.md.\n\nexit \
                  status: 0; 1 the time was over; 2 usage; 5 the machine does not allow it; 128 + signal"
)]
struct Options {
    /// How full it is at the end, as df counts it: 80% or 0.8
    #[arg(long, value_name = "SHARE", value_parser = values::share, default_value = "80%")]
    to: f64,
    /// Write so often its capacity
    #[arg(long, value_name = "N", value_parser = values::positive(1e4), default_value = "2")]
    times: f64,
    /// Or until a new file would have so many fragments a MiB
    #[arg(long, value_name = "N", value_parser = values::positive(256.0))]
    fragments: Option<f64>,
    /// Of the history
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX), default_value = "1")]
    seed: u64,
    /// How full it becomes at times
    #[arg(long, value_name = "SHARE", value_parser = values::share, default_value = "95%")]
    peak: f64,
    /// What a file grows by at a time, on average
    #[arg(long, value_name = "BYTES", value_parser = values::size, default_value = "32K")]
    piece: u64,
    /// Files that grow in turn
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(1..=1024), default_value = "8")]
    streams: u64,
    /// Only take the space, write nothing: quick, and a device below is not aged
    #[arg(long)]
    allocated: bool,
    /// End after this time, where it then is
    #[arg(long, value_name = "S", value_parser = values::duration(1..=MOST_NS), default_value = "3600")]
    seconds: u64,
    /// Remove first what was made before
    #[arg(long)]
    again: bool,
    /// Remove what was made
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    printed: Printed,
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const PROGRAM: &str = "etude-engine age";

/// `etude-engine age`; the exit status.
pub fn age_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(PROGRAM, arguments, command)
}

fn command(options: Options) -> Result<u8, Failed> {
    if options.to >= options.peak {
        let what = "--to: expected less than --peak, from which files are deleted";
        return Err(etude_options::usage(PROGRAM, what));
    }
    let directory = &options.directory;
    if options.remove {
        return remove(directory).map(|()| 0);
    }
    let wish = Wish {
        seed: options.seed,
        to: options.to,
        peak: options.peak,
        times: options.times,
        piece: options.piece.min(1 << 40),
        streams: options.streams,
        allocated: options.allocated,
        again: options.again,
        time_ns: options.seconds,
        fragments: options.fragments,
    };
    catch_signals();
    let shows = io::stderr().is_terminal();
    let mut told_ns = monotonic_ns();
    let done = age(directory, &wish, &mut |written, total| {
        let now = monotonic_ns();
        if shows && now - told_ns > SECOND / 2 {
            told_ns = now;
            let (written, total) = (mib(written as f64), mib(total as f64));
            tell(&format!("\rage: {written:.0} of {total:.0} MiB written "));
        }
    });
    if shows {
        clear_line();
    }
    let done = done?;
    say(options.printed.shape("aging"), &done, || in_words(&done, directory));
    Ok(status(&done))
}

fn in_words(done: &Map<String, Value>, directory: &std::path::Path) -> String {
    let shown = |value: &Value| value.as_f64().map_or("?".to_owned(), |found| format!("{found:.2}"));
    format!(
        "{}: {} ({:.1} s): {:.0} MiB written, {} files born and {} deleted; {} files of {:.1} MiB live, in {} fragments each; \
         {:.1}% full; a new file of 1 MiB has {} fragments; digest {}",
        directory.join(PLACE).display(),
        done["ended"].as_str().unwrap_or_default(),
        done["seconds"].as_f64().unwrap_or_default(),
        mib(done["written_bytes"].as_f64().unwrap_or_default()),
        done["born"],
        done["died"],
        done["files"],
        mib(done["bytes"].as_f64().unwrap_or_default()),
        shown(&done["fragments"]["mean"]),
        done["level"].as_f64().unwrap_or_default() * 100.0,
        shown(&done["new_file_fragments_per_mib"]),
        done["digest"].as_str().unwrap_or_default(),
    )
}
