//! What is to be written over: a block device or a file, and whether somebody may still want what is on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use crate::{Failed, machine};

const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
const BLKDISCARD: libc::c_ulong = 0x1277;

pub struct Device {
    pub file: File,
    pub bytes: u64,
    pub is_block: bool,
}

/// Marks by which the beginning of a device shows what is on it: where, what, whose.
const MARKS: [(u64, &[u8], &str); 14] = [
    (0x438, &[0x53, 0xEF], "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a Btrfs file system"),
    (0x400, &[0x10, 0x20, 0xF5, 0xF2], "an F2FS file system"),
    (0xFF6, b"SWAPSPACE2", "swap space"),
    (0, b"LUKS\xBA\xBE", "an encrypted volume (LUKS)"),
    (0x218, b"LVM2", "an LVM volume"),
    (0x1000, &[0xFC, 0x4E, 0x2B, 0xA9], "a part of an array (md)"),
    (0x200, b"EFI PART", "a partition table (GPT)"),
    (3, b"NTFS    ", "an NTFS file system"),
    (0x36, b"FAT", "a FAT file system"),
    (0x52, b"FAT", "a FAT file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0x1FE, &[0x55, 0xAA], "a partition table or boot sector"),
];

/// Open what will be written over, past the page cache.
///
/// # Errors
/// It is in use, holds something without `force`, has no size, or cannot be opened.
pub fn open(path: &Path, size: Option<u64>, force: bool) -> Result<Device, Failed> {
    let wrong = |error: io::Error| machine(path.display(), &error);
    let is_block = match path.metadata() {
        Ok(found) if found.file_type().is_block_device() => true,
        Ok(found) if found.is_file() => false,
        Ok(_) => return Err((format!("{}: expected a block device or a file", path.display()), 2)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && size.is_some() => false,
        Err(error) => return Err((format!("{}: {}", path.display(), etude_micro::exit::said(&error)), 2)),
    };
    if is_block {
        block_device(path, size, force)
    } else {
        regular(path, size, force).map_err(|e| e.unwrap_or_else(wrong))
    }
}

fn block_device(path: &Path, size: Option<u64>, force: bool) -> Result<Device, Failed> {
    // The kernel refuses O_EXCL where the device, or a part of it, is mounted, swap space, or held by another driver.
    let flags = libc::O_EXCL | libc::O_DIRECT;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => (
            format!(
                "{}: is in use (mounted, swap space, or a part of something); unmount it first",
                path.display()
            ),
            5,
        ),
        _ => machine(path.display(), &error),
    })?;
    if !force {
        let plain = File::open(path).map_err(|error| machine(path.display(), &error))?;
        if let Some(what) = holds(&plain).map_err(|error| machine(path.display(), &error))? {
            return Err((format!("{}: holds {what}; --force overwrites it", path.display()), 5));
        }
    }
    let mut bytes = 0u64;
    // SAFETY: an open descriptor, and a place for the answer.
    if unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) } != 0 {
        return Err(machine(path.display(), &io::Error::last_os_error()));
    }
    let bytes = size.map_or(bytes, |size| size.min(bytes));
    sized(path, Device { file, bytes, is_block: true })
}

/// None: an error that says it all; the kernel's otherwise.
fn regular(path: &Path, size: Option<u64>, force: bool) -> Result<Device, Result<Failed, io::Error>> {
    let there = path.metadata().map_or(0, |found| found.len());
    if there > 0 && !force {
        let line = format!("{}: holds {there} bytes; --force overwrites them", path.display());
        return Err(Ok((line, 5)));
    }
    let open = |flags| {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)
    };
    let file = match open(libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(libc::O_DSYNC), // tmpfs, and others
        file => file,
    };
    let file = file.map_err(Err)?;
    let bytes = size.unwrap_or(there);
    if there < bytes {
        file.set_len(bytes).map_err(Err)?;
    }
    sized(path, Device { file, bytes, is_block: false }).map_err(Ok)
}

fn sized(path: &Path, device: Device) -> Result<Device, Failed> {
    if device.bytes >= 1 << 20 {
        return Ok(device);
    }
    Err((
        format!(
            "{}: {} bytes; expected 1 MiB or more (a file gets them by --size)",
            path.display(),
            device.bytes
        ),
        2,
    ))
}

/// What is on a device, in words.
fn holds(device: &File) -> io::Result<Option<&'static str>> {
    let mut bytes = [0; 16];
    for (place, mark, what) in MARKS {
        match device.read_exact_at(&mut bytes[..mark.len()], place) {
            Ok(()) if bytes[..mark.len()] == *mark => return Ok(Some(what)),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

/// Tell the device that nothing on it is wanted; a file gives its blocks back.
///
/// # Errors
/// It cannot.
pub fn trim(device: &Device) -> io::Result<()> {
    let range = [0, device.bytes];
    let done = if device.is_block {
        // SAFETY: an open descriptor, and the range that the kernel reads.
        unsafe { libc::ioctl(device.file.as_raw_fd(), BLKDISCARD, range.as_ptr()) }
    } else {
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: an open descriptor.
        unsafe { libc::fallocate(device.file.as_raw_fd(), how, 0, device.bytes as i64) }
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_found_and_nothing_is_found_in_zeros() {
        let path = std::env::temp_dir().join(format!("etude-marks-{}", std::process::id()));
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).expect("made");
        std::fs::remove_file(&path).expect("removed");
        file.set_len(1 << 20).expect("sized");
        assert_eq!(holds(&file).expect("read"), None);
        for (place, mark, what) in MARKS {
            file.write_all_at(mark, place).expect("written");
            assert_eq!(holds(&file).expect("read"), Some(what));
            file.write_all_at(&[0; 16][..mark.len()], place).expect("written");
        }
        file.set_len(7).expect("sized");
        assert_eq!(holds(&file).expect("read"), None, "one that is too short holds nothing");
    }
}
