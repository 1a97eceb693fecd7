//! `etude prepare [options] SCRIPT|ROLL DIRECTORY`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Parser;
use etude_terminal::complain;
use etude_trace::ordinary;

use crate::model::Needed;
use crate::prepare::{Preparation, Refused, catch_signals, prepare};

/// Build the files that a script or a roll needs, in a directory of their own
#[derive(Parser)]
#[command(
    override_usage = "[options] SCRIPT|ROLL DIRECTORY",
    after_help = "DIRECTORY must be empty, or not there. Files have the lengths that the script gives, and contents that \
                  cannot be compressed. Nothing outside of DIRECTORY is touched, and nothing is left if not all can be \
                  made. More: docs/howto/prepare.md.\n\nexit status: 0; 2 usage; 3 the script is wrong; 5 the machine does not \
                  allow it: no space, not permitted, not empty; 128+n ended by signal n"
)]
struct Options {
    /// Wait until all is on disk
    #[arg(long)]
    sync: bool,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    script: PathBuf,
    directory: PathBuf,
}

/// What a roll needs, of its bytes; the error says what is wrong with it.
pub type OfRoll = fn(Vec<u8>) -> Result<Vec<Needed>, String>;

/// Runs the verb; its exit status. `of_roll` reads rolls.
pub fn main(arguments: impl Iterator<Item = OsString>, of_roll: OfRoll) -> u8 {
    etude_options::run("etude prepare", arguments, |options: Options| {
        run(&options, of_roll).map_err(|refused| (refused.line, refused.code))
    })
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
