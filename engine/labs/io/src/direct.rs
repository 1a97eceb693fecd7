//! What O_DIRECT asks of transfers.

use std::fs::{self, File};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use etude_micro::exit::{Fail, OSERR};

use crate::blocks::Blocks;

/// Refuses transfers that are not aligned as the file needs it, where the kernel says how that is (statx(2) with
/// STATX_DIOALIGN: Linux 6.1 and later, not all file systems). The buffer begins with a page, which is enough.
///
/// # Errors
/// The file has no O_DIRECT, or a size is no multiple of what it needs.
pub fn check(file: &File, path: &Path, blocks: Blocks) -> Result<(), Fail> {
    match stated(file) {
        Some(0) => Err(Fail::new(
            OSERR,
            format!("{}: this file cannot be used with O_DIRECT; leave out -d", path.display()),
        )),
        Some(bytes) if !blocks.size.is_multiple_of(bytes) || !blocks.tail.is_multiple_of(bytes) => {
            Err(unaligned(path, blocks, bytes))
        }
        _ => Ok(()),
    }
}

/// What to say of transfers that the kernel refused with EINVAL.
pub fn refused(file: &File, path: &Path, blocks: Blocks) -> Fail {
    unaligned(path, blocks, stated(file).filter(|bytes| *bytes > 0).unwrap_or_else(|| logical_block(file)))
}

fn unaligned(path: &Path, blocks: Blocks, bytes: u64) -> Fail {
    let wrong = if blocks.tail > 0 { blocks.tail } else { blocks.size };
    let line = format!(
        "{}: O_DIRECT needs transfers in multiples of {bytes} bytes here, and one has {wrong}; change -b or -t, or \
         leave out -d",
        path.display()
    );
    Fail::new(OSERR, line)
}

/// The alignment of offsets and sizes in bytes; 0 if the file has no O_DIRECT, None if the kernel does not say.
fn stated(file: &File) -> Option<u64> {
    // SAFETY: `libc::statx` is numbers alone, for which zeros are values; the path is an empty string, and the place
    // for the answer valid.
    let (result, status) = unsafe {
        let mut status: libc::statx = mem::zeroed();
        let mask = libc::STATX_DIOALIGN;
        let result = libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &mut status);
        (result, status)
    };
    let said = result == 0 && status.stx_mask & libc::STATX_DIOALIGN != 0;
    said.then(|| status.stx_dio_offset_align.into())
}

/// The logical block size of the device below, bytes, or else what stat(2) prefers.
fn logical_block(file: &File) -> u64 {
    let Ok(metadata) = file.metadata() else { return 512 };
    let device = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let directory = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    // A partition has no queue of its own.
    let queues = ["queue", "../queue"].map(|queue| format!("{directory}/{queue}/logical_block_size"));
    let stated = queues.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    stated.unwrap_or(metadata.blksize())
}
