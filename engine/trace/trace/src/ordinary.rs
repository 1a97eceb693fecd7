//! Inputs that end: ordinary files, and pipes that this process has open already.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// A pipe or a device is opened without waiting for the other side.
const O_NONBLOCK: i32 = 0o4000;

/// Opens an ordinary file.
///
/// # Errors
/// It is something else: whoever reads that may wait for ever, or find no end.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(refused(kind)) }
}

/// All that is in an ordinary file, or in a pipe of this process's (`<(zcat x)` of a shell is `/dev/fd/63`).
///
/// # Errors
/// It is something else, or cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let own = path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    if own && fs::metadata(path)?.file_type().is_fifo() {
        return fs::read(path);
    }
    let (mut file, mut bytes) = (open(path)?, Vec::new());
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The error for a kind of file that is not ordinary.
pub fn refused(kind: FileType) -> io::Error {
    let what = match () {
        () if kind.is_dir() => "directory",
        () if kind.is_fifo() => "pipe",
        () if kind.is_char_device() || kind.is_block_device() => "device",
        () => "socket",
    };
    io::Error::other(format!("is a {what}; expected an ordinary file"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn what_is_no_ordinary_file_is_refused_and_not_read() {
        assert_eq!(super::read(Path::new("/proc/self/stat")).unwrap().last(), Some(&b'\n'));
        for (path, what) in [("/dev/zero", "device"), ("/dev/ptmx", "device"), ("/", "directory")] {
            let error = super::read(Path::new(path)).unwrap_err();
            assert_eq!(error.to_string(), format!("is a {what}; expected an ordinary file"), "{path}");
        }
    }
}
