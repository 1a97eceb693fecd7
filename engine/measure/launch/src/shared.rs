//! Memory that processes share, zeroed at first.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

use crate::sys;

/// A mapping, until it is dropped.
pub(crate) struct Shared {
    map: NonNull<libc::c_void>,
    bytes: usize,
}

impl Shared {
    /// New memory, for this process and its forks.
    pub fn anonymous(bytes: usize) -> io::Result<Shared> {
        Shared::map(bytes, libc::MAP_ANONYMOUS, -1)
    }

    /// The first `bytes` of a file, which has them.
    pub fn of(file: &File, bytes: usize) -> io::Result<Shared> {
        Shared::map(bytes, 0, file.as_raw_fd())
    }

    fn map(bytes: usize, flags: libc::c_int, fd: RawFd) -> io::Result<Shared> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, whose place the kernel chooses, touches no existing memory.
        let map =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED | flags, fd, 0) };
        if map == libc::MAP_FAILED {
            return Err(sys::last_error());
        }
        let map = NonNull::new(map).ok_or_else(sys::last_error)?;
        Ok(Shared { map, bytes })
    }

    /// What lies at `offset`.
    ///
    /// # Safety `offset` is a multiple of T's alignment, and T is valid whatever its bytes are and changed
    /// by atomic operations only.
    pub unsafe fn at<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.bytes, "outside the shared memory");
        // SAFETY: in bounds; the rest by contract. A mapping begins at a page, so that the offset aligns.
        unsafe { self.map.byte_add(offset).cast::<T>().as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives us.
        unsafe { libc::munmap(self.map.as_ptr(), self.bytes) };
    }
}
