//! The file set on disk: what is there is compared with what should be, and put right.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use etude_options::Failed;
use etude_workload::{FileSet, Object};

use crate::file_set::incompressible_data::{Data, MOST};
use crate::file_set::population::{Need, Population, Room};
use crate::report::progress::Progress;

/// Where the file set of that name and seed lies in the user's directory: all below it is ours, and nothing else is touched.
pub(crate) fn root_of(directory: &Path, name: &str, seed: u64) -> PathBuf {
    directory.join(format!("etude-load-{name}-{seed}"))
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
    let population = Population::new(set.clone());
    let exists = root.symlink_metadata().is_ok();
    let missing = if exists {
        missing(root, &population).map_err(refused)?
    } else {
        population.all_at_first().skip(1).collect()
    };
    let room = room_in(directory).map_err(refused)?;
    need(root, &population, &missing, room.block).check(&room).map_err(|line| {
        let help =
            "name a directory with more room, a lower --rate or --sized-for, or a smaller set by --set";
        (format!("--directory {}: {line}; {help}", directory.display()), 5)
    })?;
    if !exists {
        fs::create_dir(root).map_err(refused)?;
    }
    make(root, &population, &missing, data).map_err(refused)
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

/// Objects that are missing below a root that exists, directories after their parents; also files of a wrong size.
/// Surplus objects are removed.
fn missing(root: &Path, population: &Population) -> io::Result<Vec<Object>> {
    let mut missing = Vec::new();
    compare(root, population, &population.contents(), 0, &mut missing)?;
    missing.sort_unstable_by_key(|object| population.numbers.number(*object));
    Ok(missing)
}

/// Looks at a directory that exists, and at all below it.
fn compare(
    path: &Path,
    population: &Population,
    contents: &[Vec<Object>],
    index: usize,
    missing: &mut Vec<Object>,
) -> io::Result<()> {
    // A link in a directory's place leads out of what is ours.
    if !path.symlink_metadata()?.is_dir() {
        return Err(io::Error::other(format!("{} is no directory; remove it", path.display())));
    }
    let set = &population.set;
    let mut expected: HashMap<String, Object> =
        contents[index].iter().map(|object| (population.place(*object).1, *object)).collect();
    for found in fs::read_dir(path)? {
        let found = found?;
        let object = found.file_name().to_str().and_then(|name| expected.get(name).copied());
        let kind = found.file_type()?;
        let good = match object {
            Some(Object::Directory(_)) => kind.is_dir(),
            Some(Object::File(file)) => kind.is_file() && found.metadata()?.size() == set.file(file).bytes,
            Some(Object::Link(link)) => {
                kind.is_symlink()
                    && fs::read_link(found.path())?.as_os_str().as_bytes() == set.link(link).to.as_bytes()
            }
            None => false,
        };
        if good {
            if let Some(Object::Directory(below)) = object {
                compare(&found.path(), population, contents, below, missing)?;
            }
            expected.remove(&*found.file_name().to_string_lossy());
        } else if kind.is_dir() {
            fs::remove_dir_all(found.path())?;
        } else if !(kind.is_file() && matches!(object, Some(Object::File(_)))) {
            fs::remove_file(found.path())?;
        }
    }
    expected.into_values().for_each(|object| lacking(object, contents, missing));
    Ok(())
}

/// An object is missing, and so is all that is in it.
fn lacking(object: Object, contents: &[Vec<Object>], missing: &mut Vec<Object>) {
    missing.push(object);
    if let Object::Directory(index) = object {
        contents[index].iter().for_each(|inside| lacking(*inside, contents, missing));
    }
}

fn need(root: &Path, population: &Population, missing: &[Object], block: u64) -> Need {
    let mut need = Need { bytes: 0, nodes: 1 };
    for object in missing {
        let existing = match object {
            Object::File(_) => root.join(population.path(*object)).symlink_metadata().ok(),
            _ => None,
        };
        need.add(population, *object, existing.map(|found| found.blocks() * 512), block);
    }
    need
}

fn make(root: &Path, population: &Population, missing: &[Object], data: &Data) -> io::Result<()> {
    let set = &population.set;
    let files = missing.iter().filter(|object| matches!(object, Object::File(_))).count();
    let (mut progress, mut done) = (Progress::new(), 0);
    for object in missing {
        let path = root.join(population.path(*object));
        match *object {
            Object::Directory(_) => fs::create_dir(path)?,
            Object::File(file) => {
                fill(&path, file as u64, set.file(file).bytes, data)?;
                progress.tell(done, files);
                done += 1;
            }
            Object::Link(link) => symlink(&set.link(link).to, path)?,
        }
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

/// Space and inodes that a file system has left for this user.
///
/// # Errors
/// The file system does not say (statvfs(3)).
pub(crate) fn room_in(directory: &Path) -> io::Result<Room> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: the path lives through the call, and what is filled has room for it.
    let found = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut found) != 0 {
            return Err(io::Error::last_os_error());
        }
        found
    };
    let block = found.f_frsize.max(1);
    let bytes = found.f_bavail.saturating_mul(block);
    Ok(Room { bytes: Some(bytes), nodes: (found.f_files > 0).then_some(found.f_favail), block })
}

#[cfg(test)]
#[path = "populate_tests.rs"]
mod tests;
