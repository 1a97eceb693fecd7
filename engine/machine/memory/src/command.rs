//! `etude-engine chill` and `etude-engine residency`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use etude_clock::SECOND;
use etude_micro::options::{Arg, Parser};
use etude_quantity::{duration, size, size_text};
use etude_terminal::{complain, escaped};
use serde_json::{Map, Value, json};

use crate::Wrong;
use crate::chill::{Answer, LEAST_LEAVE, Wish, chill};
use crate::evict::evict;
use crate::listing;
use crate::look::{Manner, look};
use crate::resident::How;
use crate::walk::{Seen, walk};
use crate::watch::Watch;

const CHILL: &str = "\
Take memory until the kernel has evicted its caches, and give it back.

usage: etude-engine chill [options]

      --most BYTES     hold at most so much (default: no ceiling)
      --leave BYTES    stop where less than this is available to others (default 32M, and never less)
      --seconds S      stop after this time (default 120)
      --json           one line of JSON
  -h, --help

BYTES may have K, M, G or T (powers of 1024) behind it. It stops by itself when file caches are small and do not shrink any
more, when all wait for memory, or when pages of others would go to swap space. In a group or cpuset with less memory
than the machine it refuses: it would cool only itself. More: docs/chill.md.

exit status: 0, whatever made it stop; 2 usage; 5 the machine does not allow it
";

const RESIDENCY: &str = "\
What of a data set is in the page cache, without disturbing it.

usage: etude-engine residency list PATH...                     its files, to standard output: SIZE PATH, zero byte
       etude-engine residency look LISTING [--also PATH]...    how much of them is cached, as a line of JSON
       etude-engine residency watch LISTING [--also PATH]...   the same, also of files whose names are forgotten
       etude-engine residency evict PATH...                    single files or devices out of the cache

watch begins before the cache is cooled: it prints {\"watched\":FILES}, waits for a line on standard input, and then looks.
It needs root and Linux 5.19.

      --also PATH      this file or block device, too, opened plainly
      --plainly        open all files plainly; then their names and inodes are in memory afterwards
      --how CALL       ask mincore or cachestat alone
  -h, --help

A LISTING of - is standard input. More: docs/residency.md.

exit status: 0; 2 usage, or there is no such path; 3 LISTING is none; 5 the machine does not allow it
";

const SECONDS: f64 = 120.0;

fn answer(verb: &str, done: Result<(), Wrong>) -> u8 {
    done.map_or_else(
        |(line, code)| {
            complain!("etude-engine {verb}: {line}");
            code
        },
        |()| 0,
    )
}

fn usage(verb: &str, error: &dyn std::fmt::Display) -> Wrong {
    (format!("{error}; see etude-engine {verb} --help"), 2)
}

/// `etude-engine chill`; the exit status.
pub fn chill_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("chill", chill_command(arguments))
}

/// `etude-engine residency`; the exit status.
pub fn residency_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("residency", residency(arguments))
}

fn chill_command(arguments: impl Iterator<Item = OsString>) -> Result<(), Wrong> {
    let wrong = |error: &dyn std::fmt::Display| usage("chill", error);
    let mut wish = Wish { most: None, leave: LEAST_LEAVE, time_ns: etude_clock::from_seconds(SECONDS) };
    let mut json = false;
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| wrong(&error))? {
        let done = match argument {
            Arg::Long("most") => bytes("most", &mut parser).map(|bytes| wish.most = Some(bytes)),
            Arg::Long("leave") => leave(&mut parser).map(|bytes| wish.leave = bytes),
            Arg::Long("seconds") => seconds(&mut parser).map(|time_ns| wish.time_ns = time_ns),
            Arg::Long("json") => {
                json = true;
                Ok(())
            }
            Arg::Short('h') | Arg::Long("help") => {
                print!("{CHILL}");
                return Ok(());
            }
            _ => Err(argument.unexpected().to_string()),
        };
        done.map_err(|why| wrong(&why))?;
    }
    let done = chill(&wish)?;
    let line = if json {
        serde_json::to_string(&done).map_err(|error| (error.to_string(), 5))?
    } else {
        said(&done)
    };
    print(&line)
}

fn leave(parser: &mut Parser) -> Result<u64, String> {
    let bytes = bytes("leave", parser)?;
    let least = format!("--leave {bytes}: expected {} or more: others need it", size_text(LEAST_LEAVE));
    if bytes < LEAST_LEAVE { Err(least) } else { Ok(bytes) }
}

fn bytes(name: &str, parser: &mut Parser) -> Result<u64, String> {
    size(&text(name, parser)?).map_err(|error| format!("--{name} {error}"))
}

fn seconds(parser: &mut Parser) -> Result<u64, String> {
    let text = text("seconds", parser)?;
    let found = duration(&text, "s").map_err(|error| format!("--seconds {error}"))?;
    let good = (SECOND / 1000..=86_400 * SECOND).contains(&found);
    if good { Ok(found) } else { Err(format!("--seconds {text:?}: expected a duration from 1ms to 1d")) }
}

fn text(name: &str, parser: &mut Parser) -> Result<String, String> {
    let value = parser.value().map_err(|error| format!("--{name}: {error}"))?;
    value.into_string().map_err(|value| format!("--{name} {value:?}: expected text"))
}

