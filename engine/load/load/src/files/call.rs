//! Each kind of request as system calls, relative to the descriptor of the file set's root (docs/howto/file-load.md has the table).

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use etude_workload::{Kind, Object, Operation};

use crate::file_set::incompressible_data::{Data, MOST};
use crate::files::errno;
use crate::files::handles::{Handle, Handles};
use crate::files::paths::Paths;

/// The number of an error.
pub(crate) type Errno = i32;

/// What all threads share.
pub(crate) struct Place {
    pub root: OwnedFd,
    pub paths: Paths,
    pub handles: Handles,
    pub data: Data,
}

/// One thread's: it makes calls.
pub(crate) struct Caller {
    place: Arc<Place>,
    buffer: Vec<u8>,
    /// Writes so far: each writes other bytes.
    turn: u64,
}

fn checked(result: isize) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| errno::last())
}

impl Caller {
    /// `number` is its own.
    pub fn new(place: Arc<Place>, number: u64) -> Caller {
        Caller { place, buffer: vec![0; 64 << 10], turn: number << 32 }
    }

    /// Makes the request's calls. A read that ends early at the end of its file is good.
    ///
    /// # Errors
    /// The first error, by its number.
    pub fn perform(&mut self, operation: &Operation) -> Result<(), Errno> {
        match (operation.kind, operation.object) {
            (Kind::Read, Object::File(file)) => self.read(file, operation),
            (Kind::Write, Object::File(file)) => self.write(file, operation),
            (Kind::Commit, Object::File(file)) => {
                let handle = self.place.open(file, false)?;
                // SAFETY: the descriptor is open as long as `handle` lives.
                checked(unsafe { libc::fdatasync(handle.fd.as_raw_fd()) } as isize).map(drop)
            }
            (Kind::Setattr, Object::File(file)) if operation.ordered => self.place.empty(file),
            (Kind::Create, Object::File(file)) => self.place.create(file),
            (Kind::Remove, Object::File(file)) => {
                self.place.handles.forget(file);
                self.place.unlink(operation.object, 0)
            }
            (Kind::Rename, Object::File(file)) => self.place.rename(file, operation.offset),
            (Kind::Readdir, _) => self.list(operation, false),
            (Kind::Readdirplus, _) => self.list(operation, true),
            _ => self.place.by_name(operation),
        }
    }

    fn read(&mut self, file: usize, operation: &Operation) -> Result<(), Errno> {
        let handle = self.place.open(file, false)?;
        let bytes = operation.bytes as usize;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        let into = self.buffer.as_mut_ptr().cast();
        // SAFETY: the buffer has so many bytes; the descriptor is open as long as `handle` lives.
        let got =
            unsafe { libc::pread64(handle.fd.as_raw_fd(), into, bytes, operation.offset.cast_signed()) };
        checked(got).map(drop)
    }

    fn write(&mut self, file: usize, operation: &Operation) -> Result<(), Errno> {
        let handle = self.place.open(file, true)?;
        let fd = handle.fd.as_raw_fd();
        let mut done = 0;
        while done < operation.bytes as usize {
            self.turn += 1;
            let piece = self.place.data.piece(self.turn, (operation.bytes as usize - done).min(MOST));
            let at = (operation.offset + done as u64).cast_signed();
            // SAFETY: the piece lives through the call; the descriptor is open as long as `handle` lives.
            done += checked(unsafe { libc::pwrite64(fd, piece.as_ptr().cast(), piece.len(), at) })?;
        }
        if operation.stable {
            // SAFETY: as above.
            checked(unsafe { libc::fdatasync(fd) } as isize)?;
        }
        Ok(())
    }

