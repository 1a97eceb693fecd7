//! The file: opened, and looked at before anything is timed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use etude_micro::exit::{CANTCREAT, Fail, NOINPUT, OSERR, said};
use etude_quantity::size_text;

use crate::direct;
use crate::options::{Method, Operation, Options};

/// Opens the file that is to be read or written over.
///
/// # Errors
/// It is not there, is no file or device, is too short, cannot be opened, or cannot be used with O_DIRECT as asked.
pub fn open(options: &Options) -> Result<File, Fail> {
    let path = &options.path;
    let metadata = fs::metadata(path).map_err(|error| absent(options, &error))?;
    check_kind(path, &metadata)?;
    if metadata.is_file() {
        check_size(options, metadata.len())?;
    }
    let flags = if options.direct { libc::O_DIRECT } else { 0 };
    let writing = options.operation == Operation::Write;
    let opened = OpenOptions::new().read(true).write(writing).custom_flags(flags).open(path);
    let file = opened.map_err(|error| refused(options, &error))?;
    if metadata.file_type().is_block_device() {
        check_size(options, device_bytes(&file))?;
    }
    if options.direct {
        direct::check(&file, path, options.blocks)?;
    }
    Ok(file)
}

fn absent(options: &Options, error: &io::Error) -> Fail {
    let path = options.path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let line = format!("{path}: no such file; make it with: {}", creation(options));
            Fail::new(NOINPUT, line)
        }
        _ => Fail::call(NOINPUT, path, error),
    }
}

fn creation(options: &Options) -> String {
    let Options { program, path, blocks, .. } = options;
    let tail = if blocks.tail > 0 { " --tail" } else { "" };
    let (size, total) = (size_text(blocks.size), size_text(blocks.total()));
    format!("{program} create -b {size} -t {total}{tail} {}", path.display())
}

fn check_kind(path: &Path, metadata: &Metadata) -> Result<(), Fail> {
    let kind = metadata.file_type();
    let other = if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        return Ok(());
    };
    Err(Fail::new(NOINPUT, format!("{} is {other}: expected a file or a device", path.display())))
}

/// A file that is written over may grow, but not a mapping of it.
fn check_size(options: &Options, bytes: u64) -> Result<(), Fail> {
    let total = options.blocks.total();
    let may_grow = options.operation == Operation::Write && options.method != Method::Mapped;
    if bytes >= total || may_grow {
        return Ok(());
    }
    let path = options.path.display();
    let lower = if bytes > 0 { format!("lower -t to {}, or ", size_text(bytes)) } else { String::new() };
    let creation = creation(options);
    Err(Fail::new(
        NOINPUT,
        format!("{path} has {bytes} bytes, and -t asks for {total}; {lower}make it with: {creation}"),
    ))
}

fn device_bytes(mut file: &File) -> u64 {
    let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = file.rewind();
    end
}

fn refused(options: &Options, error: &io::Error) -> Fail {
    let path = options.path.display();
    let doing = if options.operation == Operation::Write { "write" } else { "read" };
    match error.raw_os_error() {
        Some(libc::EROFS) => {
            Fail::new(CANTCREAT, format!("{path}: its file system is read-only; remount it, or read"))
        }
        Some(libc::EINVAL) if options.direct => {
            Fail::new(OSERR, format!("{path}: its file system has no O_DIRECT; leave out -d"))
        }
        Some(libc::EACCES | libc::EPERM) => {
            Fail::call(OSERR, format!("{path} may not be opened to {doing} it"), error)
        }
        _ => Fail::new(OSERR, format!("open {path} to {doing} it: {}", said(error))),
    }
}

/// Makes a file, or empties one.
///
/// # Errors
/// It is no file, or its directory or file system does not allow it.
pub fn create(path: &Path) -> Result<File, Fail> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            let kind = if metadata.is_dir() { "a directory" } else { "no plain file" };
            return Err(Fail::new(
                CANTCREAT,
                format!("{shown} is {kind}: expected the path of a file to make"),
            ));
        }
        _ => {}
    }
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => {
            Fail::new(CANTCREAT, format!("{shown}: its directory does not exist; make that first"))
        }
        Some(libc::EROFS) => {
            Fail::new(CANTCREAT, format!("{shown}: its file system is read-only; choose another place"))
        }
        _ => Fail::call(CANTCREAT, format!("create {shown}"), &error),
    })
}
/// Bytes that this user may still write to the file system; None where it does not say.
pub fn free_bytes(file: &File) -> Option<u64> {
    // SAFETY: plain numbers, filled by the call.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open file, and a valid place for the answer.
    let told = unsafe { libc::fstatvfs(file.as_raw_fd(), &mut found) } == 0 && found.f_blocks > 0;
    told.then(|| found.f_bavail * found.f_frsize)
}
