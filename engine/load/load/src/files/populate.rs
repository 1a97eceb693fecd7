//! The file set on disk: what is there is compared with what should be, and put right.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use etude_options::Failed;
use etude_workload::FileSet;

use crate::files::space::{Need, Space};
use crate::incompressible_data::{Data, MOST};
use crate::progress::Progress;

/// Where the file set of that name and seed lies in the user's directory: all below it is ours, and nothing else is touched.
pub(crate) fn root_of(directory: &Path, name: &str, seed: u64) -> PathBuf {
    directory.join(format!("etude-load-{name}-{seed}"))
}

/// What is to be in one directory.
#[derive(Default)]
struct Wanted {
    /// By name: a directory's number, a file's, a link's.
    entries: HashMap<String, Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Directory(usize),
    File(usize),
    Link(usize),
}

/// What is missing, by number; sizes that are wrong count as missing files.
#[derive(Default)]
struct Missing {
    directories: Vec<usize>,
    files: Vec<usize>,
    links: Vec<usize>,
}

/// Makes or puts right the file set below `root`.
///
/// # Errors
/// There is not enough room, with nothing written; or the directory cannot be read or written.
pub(crate) fn populate(root: &Path, set: &FileSet, data: &Data) -> Result<(), Failed> {
    let directory = root.parent().unwrap_or(root);
    let refused = |error: io::Error| -> Failed { (refusal(directory, &error), 5) };
    if !directory.is_dir() {
        let line = format!("--directory {}: there is no such directory; make it first", directory.display());
        return Err((line, 5));
    }
    let wanted = wanted(set);
    let mut missing = Missing::default();
    let there = root.symlink_metadata().is_ok();
    if there {
        compare(root, set, &wanted, 0, &mut missing).map_err(refused)?;
    } else {
        all(set, &mut missing);
    }
    let space = Space::of(directory).map_err(refused)?;
    need(root, set, &missing, &space).check(&space, directory).map_err(|line| (line, 5))?;
    if !there {
        fs::create_dir(root).map_err(refused)?;
    }
    make(root, set, &missing, data).map_err(refused)
}

fn refusal(directory: &Path, error: &io::Error) -> String {
    let place = directory.display();
    match error.raw_os_error() {
        Some(libc::EROFS | libc::EACCES | libc::EPERM) => {
            format!("--directory {place}: {error}; name one that may be written")
        }
        Some(libc::ENOSPC | libc::EDQUOT) => {
            format!(
                "--directory {place}: {error} while the file set was made; make room, or name a lower --rate or --sized-for"
            )
        }
        _ => format!("--directory {place}: {error}"),
    }
}

fn wanted(set: &FileSet) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::new();
    wanted.resize_with(set.directories(), Wanted::default);
    for index in 1..set.directories() {
        let found = set.directory(index);
        wanted[found.parent.unwrap_or(0)].entries.insert(found.name, Entry::Directory(index));
    }
    for index in 0..set.files() {
        let found = set.file(index);
        if found.present {
            wanted[found.directory].entries.insert(found.name, Entry::File(index));
        }
    }
    for index in 0..set.links() {
        let found = set.link(index);
        wanted[found.directory].entries.insert(found.name, Entry::Link(index));
    }
    wanted
}

fn all(set: &FileSet, missing: &mut Missing) {
    missing.directories = (1..set.directories()).collect();
    missing.files = (0..set.files()).filter(|index| set.file(*index).present).collect();
    missing.links = (0..set.links()).collect();
}

/// Looks at a directory that is there, and at all below it; what is there too much is removed.
fn compare(
    path: &Path,
    set: &FileSet,
    wanted: &[Wanted],
    index: usize,
    missing: &mut Missing,
) -> io::Result<()> {
    // A link in a directory's place leads out of what is ours.
    if !path.symlink_metadata()?.is_dir() {
        return Err(io::Error::other(format!("{} is no directory; remove it", path.display())));
    }
    let mut expected = wanted[index].entries.clone();
    for found in fs::read_dir(path)? {
        let found = found?;
        let entry = found.file_name().to_str().and_then(|name| expected.get(name).copied());
        let kind = found.file_type()?;
        let good = match entry {
            Some(Entry::Directory(_)) => kind.is_dir(),
            Some(Entry::File(file)) => kind.is_file() && found.metadata()?.size() == set.file(file).bytes,
            Some(Entry::Link(link)) => {
                kind.is_symlink()
                    && fs::read_link(found.path())?.as_os_str().as_bytes() == set.link(link).to.as_bytes()
            }
            None => false,
        };
        if good {
            if let Some(Entry::Directory(below)) = entry {
                compare(&found.path(), set, wanted, below, missing)?;
            }
            expected.remove(&*found.file_name().to_string_lossy());
        } else if kind.is_dir() {
            fs::remove_dir_all(found.path())?;
        } else if !(kind.is_file() && matches!(entry, Some(Entry::File(_)))) {
            fs::remove_file(found.path())?;
        }
    }
    for entry in expected.into_values() {
        lacking(entry, wanted, missing);
    }
    Ok(())
}

fn lacking(entry: Entry, wanted: &[Wanted], missing: &mut Missing) {
    match entry {
        Entry::File(file) => missing.files.push(file),
        Entry::Link(link) => missing.links.push(link),
        Entry::Directory(index) => {
            missing.directories.push(index);
            wanted[index].entries.values().for_each(|entry| lacking(*entry, wanted, missing));
        }
    }
}

fn need(root: &Path, set: &FileSet, missing: &Missing, space: &Space) -> Need {
    let mut need = Need { bytes: 0, nodes: 1 };
    let blocks = |bytes: u64| bytes.next_multiple_of(space.block);
    for file in &missing.files {
        let there = root.join(set.path_of_file(*file)).symlink_metadata();
        need.bytes += blocks(set.file(*file).bytes);
        match there {
            Ok(there) => need.bytes = need.bytes.saturating_sub(there.blocks() * 512),
            Err(_) => need.nodes += 1,
        }
    }
    need.nodes += (missing.directories.len() + missing.links.len()) as u64;
    need.bytes += missing.directories.len() as u64 * space.block;
    need
}

fn make(root: &Path, set: &FileSet, missing: &Missing, data: &Data) -> io::Result<()> {
    let mut directories = missing.directories.clone();
    // Parents have lower numbers.
    directories.sort_unstable();
    for index in directories {
        fs::create_dir(root.join(set.path_of_directory(index)))?;
    }
    let mut files = missing.files.clone();
    files.sort_unstable();
    let mut progress = Progress::new();
    for (done, file) in files.iter().enumerate() {
        fill(&root.join(set.path_of_file(*file)), *file as u64, set.file(*file).bytes, data)?;
        progress.tell(done, files.len());
    }
    for link in &missing.links {
        symlink(&set.link(*link).to, root.join(set.path_of_link(*link)))?;
    }
    progress.end();
    Ok(())
}

/// A file of that size, with bytes of its own.
fn fill(path: &Path, number: u64, bytes: u64, data: &Data) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file: File =
        options.write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let mut done = 0;
    while done < bytes {
        let piece = data.piece((number << 24) + done / MOST as u64, (bytes - done).min(MOST as u64) as usize);
        file.write_all(piece)?;
        done += piece.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
#[path = "populate_tests.rs"]
mod tests;
