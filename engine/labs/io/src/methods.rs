//! The ways of moving bytes: system calls, a mapping, io_uring.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use etude_micro::exit::{Fail, IOERR, OSERR, said};
use io_uring::{IoUring, opcode, types};

use crate::timed::Transfer;

/// read(2) and write(2), or pread(2) and pwrite(2) where `AT` an offset.
pub struct Calls<const WRITE: bool, const AT: bool> {
    file: RawFd,
    buffer: *mut u8,
}

impl<const WRITE: bool, const AT: bool> Calls<WRITE, AT> {
    /// `buffer` has as many bytes as are ever asked for.
    pub fn new(file: &File, buffer: *mut u8) -> Self {
        Calls { file: file.as_raw_fd(), buffer }
    }
}

impl<const WRITE: bool, const AT: bool> Transfer for Calls<WRITE, AT> {
    #[inline(always)]
    fn transfer(&mut self, offset: u64, bytes: usize) -> isize {
        let (file, buffer, offset) = (self.file, self.buffer.cast(), offset as libc::off64_t);
        // SAFETY: the buffer has so many bytes, and nothing else uses it.
        unsafe {
            match (WRITE, AT) {
                (false, false) => libc::read(file, buffer, bytes),
                (true, false) => libc::write(file, buffer, bytes),
                (false, true) => libc::pread64(file, buffer, bytes, offset),
                (true, true) => libc::pwrite64(file, buffer, bytes, offset),
            }
        }
    }

    fn sync(&mut self) -> i32 {
        // SAFETY: a call on a number.
        unsafe { libc::fsync(self.file) }
    }
}

/// Copies between the buffer and a shared mapping of the file.
pub struct Mapped<const WRITE: bool> {
    file: RawFd,
    mapping: *mut u8,
    bytes: usize,
    buffer: *mut u8,
}

impl<const WRITE: bool> Mapped<WRITE> {
    /// Maps the first `bytes` of a file, none of whose pages is touched yet. `buffer` has as many bytes as are ever
    /// asked for at once.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn new(file: &File, path: &Path, bytes: u64, buffer: *mut u8) -> Result<Self, Fail> {
        say_when_a_page_is_missing(path);
        let protection = if WRITE { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let (file, bytes) = (file.as_raw_fd(), bytes as usize);
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing else.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(Fail::last(OSERR, format!("map {}; another --method may do", path.display())));
        }
        Ok(Mapped { file, mapping: mapping.cast(), bytes, buffer })
    }
}

impl<const WRITE: bool> Transfer for Mapped<WRITE> {
    #[inline(always)]
    fn transfer(&mut self, offset: u64, bytes: usize) -> isize {
        // SAFETY: offsets and lengths lie within the mapping, which no Rust value borrows; so they do in the buffer.
        unsafe {
            let place = self.mapping.add(offset as usize);
            let (from, to) = if WRITE { (self.buffer, place) } else { (place, self.buffer) };
            ptr::copy_nonoverlapping(from, to, bytes);
        }
        bytes as isize
    }

    fn sync(&mut self) -> i32 {
        // SAFETY: the mapping is our own.
        unsafe {
            if WRITE {
                libc::msync(self.mapping.cast(), self.bytes, libc::MS_SYNC)
            } else {
                libc::fsync(self.file)
            }
        }
    }
}

impl<const WRITE: bool> Drop for Mapped<WRITE> {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own, and not used any more.
        unsafe { libc::munmap(self.mapping.cast(), self.bytes) };
    }
}

static MISSING_PAGE: OnceLock<String> = OnceLock::new();

/// A page of a mapping that the kernel cannot provide is told by a signal, not by a result.
fn say_when_a_page_is_missing(path: &Path) {
    MISSING_PAGE.get_or_init(|| {
        format!(
            "FAIL: {}: a page of the mapping could not be provided: the file was cut off meanwhile, it has holes \
             and its file system is full, or its device failed\n",
            path.display()
        )
    });
    let handler: extern "C" fn(libc::c_int) = missing_page;
    // SAFETY: the handler does only what signal-safety(7) allows.
    unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) };
}

extern "C" fn missing_page(_signal: libc::c_int) {
    let text = MISSING_PAGE.get().map_or("", String::as_str);
    // SAFETY: both calls are async-signal-safe, and the text lives as long as the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::_exit(IOERR.into());
    }
}

/// io_uring with one request at a time: a submission, and a wait for its completion, in one system call.
pub struct Ring<const WRITE: bool> {
    ring: IoUring,
    file: RawFd,
    buffer: *mut u8,
}

impl<const WRITE: bool> Ring<WRITE> {
    /// `buffer` has as many bytes as are ever asked for.
    ///
    /// # Errors
    /// There is no io_uring here, or it is forbidden.
    pub fn new(file: &File, buffer: *mut u8) -> Result<Self, Fail> {
        let ring = IoUring::new(1).map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::ENOSYS) => "this kernel has none".to_owned(),
                Some(libc::EPERM | libc::EACCES) => {
                    "it is forbidden here (sysctl kernel.io_uring_disabled, or a seccomp filter)".to_owned()
                }
                _ => said(&error),
            };
            Fail::new(OSERR, format!("--method io_uring: {why}; choose another method"))
        })?;
        Ok(Ring { ring, file: file.as_raw_fd(), buffer })
    }
}

impl<const WRITE: bool> Transfer for Ring<WRITE> {
    #[inline(always)]
    fn transfer(&mut self, offset: u64, bytes: usize) -> isize {
        let (file, bytes) = (types::Fd(self.file), bytes as u32);
        let entry = if WRITE {
            opcode::Write::new(file, self.buffer, bytes).offset(offset).build()
        } else {
            opcode::Read::new(file, self.buffer, bytes).offset(offset).build()
        };
        // SAFETY: the buffer has so many bytes and lives until the completion below has come. The queue is empty, so
        // that there is room.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() || submit(&self.ring).is_err() {
            return -1;
        }
        match self.ring.completion().next().map_or(-libc::EIO, |entry| entry.result()) {
            result if result >= 0 => result as isize,
            failed => {
                set_errno(-failed);
                -1
            }
        }
    }

    fn sync(&mut self) -> i32 {
        // SAFETY: a call on a number.
        unsafe { libc::fsync(self.file) }
    }
}

/// Submits and waits for one completion; a signal (such as one that stops and continues us) does not end the wait.
#[inline(always)]
fn submit(ring: &IoUring) -> io::Result<usize> {
    loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            result => return result,
        }
    }
}

#[cold]
fn set_errno(number: i32) {
    // SAFETY: the place of `errno` is this thread's own.
    unsafe { *libc::__errno_location() = number };
}

#[cfg(test)]
#[path = "methods_tests.rs"]
mod tests;
