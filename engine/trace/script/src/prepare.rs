//! The files that a replay finds: built in a directory of its own, and nowhere else.
//!
//! `plan.rs` checks all paths before anything is made; `build.rs` makes them, one directory's descriptor at a time and
//! never through a link, so that whatever stands in a script, or is put there meanwhile, nothing outside is touched.

mod build;
mod command;
mod content;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::model::Needed;

pub use command::main;
pub(crate) use plan::misplaced;

/// The file in a directory by which a replay knows that it was prepared.
pub const PREPARED: &str = ".etude-prepared";

/// How files are prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preparation {
    /// Waits until all is on disk.
    pub sync: bool,
    /// Says how far it is, on standard error.
    pub progress: bool,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    /// Of all files.
    pub bytes: u64,
    /// Files that may have been longer.
    pub at_least: u64,
}

/// Why nothing was made: a line, and an exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub line: String,
    pub code: u8,
}

impl Refused {
    fn input(line: impl Into<String>) -> Refused {
        Refused { line: line.into(), code: 3 }
    }

    fn machine(line: impl Into<String>) -> Refused {
        Refused { line: line.into(), code: 5 }
    }
}

/// The signal that ended the work early; 0 for none.
static ENDED: AtomicI32 = AtomicI32::new(0);

/// Files that a place has in common with another one of the same file system.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a> {
    /// Where all that is needed has been built.
    pub place: &'a Path,
    /// Paths from the root: no replay in either place changes these files.
    pub files: &'a HashSet<Vec<u8>>,
}

/// Builds what is needed in a directory, which has to be empty, or not there. Fails without a trace of it.
///
/// # Errors
/// What is needed contradicts itself or lies outside (3), or the machine does not allow it (5).
pub fn prepare(needed: &[Needed], directory: &Path, how: Preparation) -> Result<Prepared, Refused> {
    prepare_sharing(needed, directory, how, None)
}

/// The same with names (hard links) of another place's files. One that has as many names as a file can have is copied.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_sharing(
    needed: &[Needed],
    directory: &Path,
    how: Preparation,
    shared: Option<Shared>,
) -> Result<Prepared, Refused> {
    let mut plan = plan::plan(needed).map_err(|wrong| Refused::input(wrong.to_string()))?;
    shared.iter().for_each(|shared| plan.share(shared.files));
    let other = shared.map(|shared| opened(shared.place)).transpose()?;
    let made_here = claim(directory)?;
    let done = opened(directory).and_then(|root| {
        room(directory, &root, &plan)?;
        build::build(&plan, &root, other.as_ref(), directory, how)
    });
    if done.is_err() && made_here {
        let _ = fs::remove_dir(directory);
    }
    done
}

/// Bytes on disk and files that a place needs, without what it shares.
///
/// # Errors
/// Refused: what is needed contradicts itself or lies outside (3).
pub fn room_of(needed: &[Needed], shared: &HashSet<Vec<u8>>) -> Result<(u64, u64), Refused> {
    let mut plan = plan::plan(needed).map_err(|wrong| Refused::input(wrong.to_string()))?;
    plan.share(shared);
    Ok((plan.room, plan.entries as u64))
}

/// The link on the way to a directory that another user has put into a sticky one, such as `/tmp`. The kernel follows
/// none either, unless `fs.protected_symlinks` is 0.
pub fn planted_link(directory: &Path) -> Option<&Path> {
    // SAFETY: no arguments.
    let own = unsafe { libc::geteuid() };
    directory.ancestors().find(|place| {
        let found = fs::symlink_metadata(place);
        let foreign = found.is_ok_and(|found| found.is_symlink() && found.uid() != own && found.uid() != 0);
        let above = place.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        foreign && fs::metadata(above).is_ok_and(|above| above.mode() & libc::S_ISVTX != 0)
    })
}

/// Makes the directory, unless there is one that may be used; whether it was made.
fn claim(directory: &Path) -> Result<bool, Refused> {
    let name = directory.display();
    if let Some(link) = planted_link(directory) {
        let line = format!("{name}: {} is a link of another user: name another directory", link.display());
        return Err(Refused::machine(line));
    }
    match fs::create_dir(directory) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(Refused::machine(format!("{name}: cannot be made: {error}; name another directory")));
        }
    }
    let found = fs::metadata(directory).map_err(|error| Refused::machine(format!("{name}: {error}")))?;
    if !found.is_dir() {
        return Err(Refused::machine(format!(
            "{name}: is no directory: name one that is empty, or not there"
        )));
    }
    // SAFETY: no arguments.
    let own = unsafe { libc::geteuid() };
    if found.uid() != own {
        let line = format!("{name}: belongs to another user ({}): name a directory of your own", found.uid());
        return Err(Refused::machine(line));
    }
    let mut entries =
        fs::read_dir(directory).map_err(|error| Refused::machine(format!("{name}: {error}")))?;
    match entries.next() {
        None => Ok(false),
        Some(_) => {
            Err(Refused::machine(format!("{name}: is not empty: name a directory that is, or is not there")))
        }
    }
}

fn opened(directory: &Path) -> Result<fs::File, Refused> {
    fs::File::open(directory).map_err(|error| Refused::machine(format!("{}: {error}", directory.display())))
}

/// Whether all will fit.
fn room(directory: &Path, root: &fs::File, plan: &plan::Plan) -> Result<(), Refused> {
    // SAFETY: all zeros are a value of this structure.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and a place for the answer.
    if unsafe { libc::fstatvfs(root.as_raw_fd(), &mut found) } != 0 {
        return Ok(());
    }
    let free = u128::from(found.f_bavail) * u128::from(found.f_frsize);
    let name = directory.display();
    if u128::from(plan.room) > free {
        return Err(Refused::machine(format!(
            "{name}: the files need {} bytes, and {free} are free: name a directory on another file system",
            plan.room
        )));
    }
    if found.f_files > 0 && (plan.entries as u64) > found.f_favail {
        return Err(Refused::machine(format!(
            "{name}: {} files are needed, and the file system has room for {} more",
            plan.entries, found.f_favail
        )));
    }
    Ok(())
}

/// From now on a signal that would end this program only says that it is to end.
fn catch_signals() {
    extern "C" fn note(signal: libc::c_int) {
        ENDED.store(signal, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does nothing but store a number.
        unsafe { libc::signal(signal, note as *const () as libc::sighandler_t) };
    }
}

fn ended() -> Option<Refused> {
    match ENDED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(Refused {
            line: format!("ended by signal {signal}; nothing is left"),
            code: 128 + signal as u8,
        }),
    }
}
