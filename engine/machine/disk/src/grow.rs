//! Space for the next piece of a file, taken now: a file system that delays allocation would otherwise join pieces that
//! were written in turn, and nothing would be in fragments.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// How space is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Taken {
    /// By `fallocate`, which gives a piece exactly, at once.
    Fallocate,
    /// The file system has none (ext2, ext3, NFS 3): each piece is written and synced.
    Sync,
}

/// Whether an error says that there is no more space.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Whether the file system has no `fallocate`.
pub fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Take `bytes` from `offset` on; the file becomes as long.
///
/// # Errors
/// There is no space (nothing is said of how much was taken before), or the file system has no such call.
pub fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    loop {
        // SAFETY: an open descriptor.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, bytes as i64) };
        if done == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted || crate::ending::ended().is_some() {
            return Err(error);
        }
    }
}

/// Take as much as there is, up to `most`, in pieces that become smaller towards the end; how much it was.
///
/// # Errors
/// Anything but no space.
pub fn allocate_most(file: &File, offset: u64, most: u64) -> io::Result<u64> {
    let (mut taken, mut piece) = (0, (64 << 20) as u64);
    while taken < most && piece >= crate::BLOCK && crate::ending::ended().is_none() {
        match allocate(file, offset + taken, piece.min(most - taken)) {
            Ok(()) => taken += piece.min(most - taken),
            Err(error) if is_full(&error) => piece /= 4,
            Err(error) => return Err(error),
        }
    }
    file.set_len(offset + taken)?; // a call that failed may have left a part behind
    Ok(taken)
}