/// The answer in words.
fn said(done: &Answer) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let kills = match done.oom_kills {
        Some(0) => String::new(),
        Some(count) => format!("; the OOM killer ended {count} processes meanwhile"),
        None => "; this kernel does not count what the OOM killer ends".to_owned(),
    };
    let stopped = serde_json::to_value(done.stopped).unwrap_or_default();
    format!(
        "took {} MiB in {:.1} s and gave it back (stopped: {}); file caches {} -> {} MiB, directories and inodes {} -> \
         {} MiB, available {} -> {} MiB{kills}",
        mib(done.allocated_bytes),
        done.seconds,
        stopped.as_str().unwrap_or_default(),
        mib(done.before.file_bytes),
        mib(done.after.file_bytes),
        mib(done.before.slab_bytes),
        mib(done.after.slab_bytes),
        mib(done.before.available_bytes),
        mib(done.after.available_bytes),
    )
}

fn residency(mut arguments: impl Iterator<Item = OsString>) -> Result<(), Wrong> {
    let verb = arguments.next();
    match verb.as_ref().and_then(|verb| verb.to_str()) {
        Some("list") => list(&paths(arguments)?),
        Some("look") => look_command(arguments, false),
        Some("watch") => look_command(arguments, true),
        Some("evict") => evict_command(&paths(arguments)?),
        Some("-h" | "--help") => {
            print!("{RESIDENCY}");
            Ok(())
        }
        _ => Err(usage("residency", &"expected list, look, watch or evict")),
    }
}

/// Arguments that are all paths; `--` may come before them.
fn paths(arguments: impl Iterator<Item = OsString>) -> Result<Vec<PathBuf>, Wrong> {
    let wrong = |error: &dyn std::fmt::Display| usage("residency", error);
    let mut paths = Vec::new();
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| wrong(&error))? {
        match argument {
            Arg::Value(path) => paths.push(PathBuf::from(path)),
            _ => return Err(wrong(&argument.unexpected())),
        }
    }
    if paths.is_empty() { Err(wrong(&"no path is given")) } else { Ok(paths) }
}

fn list(paths: &[PathBuf]) -> Result<(), Wrong> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut seen = Seen::default();
    for path in paths {
        walk(path, &mut seen, &mut |file| listing::write(&mut out, file).map_err(|error| unwritten(&error)))?;
    }
    out.flush().map_err(|error| unwritten(&error))
}

fn look_command(arguments: impl Iterator<Item = OsString>, watched: bool) -> Result<(), Wrong> {
    let wrong = |error: &dyn std::fmt::Display| usage("residency", error);
    let (mut listing, mut also, mut manner) = (None, Vec::new(), Manner::default());
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| wrong(&error))? {
        match argument {
            Arg::Long("also") => also.push(PathBuf::from(parser.value().map_err(|error| wrong(&error))?)),
            Arg::Long("plainly") => manner.plainly = true,
            Arg::Long("how") => manner.how = Some(how(&mut parser).map_err(|error| wrong(&error))?),
            Arg::Value(path) if listing.is_none() => listing = Some(PathBuf::from(path)),
            _ => return Err(wrong(&argument.unexpected())),
        }
    }
    let path = listing.ok_or_else(|| wrong(&"no listing is given"))?;
    let not_one = |error: &dyn std::fmt::Display| (format!("{}: {error}", path.display()), 3);
    let text = whole(&path).map_err(|error| not_one(&error))?;
    let files = listing::read(&text).map_err(|error| not_one(&error))?;
    let watch = if watched { Some(Watch::of(&files)?) } else { None };
    if watched {
        print(&json!({"watched": files.len()}).to_string())?;
        if !is_asked()? {
            return Ok(());
        }
    }
    let seen = look(&files, &also, manner, watch.as_ref())?;
    print(&serde_json::to_string(&seen).map_err(|error| (error.to_string(), 5))?)
}

/// Waits for a line; false where standard input ends without one.
fn is_asked() -> Result<bool, Wrong> {
    let mut line = String::new();
    let read =
        io::stdin().lock().read_line(&mut line).map_err(|error| (format!("standard input: {error}"), 5))?;
    Ok(read > 0)
}

fn how(parser: &mut Parser) -> Result<How, String> {
    match text("how", parser)?.as_str() {
        "mincore" => Ok(How::Mincore),
        "cachestat" => Ok(How::Cachestat),
        other => Err(format!("--how {other:?}: expected mincore or cachestat")),
    }
}

fn whole(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        return Ok(text);
    }
    fs::read(path)
}

fn evict_command(paths: &[PathBuf]) -> Result<(), Wrong> {
    let mut left = Map::new();
    for path in paths {
        left.insert(path.to_string_lossy().into_owned(), evict(path)?.into());
    }
    print(&Value::Object(left).to_string())
}

fn print(line: &str) -> Result<(), Wrong> {
    writeln!(io::stdout().lock(), "{}", escaped(line)).map_err(|error| unwritten(&error))
}

fn unwritten(error: &io::Error) -> Wrong {
    (format!("standard output: {error}"), 5)
}
