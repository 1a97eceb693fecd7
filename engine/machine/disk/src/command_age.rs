//! `etude-engine age`.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use etude_clock::{SECOND, monotonic_ns};
use serde_json::{Map, Value};

use crate::Wrong;
use crate::age::{PLACE, Wish, age, remove};
use crate::arguments::{answer, bytes, each, number, seconds, share, usage, whole};
use crate::command::{Shape, mib, one, say, status};
use crate::ending::catch_signals;

const AGE: &str = "\
Age the file system that DIR is on: files are made, grow in turn and are deleted, in a history that depends on the seed alone.

usage: etude-engine age DIR [options]
       etude-engine age --remove DIR

      --to SHARE       how full it is at the end, as df counts it: 80% or 0.8 (default 80%)
      --times N        write so often its capacity (default 2)
      --fragments N    or until a new file would have so many fragments a MiB
      --seed N         (default 1)
      --peak SHARE     how full it becomes at times (default 95%)
      --piece BYTES    what a file grows by at a time, on average (default 32K)
      --streams N      files that grow in turn (default 8)
      --allocated      only take the space, write nothing: quick, and a device below is not aged
      --seconds S      end after this time, where it then is (default 3600)
      --again          remove first what was made before
      --remove         remove what was made
      --json, --block  one line of JSON; a block for $APLOG
  -h, --help

All of it is in DIR/etude-aged, with a manifest.json that says what was done. A signal ends it where it is, and what it has
made stays; the manifest then says that it is not complete. More: docs/disk-state.md.

exit status: 0; 1 the time was over; 2 usage; 5 the machine does not allow it; 128 + signal
";

struct Asked {
    wish: Wish,
    paths: Vec<PathBuf>,
    removing: bool,
    shape: Shape,
    help: bool,
}

/// `etude-engine age`; the exit status.
pub fn age_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("age", command(arguments))
}

fn command(arguments: impl Iterator<Item = OsString>) -> Result<u8, Wrong> {
    let asked = asked(arguments)?;
    if asked.help {
        print!("{AGE}");
        return Ok(0);
    }
    let directory = one("age", &asked.paths)?;
    if asked.removing {
        return remove(directory).map(|()| 0);
    }
    catch_signals();
    let shows = io::stderr().is_terminal();
    let mut told_ns = monotonic_ns();
    let done = age(directory, &asked.wish, &mut |written, total| {
        let now = monotonic_ns();
        if shows && now - told_ns > SECOND / 2 {
            told_ns = now;
            eprint!("\rage: {:.0} of {:.0} MiB written ", mib(written as f64), mib(total as f64));
            let _ = io::stderr().flush();
        }
    });
    if shows {
        eprint!("\r\x1b[K");
    }
    let done = done?;
    say(asked.shape, &done, || in_words(&done, directory));
    Ok(status(&done))
}

fn asked(arguments: impl Iterator<Item = OsString>) -> Result<Asked, Wrong> {
    let wish = Wish {
        seed: 1,
        to: 0.8,
        peak: 0.95,
        times: 2.0,
        piece: 32 << 10,
        streams: 8,
        allocated: false,
        again: false,
        time_ns: 3600 * SECOND,
        fragments: None,
    };
    let mut asked = Asked { wish, paths: Vec::new(), removing: false, shape: Shape::Words, help: false };
    each("age", arguments, |name, value| {
        let wish = &mut asked.wish;
        match name {
            Some("to") => wish.to = share(value()?)?,
            Some("times") => wish.times = number(value()?, 1e4)?,
            Some("fragments") => wish.fragments = Some(number(value()?, 256.0)?),
            Some("seed") => wish.seed = whole(value()?, 0, u64::MAX)?,
            Some("peak") => wish.peak = share(value()?)?,
            Some("piece") => wish.piece = bytes(value()?)?.min(1 << 40),
            Some("streams") => wish.streams = whole(value()?, 1, 1024)?,
            Some("seconds") => wish.time_ns = seconds(value()?)?,
            Some("allocated") => wish.allocated = true,
            Some("again") => wish.again = true,
            Some("remove") => asked.removing = true,
            Some("json") => asked.shape = Shape::Json,
            Some("block") => asked.shape = Shape::Block("aging"),
            Some("help") => asked.help = true,
            Some(_) => return Ok(false),
            None => asked.paths.push(PathBuf::from(value()?)),
        }
        Ok(true)
    })?;
    if asked.wish.to >= asked.wish.peak {
        return Err(usage("age", "--to: expected less than --peak, from which files are deleted"));
    }
    Ok(asked)
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
