//! `etude prepare [options] SCRIPT|ROLL DIRECTORY`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use etude_terminal::complain;
use etude_trace::ordinary;
use lexopt::prelude::*;

use crate::model::Needed;
use crate::prepare::{Preparation, Refused, catch_signals, prepare};

const HELP: &str = "\
Build the files that a script or a roll needs, in a directory of their own.

usage: etude prepare [options] SCRIPT|ROLL DIRECTORY

      --sync     wait until all is on disk
  -q, --quiet    say nothing but what is wrong
  -h, --help

DIRECTORY must be empty, or not there. Files have the lengths that the script gives, and contents that cannot be
compressed. Nothing outside of DIRECTORY is touched, and nothing is left if not all can be made. More: docs/prepare.md.

exit status: 0; 2 usage; 3 the script is wrong; 5 the machine does not allow it: no space, not permitted, not empty;
128+n ended by signal n
";

struct Options {
    script: PathBuf,
    directory: PathBuf,
    sync: bool,
    quiet: bool,
}

/// What a roll needs, of its bytes; the error says what is wrong with it.
pub type OfRoll = fn(Vec<u8>) -> Result<Vec<Needed>, String>;

/// Runs the verb; its exit status. `of_roll` reads rolls.
pub fn main(arguments: impl Iterator<Item = OsString>, of_roll: OfRoll) -> u8 {
    match options(arguments) {
        Ok(Some(options)) => {
            run(&options, of_roll).unwrap_or_else(|refused| complain(&refused.line, refused.code))
        }
        Ok(None) => {
            print!("{HELP}");
            0
        }
        Err(error) => complain(&format!("{error}; see etude prepare --help"), 2),
    }
}

fn options(arguments: impl Iterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    let (mut sync, mut quiet, mut paths) = (false, false, Vec::new());
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("sync") => sync = true,
            Short('q') | Long("quiet") => quiet = true,
            Short('h') | Long("help") => return Ok(None),
            Value(path) => paths.push(PathBuf::from(path)),
            _ => return Err(argument.unexpected()),
        }
    }
    let [script, directory] =
        <[PathBuf; 2]>::try_from(paths).map_err(|_| "expected a script and a directory")?;
    Ok(Some(Options { script, directory, sync, quiet }))
}

fn run(options: &Options, of_roll: OfRoll) -> Result<u8, Refused> {
    let needed = needed(&options.script, of_roll)?;
    catch_signals();
    let progress = !options.quiet && std::io::stderr().is_terminal();
    let made = prepare(&needed, &options.directory, Preparation { sync: options.sync, progress })?;
    if !options.quiet {
        let (files, directories, links, bytes) = (made.files, made.directories, made.links, made.bytes);
        complain!(
            "etude prepare: {}: {files} files of {bytes} bytes, {directories} directories, {links} links",
            options.directory.display()
        );
        if made.at_least > 0 {
            complain!(
                "etude prepare: {} files are as long as the calls need (\"at least\" in the script); they may have been longer",
                made.at_least
            );
        }
    }
    Ok(0)
}

const ROLL: &[u8] = b"etuderol";

/// What a script or a roll says that is needed.
fn needed(path: &Path, of_roll: OfRoll) -> Result<Vec<Needed>, Refused> {
    let name = path.display().to_string();
    let text =
        ordinary::read(path).map_err(|error| Refused::input(format!("{name}: {error}; name a script")))?;
    if text.starts_with(ROLL) {
        return of_roll(text).map_err(|what| Refused::input(format!("{name}: {what}")));
    }
    let parsed = crate::parse(&name, &text).map_err(|wrong| Refused::input(wrong.to_string()))?;
    Ok(parsed.script.needed)
}

fn complain(line: &str, code: u8) -> u8 {
    complain!("etude prepare: {line}");
    code
}
