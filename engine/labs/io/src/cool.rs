//! What state the page cache is in before an iteration.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use etude_micro::buffer::Buffer;
use etude_micro::exit::{Fail, IOERR, said};

use crate::options::{Cool, Options};

/// Writing here drops the page cache of the whole machine; root alone may.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What the lab's program does once, unless it is asked not to: what is dirty is written, and the machine rests.
///
/// # Errors
/// The file cannot be written back.
pub fn settle(file: &File, options: &Options) -> Result<(), Fail> {
    for _ in 0..2 {
        write_back(file, options)?;
    }
    for _ in 0..3 {
        // SAFETY: it has no arguments and cannot fail.
        unsafe { libc::sync() };
    }
    thread::sleep(Duration::from_secs(1));
    Ok(())
}

/// Brings the file into the page cache or out of it; by which means it was dropped.
///
/// # Errors
/// The file cannot be read, written back or dropped.
pub fn cool(file: &File, options: &Options) -> Result<Option<&'static str>, Fail> {
    match options.cool {
        Cool::None => Ok(None),
        Cool::Warm => warm(options).map(|()| None),
        Cool::Drop => drop_pages(file, options).map(Some),
    }
}

/// Reads what will be transferred once, by a descriptor without O_DIRECT and into a buffer that is not the measured one.
fn warm(options: &Options) -> Result<(), Fail> {
    let failed =
        |error: io::Error| Fail::call(IOERR, format!("--cool warm: read {}", options.path.display()), &error);
    let mut buffer = Buffer::map(1 << 20, None)?;
    let mut file = File::open(&options.path).map_err(failed)?.take(options.blocks.total());
    while file.read(buffer.as_mut_slice()).map_err(failed)? > 0 {}
    Ok(())
}

/// Only pages that are not dirty are dropped, so the file is written back first.
fn drop_pages(file: &File, options: &Options) -> Result<&'static str, Fail> {
    write_back(file, options)?;
    if fs::write(DROP_CACHES, "1").is_ok() {
        return Ok("drop_caches");
    }
    // SAFETY: a call on numbers; length 0 means to the end.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok("fadvise"),
        number => {
            let error = io::Error::from_raw_os_error(number);
            Err(Fail::call(
                IOERR,
                format!("--cool drop: posix_fadvise of {}", options.path.display()),
                &error,
            ))
        }
    }
}

/// Devices such as /dev/zero and read-only file systems have nothing to write back.
fn write_back(file: &File, options: &Options) -> Result<(), Fail> {
    match file.sync_all() {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => {
            Err(Fail::new(IOERR, format!("fsync of {}: {}", options.path.display(), said(&error))))
        }
        _ => Ok(()),
    }
}
