//! Where a roll is played: directories with the files that it needs, one a pass if it changes them.
//!
//! Files that it only reads are there once: each further place has another name (a hard link) of them.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use etude_clock::{monotonic_ns, seconds};
use etude_launch::sys;
use etude_options::Failed;
use etude_replay::{Changes, untouched};
use etude_script::{Needed, Preparation, Refused, Shared, prepare_sharing, room_of};
use etude_terminal::complain;

use super::scored_roll::{Files, Piece};
use crate::options::RollAsked;

/// Says whose a directory is, and which roll's files are in it.
const MARKER: &str = ".etude-load-roll";
/// A name for it, to see whether it can have two.
const ANOTHER: &str = ".etude-load-roll-too";
const PASS: &str = "pass-";
/// Names that a file can have on ext4, which allows the fewest of the usual file systems; with more there are more copies.
const MOST_NAMES: u64 = 65_000;

/// Directories of passes.
pub(super) struct Places {
    root: PathBuf,
    pub many: u64,
    /// What making them took, s; 0 where they were there.
    pub prepared_s: f64,
    /// A signal came while they were made.
    pub interrupted: bool,
    /// Files of one place: its own, and those that all places have in common.
    pub own: Files,
    pub shared: Files,
}

impl Places {
    /// Makes them anew, but for a single one that is as it was.
    ///
    /// # Errors
    /// There is no room, or the directory is somebody else's (5).
    pub fn make(asked: &RollAsked, piece: &Piece, many: u64, signals: &OwnedFd) -> Result<Places, Failed> {
        let begun = monotonic_ns();
        let root = asked.directory.join(format!("etude-load-roll-{}", plain(&piece.name)));
        check_directory(&asked.directory)?;
        let (own, shared) = (Files::of(&piece.roll.needed, |_| true), Files::default());
        let mut places = Places { root, many, prepared_s: 0.0, interrupted: false, own, shared };
        // Only one that nobody changes may be used again.
        let mark = if piece.score.changes == Changes::Nothing {
            format!("{:016x}\n", fingerprint(&piece.roll.needed))
        } else {
            String::new()
        };
        if places.claim()? == mark && !mark.is_empty() && places.of(0).is_dir() {
            return Ok(places);
        }
        places.remove_passes()?;
        let done = places.fill(asked, piece, signals);
        if done.is_err() {
            let _ = places.clear();
        }
        done?;
        places.write_marker(&mark)?;
        places.prepared_s = seconds(monotonic_ns() - begun);
        let shared = match places.shared {
            Files { many: 0, .. } => String::new(),
            Files { many, bytes } => {
                format!(", and {many} files of {bytes} bytes that all of them only read")
            }
        };
        complain!(
            "etude load: {}: {many} {} prepared in {:.1} s: {} bytes of files each{shared}",
            places.root.display(),
            if many == 1 { "place" } else { "places, one a pass," },
            places.prepared_s,
            places.own.bytes,
        );
        Ok(places)
    }

    /// That of a pass, from 0.
    pub fn of(&self, pass: u64) -> PathBuf {
        self.root.join(format!("{PASS}{}", pass % self.many + 1))
    }

    /// Removes what passes have left.
    ///
    /// # Errors
    /// Something cannot be removed (5).
    pub fn clear(&mut self) -> Result<(), Failed> {
        self.remove_passes()?;
        fs::remove_file(self.root.join(MARKER))
            .and_then(|()| fs::remove_dir(&self.root))
            .map_err(|error| refused(&self.root, &format!("cannot be removed: {error}")))
    }

    /// Makes the directory of all places, or takes the one that is there if it is ours; what its marker says.
    fn claim(&self) -> Result<String, Failed> {
        let root = &self.root;
        match fs::create_dir(root) {
            Ok(()) => return self.write_marker("").map(|()| String::new()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(refused(root, &format!("cannot be made: {error}; name a directory of your own")));
            }
        }
        let found = fs::symlink_metadata(root).map_err(|error| refused(root, &error.to_string()))?;
        // SAFETY: no arguments.
        let own = unsafe { libc::geteuid() };
        if !found.is_dir() || found.uid() != own {
            let whose = found.uid();
            return Err(refused(
                root,
                &format!("is no directory of yours (user {whose}, not {own}); name another with --directory"),
            ));
        }
        fs::read_to_string(root.join(MARKER))
            .map_err(|_| refused(root, "was not made by etude load: name another directory, or remove it"))
    }

    fn write_marker(&self, text: &str) -> Result<(), Failed> {
        let path = self.root.join(MARKER);
        fs::write(&path, text).map_err(|error| refused(&path, &format!("cannot be written: {error}")))
    }

