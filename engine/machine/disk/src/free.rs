//! What of a file system is free, and in how large pieces (`FS_IOC_GETFSMAP`: ext4, and XFS for root).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use serde::Serialize;

const GETFSMAP: libc::c_ulong = 0xC0C0_583B;
const SPECIAL_OWNER: u32 = 0x10;
const OWNER_FREE: u64 = 1;
const LAST: u32 = 0x20;
const AT_ONCE: usize = 512;
const MIB: u64 = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Record {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

#[repr(C)]
struct Head {
    iflags: u32,
    oflags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Record; 2],
    records: [Record; AT_ONCE],
}

/// Free pieces; those that touch are one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct Free {
    pub pieces: u64,
    pub bytes: u64,
    pub largest_bytes: u64,
    /// In pieces of less than 1 MiB.
    pub below_1_mib_bytes: u64,
}

impl Free {
    fn add(&mut self, bytes: u64) {
        self.pieces += 1;
        self.bytes += bytes;
        self.largest_bytes = self.largest_bytes.max(bytes);
        self.below_1_mib_bytes += if bytes < MIB { bytes } else { 0 };
    }
}

/// Of the file system that `file` is on.
///
/// # Errors
/// It does not tell, or not this user.
pub fn of(file: &File) -> io::Result<Free> {
    let high = Record {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..Record::default()
    };
    let mut head = Box::new(Head {
        iflags: 0,
        oflags: 0,
        count: AT_ONCE as u32,
        entries: 0,
        reserved: [0; 6],
        keys: [Record::default(), high],
        records: [Record::default(); AT_ONCE],
    });
    let mut joined = Joined::default();
    loop {
        // SAFETY: `head` is laid out as the kernel's struct fsmap_head, with room for `count` records behind it.
        if unsafe { libc::ioctl(file.as_raw_fd(), GETFSMAP, &raw mut *head) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &head.records[..(head.entries as usize).min(AT_ONCE)];
        for record in found {
            if record.flags & SPECIAL_OWNER != 0 && record.owner & 0xFFFF_FFFF == OWNER_FREE {
                joined.add(record.device, record.physical, record.length);
            }
        }
        match found.last() {
            Some(record) if record.flags & LAST == 0 => head.keys[0] = *record,
            _ => return Ok(joined.end()),
        }
    }
}

/// The piece that is still growing, and all before it.
#[derive(Default)]
struct Joined {
    free: Free,
    device: u32,
    from: u64,
    to: u64,
}

impl Joined {
    fn add(&mut self, device: u32, physical: u64, length: u64) {
        if (device, physical) == (self.device, self.to) {
            self.to += length;
            return;
        }
        self.close();
        (self.device, self.from, self.to) = (device, physical, physical + length);
    }

    fn close(&mut self) {
        if self.to > self.from {
            self.free.add(self.to - self.from);
        }
    }

    fn end(mut self) -> Free {
        self.close();
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<Record>(), 64);
        assert_eq!(size_of::<Head>(), 192 + AT_ONCE * 64);
    }

    #[test]
    fn free_pieces_that_touch_are_one() {
        let mut joined = Joined::default();
        for (device, at, length) in [(1, 0, 10), (1, 10, 5), (1, 20, 2 << 20), (2, 20 + (2 << 20), 7)] {
            joined.add(device, at, length);
        }
        let free = joined.end();
        assert_eq!((free.pieces, free.bytes), (3, (2 << 20) + 22));
        assert_eq!((free.largest_bytes, free.below_1_mib_bytes), (2 << 20, 22));
    }
}
