//! Files in fragments: how many each is in, summed up.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::{BLOCK, Failed, extents, free, machine};

/// Regular files that were looked at.
#[derive(Debug, Default)]
pub struct Summary {
    files: u64,
    bytes: u64,
    /// Of files with something on the disk.
    placed: u64,
    fragmented: u64,
    fragments: u64,
    blocks: u64,
    most: Option<(u64, PathBuf)>,
    unknown: u64,
    why_unknown: Option<String>,
}

impl Summary {
    /// Look at one file. One that is gone meanwhile is passed over.
    ///
    /// # Errors
    /// It may not be read.
    pub fn look(&mut self, path: &Path) -> Result<Option<u64>, Failed> {
        let file = match OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
        {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| machine(path.display(), &error))?,
        };
        self.files += 1;
        self.bytes += file.metadata().map_or(0, |found| found.len());
        match extents::of(&file) {
            Ok(lies) => {
                self.add(path, &lies);
                Ok(Some(lies.fragments))
            }
            Err(error) => {
                self.unknown += 1;
                self.why_unknown.get_or_insert_with(|| etude_micro::exit::said(&error));
                Ok(None)
            }
        }
    }

    fn add(&mut self, path: &Path, lies: &extents::Lies) {
        self.placed += u64::from(lies.fragments > 0);
        self.fragmented += u64::from(lies.fragments > 1);
        self.fragments += lies.fragments;
        self.blocks += lies.bytes.div_ceil(BLOCK);
        if lies.fragments > self.most.as_ref().map_or(0, |(most, _)| *most) {
            self.most = Some((lies.fragments, path.to_owned()));
        }
    }

    /// Of files that have something on the disk; None where there is none.
    pub fn mean(&self) -> Option<f64> {
        (self.placed > 0).then(|| self.fragments as f64 / self.placed as f64)
    }

    /// Share of blocks that follow the one before them (Smith and Seltzer's layout score, SIGMETRICS 1997); None where
    /// no file has two.
    fn layout_score(&self) -> Option<f64> {
        let pairs = self.blocks.saturating_sub(self.placed);
        (pairs > 0).then(|| 1.0 - self.fragments.saturating_sub(self.placed) as f64 / pairs as f64)
    }

    pub fn members(&self) -> Map<String, Value> {
        let members = json!({
            "files": self.files,
            "bytes": self.bytes,
            "on_disk": self.placed,
            "fragmented": self.fragmented,
            "fragments": self.fragments,
            "mean": self.mean(),
            "most": self.most.as_ref().map(|(most, _)| most),
            "most_of": self.most.as_ref().map(|(_, path)| path.to_string_lossy()),
            "layout_score": self.layout_score(),
            "unknown": self.unknown,
            "why_unknown": self.why_unknown,
        });
        members.as_object().cloned().unwrap_or_default()
    }
}

/// All regular files below paths, without leaving their file systems and without following links.
///
/// # Errors
/// A path is not there (2), or may not be read (5).
pub fn below(paths: &[PathBuf], each: &mut dyn FnMut(&Path, Option<u64>)) -> Result<Summary, Failed> {
    let mut summary = Summary::default();
    for path in paths {
        let found = fs::metadata(path)
            .map_err(|error| (format!("{}: {}", path.display(), etude_micro::exit::said(&error)), 2))?;
        let real = fs::canonicalize(path).map_err(|error| machine(path.display(), &error))?;
        let mut waiting = vec![real];
        while let Some(path) = waiting.pop() {
            let here = fs::symlink_metadata(&path);
            match here {
                Ok(here) if here.is_dir() && here.dev() == found.dev() => waiting.extend(entries(&path)?),
                Ok(here) if here.is_file() => {
                    let fragments = summary.look(&path)?;
                    each(&path, fragments);
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(machine(path.display(), &error));
                }
                _ => {}
            }
        }
    }
    Ok(summary)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Failed> {
    let wrong = |error: io::Error| machine(directory.display(), &error);
    let mut found = fs::read_dir(directory)
        .map_err(wrong)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(wrong)?;
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found)
}

/// The free space of the file system that a path is on, and why it is not known.
pub fn free_below(path: &Path) -> (Option<free::Free>, Option<String>) {
    match File::open(path).and_then(|file| free::of(&file)) {
        Ok(free) => (Some(free), None),
        Err(error) => (None, Some(etude_micro::exit::said(&error))),
    }
}
