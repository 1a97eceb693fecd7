//! Evicting single files and devices from the page cache.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::Failed;
use crate::look::{measured, refused};
use crate::resident::resident;
use crate::walk::{Seen, walk};

/// Evicts a file, a block device or all files below a directory; bytes of it that are still in the page cache: what is
/// mapped or in use by others stays.
///
/// # Errors
/// There is no such path (2), or it may not be evicted (5).
pub fn evict(path: &Path) -> Result<u64, Failed> {
    let mut left = 0;
    walk(path, &mut Seen::default(), &mut |file| {
        left += one(file.path).map_err(|error| refused(file.path, &error))?;
        Ok(())
    })?;
    Ok(left)
}

fn one(path: &Path) -> io::Result<u64> {
    let (file, bytes, metadata) = measured(path)?;
    write_back(&file)?;
    if metadata.file_type().is_block_device() {
        // SAFETY: a request without an argument.
        if unsafe { libc::ioctl(file.as_raw_fd(), BLKFLSBUF, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
    } else {
        // SAFETY: a call on numbers; length 0 means to the end.
        match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
            0 => {}
            number => return Err(io::Error::from_raw_os_error(number)),
        }
    }
    Ok(resident(&file, &metadata, bytes, None)?.0)
}

const BLKFLSBUF: libc::c_ulong = 0x1261;

/// Only pages that are not dirty are evicted. Read-only file systems have nothing to write back.
fn write_back(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => Err(error),
        _ => Ok(()),
    }
}
