//! How much of a data set is in the page cache, without bringing any of it there.
//!
//! To look a name up loads the directories and the inode that it leads to, which the next reader of the data set then finds
//! in memory. So a file is opened only if its name is in the kernel's cache of names. A file whose name is not there may
//! still have pages: only a watch that began before can tell (`watch.rs`).

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use etude_clock::{monotonic_ns, seconds};
use serde::Serialize;

use crate::Failed;
use crate::listing::Listed;
use crate::open_if_cached;
use crate::resident::{How, bytes_of, has_pages, open_plainly, resident};
use crate::watch::Watch;

/// How a data set is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// Open all files as any program does, though it disturbs.
    pub plainly: bool,
    /// Ask this call alone.
    pub how: Option<How>,
}

#[derive(Debug, Serialize)]
pub struct Seen {
    pub files: u64,
    /// Sum of the sizes in the listing.
    pub bytes: u64,
    /// Files whose names were in the kernel's cache; null where all were opened.
    pub names_cached: Option<u64>,
    /// Files of which the kernel still had something in memory, known by name or not; null without a watch.
    pub inodes_cached: Option<u64>,
    pub resident_bytes: u64,
    /// Files that are not there any more.
    pub gone: u64,
    /// Null where nothing had to be asked.
    pub how: Option<How>,
    pub undisturbed: bool,
    pub also: Vec<Also>,
    pub seconds: f64,
    /// Files that were counted: device and inode.
    #[serde(skip)]
    counted: HashSet<(u64, u64)>,
}

/// A file or device beside the data set.
#[derive(Debug, Serialize)]
pub struct Also {
    pub path: String,
    pub bytes: u64,
    pub resident_bytes: u64,
}

/// # Errors
/// A file may not be opened or asked about (5), one of `also` is not there (2).
pub fn look(
    files: &[Listed],
    also: &[PathBuf],
    manner: Manner,
    watch: Option<&Watch>,
) -> Result<Seen, Failed> {
    let began_ns = monotonic_ns();
    let undisturbed = !manner.plainly && open_if_cached::is_possible();
    let mut seen = Seen {
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        names_cached: undisturbed.then_some(0),
        inodes_cached: None,
        resident_bytes: 0,
        gone: 0,
        how: None,
        undisturbed,
        also: Vec::new(),
        seconds: 0.0,
        counted: HashSet::new(),
    };
    for file in files {
        seen.count(file.path, manner).map_err(|error| refused(file.path, &error))?;
    }
    if let Some(watch) = watch {
        watch.each(&mut |file| seen.add(&file, manner))?;
        seen.inodes_cached = Some(seen.counted.len() as u64);
    }
    for path in also {
        let one = beside(path, manner).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => (format!("--also {}: {error}", path.display()), 2),
            _ => refused(path, &error),
        })?;
        seen.also.push(one);
    }
    seen.seconds = seconds(monotonic_ns() - began_ns);
    Ok(seen)
}

impl Seen {
    fn count(&mut self, path: &Path, manner: Manner) -> io::Result<()> {
        let opened =
            if self.undisturbed { open_if_cached::open_cached(path) } else { open_plainly(path).map(Some) };
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(()),
            Err(error) if is_gone(&error) => {
                self.gone += 1;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if !has_pages(&file.metadata()?) {
            self.gone += 1;
            return Ok(());
        }
        self.names_cached = self.names_cached.map(|names| names + 1);
        self.add(&file, manner)
    }

    /// Adds the pages of a file, once.
    fn add(&mut self, file: &File, manner: Manner) -> io::Result<()> {
        let metadata = file.metadata()?;
        if self.counted.insert((metadata.dev(), metadata.ino())) {
            let (bytes, how) = resident(file, &metadata, bytes_of(file, &metadata)?, manner.how)?;
            self.resident_bytes += bytes;
            self.how = Some(how);
        }
        Ok(())
    }
}

/// Also where something else has taken its place: a socket cannot be opened.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ENXIO | libc::ELOOP))
}

fn beside(path: &Path, manner: Manner) -> io::Result<Also> {
    let (file, bytes, metadata) = measured(path)?;
    let (resident_bytes, _) = resident(&file, &metadata, bytes, manner.how)?;
    Ok(Also { path: path.to_string_lossy().into_owned(), bytes, resident_bytes })
}

/// An open file or block device and its size.
///
/// # Errors
/// It cannot be opened, or is neither.
pub fn measured(path: &Path) -> io::Result<(File, u64, std::fs::Metadata)> {
    let file = open_plainly(path)?;
    let metadata = file.metadata()?;
    if !has_pages(&metadata) {
        return Err(io::Error::other("neither a regular file nor a block device"));
    }
    let bytes = bytes_of(&file, &metadata)?;
    Ok((file, bytes, metadata))
}

/// The line for a file that cannot be looked at.
pub fn refused(path: &Path, error: &io::Error) -> Failed {
    (format!("{}: {error}; run it as root, or as who owns the files", path.display()), 5)
}
