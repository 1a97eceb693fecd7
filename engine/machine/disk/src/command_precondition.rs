//! `etude-engine precondition`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use etude_clock::SECOND;
use etude_terminal::complain;

use crate::arguments::{answer, bytes, each, number, seconds, share, text, whole};
use crate::command::{Shape, mib, one, say};
use crate::device::open;
use crate::ending::catch_signals;
use crate::precondition::{Done, Wish, precondition};
use crate::steady::Rule;
use crate::{BLOCK, Wrong, machine};

const PRECONDITION: &str = "\
Write over a device or a file until its throughput is steady. What is on it is lost.

usage: etude-engine precondition DEVICE|FILE [options]

      --size BYTES     write only the first so many bytes; make a file that large
      --trim           discard all of it first
      --passes N       write the whole so often in sequence before rounds count (default 2)
      --pattern WORD   rounds: sequential or random (default random)
      --write BYTES    of each write, a multiple of 4096 (default 128K)
      --round S        seconds of a round (default 10)
      --window N       rounds that must be steady (default 5)
      --range SHARE    no further apart than this share of their mean (default 20%)
      --slope SHARE    rising or falling by no more than this (default 10%)
      --seconds S      end after this time (default 3600)
      --bytes BYTES    end after so many bytes
      --seed N         (default 1)
      --force          also over a file system, or a file that is not empty; never over what is mounted
      --json, --block  one line of JSON; a block for $APLOG. Both have the throughput of each round
  -h, --help

More: docs/disk-state.md.

exit status: 0 it is steady; 1 it is not, and time or bytes were used up; 2 usage; 5 the machine does not allow it;
128 + signal
";

struct Asked {
    wish: Wish,
    paths: Vec<PathBuf>,
    size: Option<u64>,
    force: bool,
    shape: Shape,
    help: bool,
}

/// `etude-engine precondition`; the exit status.
pub fn precondition_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("precondition", command(arguments))
}

fn command(arguments: impl Iterator<Item = OsString>) -> Result<u8, Wrong> {
    let asked = asked(arguments)?;
    if asked.help {
        print!("{PRECONDITION}");
        return Ok(0);
    }
    let path = one("precondition", &asked.paths)?;
    let device = open(path, asked.size, asked.force)?;
    catch_signals();
    let shows = io::stderr().is_terminal();
    let done = precondition(&device, &asked.wish, &mut |what, rate| {
        if shows {
            complain!("precondition: {what}: {:.1} MiB/s", mib(rate));
        }
    });
    let done = done.map_err(|error| machine(path.display(), &error))?;
    let members =
        serde_json::to_value(&done).ok().and_then(|found| found.as_object().cloned()).unwrap_or_default();
    say(asked.shape, &members, || in_words(&done));
    let signal = done.ended.strip_prefix("signal ").and_then(|number| number.parse::<u8>().ok());
    Ok(signal.map_or(u8::from(!done.steady), |signal| 128 + signal))
}

fn asked(arguments: impl Iterator<Item = OsString>) -> Result<Asked, Wrong> {
    let wish = Wish {
        trim: false,
        block: 128 << 10,
        random: true,
        seed: 1,
        passes: 2.0,
        round_ns: 10 * SECOND,
        rule: Rule::default(),
        most_bytes: u64::MAX,
        time_ns: 3600 * SECOND,
    };
    let mut asked =
        Asked { wish, paths: Vec::new(), size: None, force: false, shape: Shape::Words, help: false };
    each("precondition", arguments, |name, value| {
        let wish = &mut asked.wish;
        match name {
            Some("size") => asked.size = Some(bytes(value()?)? / BLOCK * BLOCK),
            Some("trim") => wish.trim = true,
            Some("passes") => wish.passes = passes(value()?)?,
            Some("pattern") => wish.random = pattern(value()?)?,
            Some("write") => wish.block = block(value()?)?,
            Some("round") => wish.round_ns = seconds(value()?)?,
            Some("window") => wish.rule.window = whole(value()?, 2, 1000)? as usize,
            Some("range") => wish.rule.most_range = share(value()?)?,
            Some("slope") => wish.rule.most_slope = share(value()?)?,
            Some("seconds") => wish.time_ns = seconds(value()?)?,
            Some("bytes") => wish.most_bytes = bytes(value()?)?,
            Some("seed") => wish.seed = whole(value()?, 0, u64::MAX)?,
            Some("force") => asked.force = true,
            Some("json") => asked.shape = Shape::Json,
            Some("block") => asked.shape = Shape::Block("preconditioning"),
            Some("help") => asked.help = true,
            Some(_) => return Ok(false),
            None => asked.paths.push(PathBuf::from(value()?)),
        }
        Ok(true)
    })?;
    Ok(asked)
}

fn passes(value: OsString) -> Result<f64, String> {
    if value == "0" { Ok(0.0) } else { number(value, 1000.0) }
}

fn pattern(value: OsString) -> Result<bool, String> {
    let word = etude_micro::options::word(&text(value)?, &["sequential", "random"])?;
    Ok(word == 1)
}

fn block(value: OsString) -> Result<u64, String> {
    let found = bytes(value)?;
    let good = found.is_multiple_of(BLOCK) && found <= 64 << 20;
    if good { Ok(found) } else { Err(format!("{found}: expected a multiple of 4096, at most 64M")) }
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
