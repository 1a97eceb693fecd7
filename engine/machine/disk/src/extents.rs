//! Where a file lies: its extents, as the kernel tells them (`FS_IOC_FIEMAP`, Documentation/filesystems/fiemap.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const FIEMAP: libc::c_ulong = 0xC020_660B;
const SYNC: u32 = 1;
const LAST: u32 = 1;
const NOT_ON_DISK: u32 = 0x2 | 0x4 | 0x200; // unknown, delayed, within the inode
const AT_ONCE: usize = 512;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// Pieces of a file that lie apart, and the bytes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lies {
    pub fragments: u64,
    pub bytes: u64,
}

/// # Errors
/// The file system does not tell (`EOPNOTSUPP`), or reading fails.
pub fn of(file: &File) -> io::Result<Lies> {
    let mut joined = Joined::default();
    let mut start = 0;
    loop {
        let mut map = Box::new(Map {
            start,
            length: u64::MAX - start,
            flags: SYNC, // what has no place yet gets one
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); AT_ONCE],
        });
        // SAFETY: `map` is laid out as the kernel's struct fiemap, with room for `count` extents behind it.
        if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut *map) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &map.extents[..(map.mapped as usize).min(AT_ONCE)];
        for extent in found {
            if extent.flags & NOT_ON_DISK == 0 {
                joined.add(extent.physical, extent.length);
            }
        }
        match found.last() {
            Some(extent) if extent.flags & LAST == 0 => start = extent.logical + extent.length,
            _ => return Ok(joined.lies),
        }
    }
}

/// Extents that follow each other on the disk are one piece: some file systems have a limit to their length.
#[derive(Default)]
struct Joined {
    lies: Lies,
    next: Option<u64>,
}

impl Joined {
    fn add(&mut self, physical: u64, length: u64) {
        self.lies.fragments += u64::from(self.next != Some(physical));
        self.lies.bytes += length;
        self.next = Some(physical + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(size_of::<Map>(), 32 + AT_ONCE * 56);
    }

    proptest! {
        #[test]
        fn a_contiguous_file_is_one_fragment_however_it_is_cut(cuts in proptest::collection::vec(1u64..1000, 1..50)) {
            let (mut joined, mut at) = (Joined::default(), 7 << 20);
            for cut in &cuts {
                joined.add(at, *cut);
                at += cut;
            }
            prop_assert_eq!(joined.lies, Lies { fragments: 1, bytes: cuts.iter().sum() });
        }

        #[test]
        fn pieces_that_lie_apart_are_as_many_fragments(gaps in proptest::collection::vec(1u64..1000, 1..50)) {
            let (mut joined, mut at) = (Joined::default(), 0);
            for gap in &gaps {
                at += gap + 4096;
                joined.add(at, 4096);
            }
            prop_assert_eq!(joined.lies.fragments, gaps.len() as u64);
        }
    }
}