    /// The first entries of a directory, for which there is room in so many bytes.
    fn list(&mut self, operation: &Operation, plus: bool) -> Result<(), Errno> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let directory = self.place.open_at(self.place.paths.get(operation.object), flags)?;
        let room = (operation.bytes as usize).clamp(1024, 1 << 20);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let into = self.buffer.as_mut_ptr();
        // SAFETY: the buffer has so many bytes, of which the kernel fills as many as it says.
        let filled = checked(
            unsafe { libc::syscall(libc::SYS_getdents64, directory.as_raw_fd(), into, room) } as isize,
        )?;
        if plus {
            for name in entries(&self.buffer[..filled]) {
                match stat_at(directory.as_raw_fd(), name) {
                    // It may have gone since.
                    Err(error) if error != libc::ENOENT => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Place {
    /// Requests that need a path, and no buffer.
    fn by_name(&self, operation: &Operation) -> Result<(), Errno> {
        let (root, path) = (self.root.as_raw_fd(), self.paths.get(operation.object));
        let name = path.as_ptr();
        let done = match operation.kind {
            Kind::Getattr => return stat_at(root, path),
            // SAFETY: the path lives through the call; `statx` is plain data, which the kernel fills.
            Kind::Lookup => unsafe {
                let mut found: libc::statx = std::mem::zeroed();
                let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_STATX_DONT_SYNC;
                libc::statx(root, name, flags, 0, &mut found)
            },
            // SAFETY: the path lives through the call.
            Kind::Access => unsafe { libc::faccessat(root, name, libc::R_OK, 0) },
            // SAFETY: the path lives through the call; the kernel fills at most the length that it is told.
            Kind::Readlink => unsafe {
                let mut target = [0_u8; 4096];
                libc::readlinkat(root, name, target.as_mut_ptr().cast(), target.len()).min(0) as i32
            },
            // Now, and now: no time is put back by a load.
            // SAFETY: the path lives through the call; without times, it reads none.
            Kind::Setattr => unsafe {
                libc::utimensat(root, name, std::ptr::null(), libc::AT_SYMLINK_NOFOLLOW)
            },
            // SAFETY: the descriptor is open; `statfs` is plain data, which the kernel fills.
            Kind::Fsstat => unsafe {
                let mut found: libc::statfs = std::mem::zeroed();
                libc::fstatfs(root, &mut found)
            },
            // SAFETY: the path lives through the call.
            Kind::Mkdir => unsafe { libc::mkdirat(root, name, 0o777) },
            Kind::Rmdir => return self.unlink(operation.object, libc::AT_REMOVEDIR),
            Kind::Remove => return self.unlink(operation.object, 0),
            // SAFETY: both paths live through the call.
            Kind::Symlink => unsafe { libc::symlinkat(SYMLINK_TARGET.as_ptr(), root, name) },
            // Kinds that are about a file's contents, of what is no file: no stream has them.
            _ => return Err(libc::EINVAL),
        };
        checked(done as isize).map(drop)
    }

    /// The file's descriptor, kept or new. A file that may only be read is opened so where that suffices.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self, file: usize, write: bool) -> Result<Arc<Handle>, Errno> {
        if let Some(handle) = self.handles.get(file).filter(|handle| handle.writable || !write) {
            return Ok(handle);
        }
        let path = self.paths.get(Object::File(file));
        let handle = match self.open_at(path, libc::O_RDWR | libc::O_NOFOLLOW) {
            Err(libc::EROFS | libc::EACCES) if !write => {
                Handle { fd: self.open_at(path, libc::O_RDONLY | libc::O_NOFOLLOW)?, writable: false }
            }
            found => Handle { fd: found?, writable: true },
        };
        let handle = Arc::new(handle);
        self.handles.put(file, &handle);
        Ok(handle)
    }

    /// Takes a descriptor that was opened for this file.
    pub fn keep(&self, file: usize, fd: RawFd) {
        // SAFETY: the kernel has just made it, and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        self.handles.put(file, &Arc::new(Handle { fd, writable: true }));
    }

    fn create(&self, file: usize) -> Result<(), Errno> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let fd = self.open_at(self.paths.get(Object::File(file)), flags)?;
        self.handles.put(file, &Arc::new(Handle { fd, writable: true }));
        Ok(())
    }

    /// A file that has grown as far as it may begins anew.
    fn empty(&self, file: usize) -> Result<(), Errno> {
        let handle = self.open(file, true)?;
        // SAFETY: the descriptor is open as long as `handle` lives.
        checked(unsafe { libc::ftruncate64(handle.fd.as_raw_fd(), 0) } as isize).map(drop)
    }

    /// Of a file's name into that of file number `to`.
    fn rename(&self, file: usize, to: u64) -> Result<(), Errno> {
        let to = usize::try_from(to).unwrap_or(usize::MAX);
        self.handles.forget(file);
        let root = self.root.as_raw_fd();
        let (from, to) = (self.paths.get(Object::File(file)), self.paths.get(Object::File(to)));
        // SAFETY: both paths live through the call.
        checked(unsafe { libc::renameat(root, from.as_ptr(), root, to.as_ptr()) } as isize).map(drop)
    }

    fn unlink(&self, object: Object, flags: i32) -> Result<(), Errno> {
        let path = self.paths.get(object);
        // SAFETY: the path lives through the call.
        checked(unsafe { libc::unlinkat(self.root.as_raw_fd(), path.as_ptr(), flags) } as isize).map(drop)
    }

    fn open_at(&self, path: &CStr, flags: i32) -> Result<OwnedFd, Errno> {
        // SAFETY: the path lives through the call; the new descriptor is owned by nobody else.
        unsafe {
            let fd = libc::openat(self.root.as_raw_fd(), path.as_ptr(), flags | libc::O_CLOEXEC, 0o666);
            checked(fd as isize)?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

/// What a link that a request makes points to: nothing follows it.
pub(crate) const SYMLINK_TARGET: &CStr = c"etude";

fn stat_at(directory: RawFd, path: &CStr) -> Result<(), Errno> {
    // SAFETY: the path lives through the call, and what is filled has room for it.
    let done = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        libc::fstatat(directory, path.as_ptr(), &mut found, libc::AT_SYMLINK_NOFOLLOW)
    };
    checked(done as isize).map(drop)
}

/// Where the name begins in an entry of getdents64(2), and where its length stands.
const NAME: usize = 19;
const LENGTH: usize = 16;

/// The names of a directory's entries, as the kernel filled them in.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = &CStr> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*rest.get(LENGTH)?, *rest.get(LENGTH + 1)?]));
        let name = CStr::from_bytes_until_nul(rest.get(NAME..length)?).ok()?;
        rest = &rest[length..];
        Some(name)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_bytes_are_taken_for_entries_the_reading_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(entries(&bytes).count() <= bytes.len());
        }
    }
}
