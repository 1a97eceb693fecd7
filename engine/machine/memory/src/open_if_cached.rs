//! Opening a file only if that disturbs nothing: if all that leads to it is in memory already.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::resident::FLAGS;

/// The kernel may also say that it would have to look where it only met a change at that instant.
const ATTEMPTS: usize = 3;

/// Whether this kernel can (since Linux 5.12; not in containers whose filter does not know the call).
pub fn is_possible() -> bool {
    match call(c"/".to_owned(), libc::O_PATH | libc::O_CLOEXEC) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(libc::EAGAIN),
    }
}

/// None where the kernel would have to ask the file system for a name on the way.
pub fn open_cached(path: &Path) -> io::Result<Option<File>> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut flags = libc::O_RDONLY | FLAGS;
    let mut attempts = ATTEMPTS;
    loop {
        match call(name.clone(), flags) {
            Ok(file) => return Ok(Some(file)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN) if attempts > 1 => attempts -= 1,
                Some(libc::EAGAIN) => return Ok(None),
                Some(libc::EPERM) if flags & libc::O_NOATIME != 0 => flags &= !libc::O_NOATIME,
                _ => return Err(error),
            },
        }
    }
}

fn call(name: CString, flags: i32) -> io::Result<File> {
    // SAFETY: a struct of numbers; the members without a meaning yet are 0.
    let mut how: libc::open_how = unsafe { mem::zeroed() };
    how.flags = flags as u64;
    how.resolve = libc::RESOLVE_CACHED;
    let size = mem::size_of::<libc::open_how>();
    // SAFETY: a C string and a struct of this size, both alive through the call.
    let found = unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, name.as_ptr(), &how, size) };
    match i32::try_from(found) {
        // SAFETY: a new descriptor that nobody else has.
        Ok(number) if number >= 0 => Ok(unsafe { File::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}
