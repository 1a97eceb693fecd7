//! How much of an open file is in the page cache.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr;

use serde::Serialize;

/// By which call it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Since Linux 6.5.
    Cachestat,
    Mincore,
}

/// Neither waits (a pipe that took the file's place), nor changes when the file was last read.
pub const FLAGS: i32 = libc::O_NONBLOCK | libc::O_NOATIME | libc::O_CLOEXEC | libc::O_NOCTTY;

/// Opens a file as any program does: what leads to it is looked up, and loaded if need be.
pub fn open_plainly(path: &Path) -> io::Result<File> {
    let open = |flags| File::options().read(true).custom_flags(flags).open(path);
    open(FLAGS).or_else(|error| match error.raw_os_error() {
        Some(libc::EPERM) => open(FLAGS & !libc::O_NOATIME),
        _ => Err(error),
    })
}

/// Whether a regular file or a block device was opened: nothing else has pages that could be counted.
pub fn has_pages(metadata: &Metadata) -> bool {
    metadata.is_file() || metadata.file_type().is_block_device()
}

/// Size of an open file or block device, B.
pub fn bytes_of(file: &File, metadata: &Metadata) -> io::Result<u64> {
    if !metadata.file_type().is_block_device() {
        return Ok(metadata.len());
    }
    let mut bytes = 0u64;
    // SAFETY: this request writes a u64.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut bytes) } {
        0 => Ok(bytes),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Size of a block device, B.
pub fn device_bytes(path: &Path) -> io::Result<u64> {
    let file = open_plainly(path)?;
    bytes_of(&file, &file.metadata()?)
}

const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;

/// Bytes of an open file of this size in the page cache, told by one call or, where there is none, by the other.
///
/// # Errors
/// Neither may be asked: the kernel tells owners, and those who may write, alone.
pub fn resident(file: &File, metadata: &Metadata, bytes: u64, how: Option<How>) -> io::Result<(u64, How)> {
    if how != Some(How::Mincore) {
        match cachestat(file) {
            Ok(pages) => return Ok((bytes.min(pages.saturating_mul(page())), How::Cachestat)),
            // Seccomp filters of containers say EPERM to calls that they do not know.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {}
            Err(error) => return Err(error),
        }
    }
    if !may_ask(file, metadata) {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok((bytes.min(mincore(file, bytes)?.saturating_mul(page())), How::Mincore))
}

/// One number on all processors; libc has no name for it yet.
const SYS_CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    /// 0: to the end.
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Counts {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Pages in the cache.
fn cachestat(file: &File) -> io::Result<u64> {
    let range = Range { offset: 0, length: 0 };
    let mut counts = Counts::default();
    // SAFETY: both structs are those of the kernel, and live through the call.
    match unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut counts, 0) } {
        0 => Ok(counts.cache),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Mincore tells everybody else that all is there (since Linux 5.2).
fn may_ask(file: &File, metadata: &Metadata) -> bool {
    // SAFETY: it has no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    // SAFETY: an open descriptor and an empty C string, which means the descriptor itself.
    let writable = || unsafe {
        libc::faccessat(file.as_raw_fd(), c"".as_ptr(), libc::W_OK, libc::AT_EMPTY_PATH | libc::AT_EACCESS)
            == 0
    };
    user == 0 || user == metadata.uid() || writable()
}

/// What is mapped at once, B; a byte of answer for each page.
const MAPPED: u64 = 1 << 30;

/// Pages in the cache, by a mapping of which no page is touched.
fn mincore(file: &File, bytes: u64) -> io::Result<u64> {
    let mut pages = 0;
    let mut answer = vec![0u8; (MAPPED.min(bytes) / page() + 1) as usize];
    let mut offset = 0;
    while offset < bytes {
        let length = MAPPED.min(bytes - offset) as usize;
        pages += mapped(file, offset, length, &mut answer)?;
        offset += length as u64;
    }
    Ok(pages)
}

fn mapped(file: &File, offset: u64, length: usize, answer: &mut [u8]) -> io::Result<u64> {
    let (protection, flags) = (libc::PROT_NONE, libc::MAP_SHARED);
    let offset = offset.try_into().map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a new mapping where the kernel likes, that nobody reads.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, file.as_raw_fd(), offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let count = length.div_ceil(page() as usize);
    // SAFETY: the mapping of above, and an answer that has a byte for each of its pages.
    let done = unsafe { libc::mincore(start, length, answer[..count].as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping of above, used by nobody.
    unsafe { libc::munmap(start, length) };
    if done != 0 {
        return Err(error);
    }
    Ok(answer[..count].iter().filter(|page| **page & 1 == 1).count() as u64)
}

/// Size of a page, B.
fn page() -> u64 {
    // SAFETY: it has no arguments but a name.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}
