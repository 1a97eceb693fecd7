//! `etude-engine chill` and `etude-engine residency`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use etude_clock::SECOND;
use etude_options::{Failed, values};
use etude_quantity::size_text;
use etude_terminal::escaped;
use serde_json::{Map, Value, json};

use crate::chill::{Answer, LEAST_LEAVE, Wish, chill};
use crate::evict::evict;
use crate::listing;
use crate::look::{Manner, look};
use crate::resident::How;
use crate::walk::{Seen, walk};
use crate::watch::Watch;

/// Take memory until the kernel has evicted its caches, and give it back
#[derive(Parser)]
#[command(
    after_help = "BYTES may have K, M, G or T (powers of 1024) behind it. It stops by itself when file caches are small and do not \
                  shrink any more, when all wait for memory, or when pages of others would go to swap space. In a group or \
                  cpuset with less memory than the machine it refuses: it would cool only itself. More: \
                  docs/howto/chill.md.\n\nexit status: 0, whatever made it stop; 2 usage; 5 the machine does not allow it"
)]
struct ChillOptions {
    /// Hold at most so much (default: no ceiling)
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    most: Option<u64>,
    /// Stop where less than this is available to others (default 32M, and never less)
    #[arg(long, value_name = "BYTES", value_parser = leave)]
    leave: Option<u64>,
    /// Stop after this time
    #[arg(long, value_name = "S", value_parser = values::duration(SECOND / 1000..=86_400 * SECOND))]
    #[arg(default_value = "120")]
    seconds: u64,
    /// One line of JSON
    #[arg(long)]
    json: bool,
}

/// Report how much of a data set is in the page cache, without disturbing it
#[derive(Parser)]
#[command(
    after_help = "watch begins before the cache is cooled: it prints {\"watched\":FILES}, waits for a line on standard input, and \
                  then looks. It needs root and Linux 5.19. A LISTING of - is standard input. More: docs/howto/residency.md.\n\nexit \
                  status: 0; 2 usage, or there is no such path; 3 LISTING is none; 5 the machine does not allow it"
)]
struct ResidencyOptions {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Its files, to standard output: SIZE PATH, zero byte
    List(Paths),
    /// Print how much of them is cached, as a line of JSON
    Look(LookOptions),
    /// The same, also of files whose names are forgotten
    Watch(LookOptions),
    /// Single files or devices out of the cache
    Evict(Paths),
}

#[derive(Args)]
struct Paths {
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
}

#[derive(Args)]
struct LookOptions {
    /// This file or block device, too, opened plainly; may be given again
    #[arg(long, value_name = "PATH")]
    also: Vec<PathBuf>,
    /// Open all files plainly; then their names and inodes are in memory afterwards
    #[arg(long)]
    plainly: bool,
    /// Use only mincore, or only cachestat
    #[arg(long, value_name = "CALL")]
    how: Option<How>,
    listing: PathBuf,
}

/// `etude-engine chill`; the exit status.
pub fn chill_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine chill", arguments, |options| chill_command(&options).map(|()| 0))
}

/// `etude-engine residency`; the exit status.
pub fn residency_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine residency", arguments, |options: ResidencyOptions| {
        match options.verb {
            Verb::List(Paths { paths }) => list(&paths),
            Verb::Look(options) => look_command(&options, false),
            Verb::Watch(options) => look_command(&options, true),
            Verb::Evict(Paths { paths }) => evict_command(&paths),
        }
        .map(|()| 0)
    })
}

fn chill_command(options: &ChillOptions) -> Result<(), Failed> {
    let leave = options.leave.unwrap_or(LEAST_LEAVE);
    let done = chill(&Wish { most: options.most, leave, time_ns: options.seconds })?;
    let line = if options.json {
        serde_json::to_string(&done).map_err(|error| (error.to_string(), 5))?
    } else {
        said(&done)
    };
    print(&line)
}

fn leave(text: &str) -> Result<u64, String> {
    let bytes = values::size(text)?;
    let least = size_text(LEAST_LEAVE);
    if bytes < LEAST_LEAVE {
        Err(format!("{text:?}: expected {least} or more: others need it"))
    } else {
        Ok(bytes)
    }
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

fn list(paths: &[PathBuf]) -> Result<(), Failed> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut seen = Seen::default();
    for path in paths {
        walk(path, &mut seen, &mut |file| listing::write(&mut out, file).map_err(|error| unwritten(&error)))?;
    }
    out.flush().map_err(|error| unwritten(&error))
}

fn look_command(options: &LookOptions, watched: bool) -> Result<(), Failed> {
    let (path, manner) = (&options.listing, Manner { plainly: options.plainly, how: options.how });
    let not_one = |error: &dyn std::fmt::Display| (format!("{}: {error}", path.display()), 3);
    let text = whole(path).map_err(|error| not_one(&error))?;
    let files = listing::read(&text).map_err(|error| not_one(&error))?;
    let watch = if watched { Some(Watch::of(&files)?) } else { None };
    if watched {
        print(&json!({"watched": files.len()}).to_string())?;
        if !is_asked()? {
            return Ok(());
        }
    }
    let seen = look(&files, &options.also, manner, watch.as_ref())?;
    print(&serde_json::to_string(&seen).map_err(|error| (error.to_string(), 5))?)
}

/// Waits for a line; false where standard input ends without one.
fn is_asked() -> Result<bool, Failed> {
    let mut line = String::new();
    let read =
        io::stdin().lock().read_line(&mut line).map_err(|error| (format!("standard input: {error}"), 5))?;
    Ok(read > 0)
}

fn whole(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        return Ok(text);
    }
    fs::read(path)
}

fn evict_command(paths: &[PathBuf]) -> Result<(), Failed> {
    let mut left = Map::new();
    for path in paths {
        left.insert(path.to_string_lossy().into_owned(), evict(path)?.into());
    }
    print(&Value::Object(left).to_string())
}

fn print(line: &str) -> Result<(), Failed> {
    writeln!(io::stdout().lock(), "{}", escaped(line)).map_err(|error| unwritten(&error))
}

fn unwritten(error: &io::Error) -> Failed {
    (format!("standard output: {error}"), 5)
}