    fn remove_passes(&self) -> Result<(), Failed> {
        let _ = fs::remove_file(self.root.join(ANOTHER));
        let entries = fs::read_dir(&self.root).map_err(|error| refused(&self.root, &error.to_string()))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(PASS));
            if number.is_some_and(|number| number.parse::<u64>().is_ok()) {
                fs::remove_dir_all(entry.path())
                    .map_err(|error| refused(&entry.path(), &format!("cannot be removed: {error}")))?;
            }
        }
        Ok(())
    }

    /// Whether a file can have two names here.
    fn can_share(&self) -> bool {
        let name = self.root.join(ANOTHER);
        let can = fs::hard_link(self.root.join(MARKER), &name).and_then(|()| fs::remove_file(name)).is_ok();
        if !can {
            let root = self.root.display();
            complain!("etude load: {root}: no hard links here: each place has copies of all files");
        }
        can
    }

    /// Whether all places will fit, as far as what they begin with: bytes and files of one that shares nothing, and of one
    /// that shares what it can.
    fn room(&self, whole: (u64, u64), further: (u64, u64)) -> Result<(), Failed> {
        let (root, many) = (&self.root, self.many);
        let wholes = many.div_ceil(MOST_NAMES);
        let bytes = in_all((whole.0, further.0), wholes, many);
        let entries = in_all((whole.1, further.1), wholes, many);
        let file = fs::File::open(root).map_err(|error| refused(root, &error.to_string()))?;
        // SAFETY: all zeros are a value of this structure.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor, and a place for the answer.
        if unsafe { libc::fstatvfs(file.as_raw_fd(), &mut found) } != 0 {
            return Ok(());
        }
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let short = "a shorter run, a lower load, --only, or a larger file system";
        if bytes > free {
            let what = format!(
                "{many} passes, each in a place of its own, need {bytes} bytes, and {free} are free; {short}"
            );
            return Err(refused(root, &what));
        }
        if found.f_files > 0 && entries > found.f_favail {
            let what = format!(
                "{many} passes need {entries} files, and there is room for {}; {short}",
                found.f_favail
            );
            return Err(refused(root, &what));
        }
        Ok(())
    }

    fn fill(&mut self, asked: &RollAsked, piece: &Piece, signals: &OwnedFd) -> Result<(), Failed> {
        let needed = &piece.roll.needed;
        let of_roll = |refused: Refused| {
            let line = match refused.code {
                3 => format!("{}: {}", asked.roll.display(), refused.line),
                _ => refused.line,
            };
            (line, refused.code)
        };
        let files = if self.many > 1 && !asked.own && self.can_share() {
            untouched(&piece.roll).map_err(|what| (format!("{}: {what}", asked.roll.display()), 3))?
        } else {
            HashSet::new()
        };
        self.shared = Files::of(needed, |path| files.contains(path));
        self.own = Files::of(needed, |path| !files.contains(path));
        let (whole, further) =
            (room_of(needed, &HashSet::new()).map_err(of_roll)?, room_of(needed, &files).map_err(of_roll)?);
        self.room(whole, further)?;
        for pass in 0..self.many {
            if sys::take_signal(signals).is_some() {
                self.interrupted = true;
                return Ok(());
            }
            let before = pass.checked_sub(1).map(|before| self.of(before));
            let shared = before.as_ref().map(|place| Shared { place, files: &files });
            prepare_sharing(needed, &self.of(pass), Preparation::default(), shared).map_err(of_roll)?;
        }
        // What is to be written to disk now would be part of what is measured.
        let root = fs::File::open(&self.root).map_err(|error| refused(&self.root, &error.to_string()))?;
        // SAFETY: an open descriptor.
        match unsafe { libc::syncfs(root.as_raw_fd()) } {
            0 => Ok(()),
            _ => Err(refused(&self.root, &format!("cannot be synced: {}", io::Error::last_os_error()))),
        }
    }
}

/// How many times each number is needed.
fn in_all((first, further): (u64, u64), wholes: u64, many: u64) -> u64 {
    first.saturating_mul(wholes).saturating_add(further.saturating_mul(many - wholes))
}

fn check_directory(directory: &Path) -> Result<(), Failed> {
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(refused(directory, "is no directory; name one with --directory")),
        Err(error) => {
            Err(refused(directory, &format!("{error}; make it first, or name another with --directory")))
        }
    }
}

fn refused(path: &Path, what: &str) -> Failed {
    (format!("{}: {what}", path.display()), 5)
}

/// A name that is one component everywhere.
fn plain(name: &str) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.chars().map(good).take(100).collect()
}

/// Of the files that a roll needs; within one build of this program.
fn fingerprint(needed: &[Needed]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for each in needed {
        each.path.hash(&mut hasher);
        format!("{:?}", each.what).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
