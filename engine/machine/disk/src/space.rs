//! How full a file system is: as `df` says it, used / (used + available to everybody).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::{Failed, machine};

/// XFS frees what is deleted behind one's back, some 10 ms later.
const AGAIN: Duration = Duration::from_millis(30);
const MOST_AGAIN: u32 = 50;

/// Bytes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub used: u64,
    /// To everybody.
    pub available: u64,
    /// To root, too: ext4 keeps 5 % for it.
    pub free: u64,
    /// What space is given in.
    pub block: u64,
}

impl Space {
    /// # Errors
    /// There is no such path, or nothing is known of its space.
    pub fn of(path: &Path) -> Result<Space, Failed> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| (format!("{}: no path: it holds a zero byte", path.display()), 2))?;
        let mut found = MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: a C string, and a place for the answer.
        if unsafe { libc::statvfs(name.as_ptr(), found.as_mut_ptr()) } != 0 {
            return Err(machine(path.display(), &io::Error::last_os_error()));
        }
        // SAFETY: the kernel filled it.
        let found = unsafe { found.assume_init() };
        let block = found.f_frsize.max(1);
        let space = Space {
            used: found.f_blocks.saturating_sub(found.f_bfree) * block,
            available: found.f_bavail * block,
            free: found.f_bfree * block,
            block,
        };
        if space.capacity() == 0 {
            return Err((format!("{}: its file system has no size, it cannot be filled", path.display()), 5));
        }
        Ok(space)
    }

    /// When all is written and what was deleted is free: as `of`, once two looks in a row agree.
    ///
    /// # Errors
    /// As `of`, or what could not be written.
    pub fn settled(path: &Path, file: &File) -> Result<Space, Failed> {
        sync(file).map_err(|error| machine(path.display(), &error))?;
        let mut before = Space::of(path)?;
        for _ in 0..MOST_AGAIN {
            sleep(AGAIN);
            let now = Space::of(path)?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(before)
    }

    /// What can be used by everybody: of this a level is a share.
    pub fn capacity(&self) -> u64 {
        self.used + self.available
    }

    pub fn level(&self) -> f64 {
        self.used as f64 / self.capacity() as f64
    }

    /// What this user can still have.
    pub fn mine(&self) -> u64 {
        // SAFETY: no arguments, and it cannot fail.
        if unsafe { libc::geteuid() } == 0 { self.free } else { self.available }
    }
}

/// Wait until all of the file system that a file is on is written: before that, delayed allocation hides what is used.
///
/// # Errors
/// What could not be written.
pub fn sync(file: &File) -> io::Result<()> {
    // SAFETY: an open descriptor.
    if unsafe { libc::syncfs(file.as_raw_fd()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
