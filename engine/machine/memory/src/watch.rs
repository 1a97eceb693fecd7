//! Telling afterwards which files of a data set are still in memory, though their names are forgotten.
//!
//! The kernel may forget a name while the pages of the file stay: then it cannot be looked up without disturbing. A mark
//! of fanotify that does not hold its inode (Linux 5.19) goes when the inode goes, and the kernel lists the marks that are
//! left with a handle of each file. A file that is still in memory is opened by that handle without any name, and
//! what is not in memory has no pages.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::Failed;
use crate::listing::Listed;
use crate::open_if_cached::open_cached;
use crate::resident::FLAGS;

/// Marks on the files of a data set; they go with it.
pub struct Watch {
    group: OwnedFd,
}

impl Watch {
    /// # Errors
    /// The machine does not allow it (5).
    pub fn of(files: &[Listed]) -> Result<Watch, Failed> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_UNLIMITED_MARKS;
        // SAFETY: a call on numbers.
        let group = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) };
        if group < 0 {
            return Err(refused(&io::Error::last_os_error()));
        }
        // SAFETY: a new descriptor that nobody else has.
        let watch = Watch { group: unsafe { OwnedFd::from_raw_fd(group) } };
        for file in files {
            watch.mark(file.path).map_err(|error| refused(&error))?;
        }
        Ok(watch)
    }

    /// A file that is gone already needs none.
    fn mark(&self, path: &Path) -> io::Result<()> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_EVICTABLE;
        let group = self.group.as_raw_fd();
        // SAFETY: a descriptor of fanotify and a C string. Nobody reads the events: the kernel drops those that are too many.
        let done = unsafe {
            libc::fanotify_mark(group, flags, libc::FAN_CLOSE_WRITE, libc::AT_FDCWD, name.as_ptr())
        };
        match io::Error::last_os_error() {
            error if done != 0 && error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The files that are still in memory, opened; nothing is loaded for it.
    ///
    /// # Errors
    /// The machine does not allow it (5).
    pub fn each(&self, done: &mut dyn FnMut(File) -> io::Result<()>) -> Result<u64, Failed> {
        let path = format!("/proc/self/fdinfo/{}", self.group.as_raw_fd());
        let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
        let mounts = fs::read("/proc/self/mountinfo").map_err(|error| refused(&error))?;
        let mut roots: Vec<(u64, File)> = Vec::new();
        let mut count = 0;
        for mark in text.lines().filter_map(Mark::read) {
            count += 1;
            if !roots.iter().any(|(device, _)| *device == mark.device) {
                roots.push((mark.device, root(&mounts, mark.device).map_err(|error| refused(&error))?));
            }
            let root = roots.iter().find(|(device, _)| *device == mark.device);
            let opened = root.map(|(_, root)| mark.open(root));
            match opened {
                Some(Ok(file)) => done(file).map_err(|error| refused(&error))?,
                // It was removed, or left memory just now.
                Some(Err(error)) if error.raw_os_error() == Some(libc::ESTALE) => {}
                Some(Err(error)) => return Err(refused(&error)),
                None => {}
            }
        }
        Ok(count)
    }
}

fn refused(error: &io::Error) -> Failed {
    let need = "to watch needs root, Linux 5.19 and a file system whose files have handles; else use look";
    (format!("{error}: {need}"), 5)
}

/// A directory of the file system with this device number: where it is mounted, which is always in memory.
fn root(mounts: &[u8], device: u64) -> io::Result<File> {
    let places = mounts.split(|byte| *byte == b'\n').filter_map(|line| mounted(line, device));
    for place in places {
        if let Ok(Some(file)) = open_cached(&place) {
            return Ok(file);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "a watched file system is not mounted where it can be seen"))
}

/// Where a line of mountinfo says that this device is mounted.
fn mounted(line: &[u8], device: u64) -> Option<PathBuf> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let (major, minor) = str::from_utf8(fields.next()?).ok()?.split_once(':')?;
    let place = fields.nth(1)?;
    let found = major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?;
    (found == device).then(|| PathBuf::from(std::ffi::OsString::from_vec(unescaped(place))))
}

/// Blanks, tabs, line ends and backslashes stand as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        if let Some(byte) = code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            found.push(byte);
            rest = &behind[3..];
        } else {
            found.push(*first);
            rest = behind;
        }
    }
    found
}

/// A mark that is left, as /proc tells it.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    /// The kernel's own form of a device number: major above 20 bits of minor.
    device: u64,
    kind: i32,
    handle: Vec<u8>,
}

impl Mark {
    fn read(line: &str) -> Option<Mark> {
        let words = line.strip_prefix("fanotify ino:")?.split(' ');
        let (mut device, mut kind, mut handle) = (None, None, None);
        for (name, value) in words.filter_map(|word| word.split_once(':')) {
            match name {
                "sdev" => device = u64::from_str_radix(value, 16).ok(),
                "fhandle-type" => kind = u32::from_str_radix(value, 16).ok().map(u32::cast_signed),
                "f_handle" => handle = bytes_of_hex(value),
                _ => {}
            }
        }
        Some(Mark { device: device?, kind: kind?, handle: handle? })
    }

    fn open(&self, root: &File) -> io::Result<File> {
        let length = u32::try_from(self.handle.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut handle = length.to_ne_bytes().to_vec();
        handle.extend(self.kind.to_ne_bytes());
        handle.extend(&self.handle);
        let (call, flags) = (libc::SYS_open_by_handle_at, libc::O_RDONLY | FLAGS);
        // SAFETY: a descriptor and a handle as the kernel lays it out: its length, its kind, its bytes.
        let found = unsafe { libc::syscall(call, root.as_raw_fd(), handle.as_ptr(), flags) };
        match i32::try_from(found) {
            // SAFETY: a new descriptor that nobody else has.
            Ok(number) if number >= 0 => Ok(unsafe { File::from_raw_fd(number) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "fanotify ino:aa069c sdev:fe00000 mflags:200 mask:8 ignored_mask:0 fhandle-bytes:8 \
                        fhandle-type:1 f_handle:9c06aa004d6d5de3";

    #[test]
    fn a_mark_is_read_from_the_line_of_an_inode_and_of_nothing_else() {
        let mark = Mark::read(LINE).unwrap();
        assert_eq!((mark.device, mark.kind), (0x0fe0_0000, 1));
        assert_eq!(mark.handle, [0x9c, 0x06, 0xaa, 0, 0x4d, 0x6d, 0x5d, 0xe3]);
        for other in ["fanotify flags:21 event-flags:0", "ino:\t1038", "fanotify mnt_id:12 mflags:0", ""] {
            assert_eq!(Mark::read(other), None, "{other}");
        }
        assert_eq!(Mark::read(&LINE.replace(" f_handle:9", " f_handle:")), None, "half a byte");
    }

    #[test]
    fn a_mount_is_found_by_its_device_whatever_its_directory_is_called() {
        let line = b"36 30 7:3 / /mnt/a\\040b\\134 rw - ext4 /dev/loop3 rw";
        assert_eq!(mounted(line, 7 << 20 | 3), Some(PathBuf::from("/mnt/a b\\")));
        assert_eq!(mounted(line, 7 << 20 | 4), None);
        assert_eq!(mounted(b"", 0), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_passed_over(line in "(fanotify ino:1 )?[a-f_:0-9 \\PC]{0,60}", bytes: Vec<u8>) {
            let _ = (Mark::read(&line), mounted(&bytes, 1), unescaped(&bytes));
        }
    }
}
