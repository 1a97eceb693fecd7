//! The directory of a replay: whose it is, and whether its files are as `etude prepare` made them.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use etude_script::{PREPARED, planted_link};

use crate::replay::Refused;
use crate::roll::Roll;
use crate::schedule::changes_files;

/// Text of the mark once a replay has changed files.
const PLAYED: &[u8] = b"played\n";

/// A directory that no other replay takes meanwhile.
#[derive(Debug)]
pub struct Taken {
    /// Whether an earlier replay has changed its files.
    pub changed_before: bool,
    _locked: Option<File>,
}

/// Takes a directory for a replay. One that holds what `etude prepare` did not make is taken only by `force`.
///
/// # Errors
/// It is somebody else's, in use, or not made for replays (5); the roll is damaged (3).
pub fn take(directory: &Path, roll: &Roll, force: bool) -> Result<Taken, Refused> {
    owned(directory)?;
    let refuse = |what: String| Refused(format!("{}: {what}", directory.display()), 5);
    let locked = File::open(directory).ok();
    let held = |file: &File| matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && !by_strangers(file);
    if locked.as_ref().is_some_and(held) {
        return Err(refuse(
            "another replay plays in it: wait for its end, or prepare another directory".into(),
        ));
    }
    let mark = mark(directory);
    let prepared = mark.is_some();
    let empty = || std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
    if !prepared && !force && !empty() {
        return Err(refuse(
            "was not made by etude prepare, and a replay may change or remove any file in it: \
             prepare a directory for it, or give --force"
                .into(),
        ));
    }
    let played = mark.is_some_and(|text| text == PLAYED);
    if !played && (prepared || empty()) && changes_files(roll).map_err(|what| Refused(what, 3))? {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o644);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let written = options.open(directory.join(PREPARED)).and_then(|mut file| file.write_all(PLAYED));
        written.map_err(|error| refuse(format!("{PREPARED} cannot be written: {error}")))?;
    }
    Ok(Taken { changed_before: played, _locked: locked })
}

/// Whether root finds a directory open in no process of root's, but by this file. Whoever may read a directory can lock
/// it, and root does not wait for them.
fn by_strangers(directory: &File) -> bool {
    // SAFETY: no arguments.
    let user = unsafe { libc::geteuid() };
    let Ok(found) = directory.metadata() else { return false };
    let this = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), directory.as_raw_fd()));
    let entries =
        |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let opens =
        |file: PathBuf| file != this && std::fs::metadata(file).is_ok_and(|other| same(&other, &found));
    let by_root =
        |process: PathBuf| real_user(&process) == Some(0) && entries(&process.join("fd")).any(opens);
    // The links `self` and `thread-self` are this process by another name.
    user == 0 && !entries(Path::new("/proc")).filter(|process| !process.is_symlink()).any(by_root)
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The real user of a process by its directory in /proc, whose owner is root where it cannot be traced; None of other
/// entries.
fn real_user(process: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

/// Text of the mark of a prepared directory; None where there is no mark.
fn mark(directory: &Path) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file: File = options.open(directory.join(PREPARED)).ok()?;
    let mut text = Vec::new();
    file.metadata().ok().filter(|found| found.is_file())?;
    file.take(64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Whose files a replay may change.
pub(crate) fn owned(directory: &Path) -> Result<(), Refused> {
    let refuse = |what: String| Refused(format!("{}: {what}", directory.display()), 5);
    if let Some(link) = planted_link(directory) {
        return Err(refuse(format!("{} is a link of another user; prepare one of your own", link.display())));
    }
    let found =
        std::fs::metadata(directory).map_err(|error| refuse(format!("{error}; etude prepare makes it")))?;
    if !found.is_dir() {
        return Err(refuse("is no directory; etude prepare makes one".into()));
    }
    // SAFETY: no arguments.
    let user = unsafe { libc::geteuid() };
    if found.uid() != user {
        return Err(refuse(format!(
            "belongs to user {}, not to you ({user}); prepare one of your own",
            found.uid()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PREPARED, take};
    use crate::roll::Roll;
    use crate::tests::{O_RDWR_CREAT, Place, called, compiled, open, script};

    fn roll(writes: bool) -> Roll {
        let flags = if writes { O_RDWR_CREAT } else { 0 };
        let steps = vec![(0, open("a", flags, 3)), (0, called("close", &[3], 0, None))];
        Roll::read(compiled(&script(steps))).unwrap()
    }

    #[test]
    fn a_directory_that_was_not_prepared_is_taken_only_by_force() {
        let place = Place::new();
        std::fs::write(place.0.join("letter"), "mine").unwrap();
        assert_eq!(take(&place.0, &roll(false), false).unwrap_err().1, 5);
        assert!(!take(&place.0, &roll(true), true).unwrap().changed_before);
        assert!(!place.0.join(PREPARED).exists(), "it is still not prepared");
        std::fs::write(place.0.join(PREPARED), "").unwrap();
        assert!(!take(&place.0, &roll(false), false).unwrap().changed_before);
    }

    #[test]
    fn a_directory_that_a_replay_has_changed_is_known() {
        let place = Place::new();
        assert!(!take(&place.0, &roll(false), false).unwrap().changed_before, "it is empty");
        assert!(!take(&place.0, &roll(false), false).unwrap().changed_before, "reading changes nothing");
        assert!(!take(&place.0, &roll(true), false).unwrap().changed_before);
        assert!(take(&place.0, &roll(false), false).unwrap().changed_before);
        assert!(take(&place.0, &roll(true), true).unwrap().changed_before);
    }

    #[test]
    fn a_directory_is_taken_by_one_replay_at_a_time() {
        let place = Place::new();
        let first = take(&place.0, &roll(false), false).unwrap();
        assert_eq!(take(&place.0, &roll(false), true).unwrap_err().1, 5);
        drop(first);
        take(&place.0, &roll(false), false).unwrap();
    }

    #[test]
    fn a_mark_that_is_a_link_is_none() {
        let (place, other) = (Place::new(), Place::new());
        let outside = other.0.join("kept");
        std::fs::write(&outside, "as it was").unwrap();
        std::os::unix::fs::symlink(&outside, place.0.join(PREPARED)).unwrap();
        assert_eq!(take(&place.0, &roll(true), false).unwrap_err().1, 5);
        take(&place.0, &roll(true), true).unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "as it was");
    }
}
