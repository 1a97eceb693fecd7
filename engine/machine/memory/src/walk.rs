//! The files below a path, without leaving its file system and without following links.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{self, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Failed;
use crate::listing::Listed;
use crate::resident::device_bytes;

/// Files that were met already: a file with two names, or below two of the paths, is one.
#[derive(Default)]
pub struct Seen(HashSet<(u64, u64)>);

/// What is done with each file; it may fail.
pub type Sink<'a> = &'a mut dyn FnMut(&Listed) -> Result<(), Failed>;

/// Each regular file below `path`, directories in the order of their names; `path` itself if it is one, or a block device.
/// A link that is `path` itself is followed.
///
/// # Errors
/// There is no such path (2); it cannot be read (5); what the sink says.
pub fn walk(path: &Path, seen: &mut Seen, sink: Sink) -> Result<(), Failed> {
    let whole = fs::canonicalize(path).map_err(|error| missing(path, &error))?;
    let metadata = fs::metadata(&whole).map_err(|error| missing(path, &error))?;
    if metadata.file_type().is_block_device() {
        let bytes = device_bytes(&whole).map_err(|error| unreadable(&whole, &error))?;
        return sink(&Listed { bytes, path: &whole });
    }
    if metadata.is_file() {
        return regular(&whole, &metadata, seen, sink);
    }
    if !metadata.is_dir() {
        return Err((
            format!("{}: expected a directory, a regular file or a block device", path.display()),
            2,
        ));
    }
    let mount = Mount::of(&whole).map_err(|error| unreadable(&whole, &error))?;
    let mut directories = vec![whole];
    while let Some(directory) = directories.pop() {
        let below = each_file(&directory, seen, sink)?;
        directories
            .extend(below.into_iter().rev().filter(|path| Mount::of(path).is_ok_and(|at| at == mount)));
    }
    Ok(())
}

/// Gives the directory's files to the sink; the directories in it. What vanishes meanwhile is passed over.
fn each_file(directory: &Path, seen: &mut Seen, sink: Sink) -> Result<Vec<PathBuf>, Failed> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| unreadable(directory, &error))?,
    };
    let entries: io::Result<Vec<_>> = entries.collect();
    let mut entries = entries.map_err(|error| unreadable(directory, &error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut directories = Vec::new();
    for entry in entries {
        let path = entry.path();
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directories.push(path),
            Ok(metadata) if metadata.is_file() => regular(&path, &metadata, seen, sink)?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(&path, &error)),
            _ => {}
        }
    }
    Ok(directories)
}

fn regular(path: &Path, metadata: &Metadata, seen: &mut Seen, sink: Sink) -> Result<(), Failed> {
    if seen.0.insert((metadata.dev(), metadata.ino())) {
        sink(&Listed { bytes: metadata.len(), path })?;
    }
    Ok(())
}

fn missing(path: &Path, error: &io::Error) -> Failed {
    match error.kind() {
        io::ErrorKind::PermissionDenied => unreadable(path, error),
        _ => (format!("{}: {error}", path.display()), 2),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failed {
    (format!("{}: {error}; run it as root, or as who owns the files", path.display()), 5)
}

/// What tells one mounted file system from another.
#[derive(PartialEq, Eq)]
enum Mount {
    /// Since Linux 5.8. Subvolumes of Btrfs are of one mount, though each has a device number of its own.
    Number(u64),
    Device(u32, u32),
}

impl Mount {
    fn of(path: &Path) -> io::Result<Mount> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let mut found = MaybeUninit::<libc::statx>::zeroed();
        let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
        // SAFETY: a C string, and a place for the answer.
        let done = unsafe {
            libc::statx(libc::AT_FDCWD, name.as_ptr(), flags, libc::STATX_MNT_ID, found.as_mut_ptr())
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel filled it, or left zeros.
        let found = unsafe { found.assume_init() };
        Ok(if found.stx_mask & libc::STATX_MNT_ID != 0 {
            Mount::Number(found.stx_mnt_id)
        } else {
            Mount::Device(found.stx_dev_major, found.stx_dev_minor)
        })
    }
}
