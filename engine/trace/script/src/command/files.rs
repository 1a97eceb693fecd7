//! Scripts in and out.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use etude_options::Failed;
use etude_trace::ordinary;

use crate::model::Script;
use crate::parse::{Parsed, parse};

/// The name of an input in messages; `-` is standard input.
pub fn shown(name: &OsStr) -> String {
    if name == "-" { "standard input".into() } else { name.to_string_lossy().into_owned() }
}

/// The bytes of an input.
pub fn bytes(name: &OsStr) -> Result<Vec<u8>, Failed> {
    let read = if name == "-" { standard_input() } else { ordinary::read(Path::new(name)) };
    read.map_err(|error| (format!("{}: cannot be read: {error}", shown(name)), 3))
}

fn standard_input() -> io::Result<Vec<u8>> {
    let (mut input, mut text) = (io::stdin().lock(), Vec::new());
    let kind = File::from(input.as_fd().try_clone_to_owned()?).metadata()?.file_type();
    if kind.is_char_device() && !input.is_terminal() {
        return Err(ordinary::refused(kind));
    }
    input.read_to_end(&mut text).map(|_| text)
}

/// Reads a script.
pub fn read(name: &OsStr) -> Result<Parsed, Failed> {
    parse(&shown(name), &bytes(name)?).map_err(|wrong| (wrong.to_string(), 3))
}

/// Writes a script, whole or not at all; none and `-` are standard output.
pub fn write(script: &Script, output: Option<&OsString>) -> Result<(), Failed> {
    put(output, |out| crate::write(script, out))
}

/// Writes what `write` writes, whole or not at all; none and `-` are standard output.
pub fn put(
    output: Option<&OsString>,
    mut write: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failed> {
    match output.filter(|name| *name != "-") {
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            match write(&mut out).and_then(|()| out.flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    Err((format!("standard output: {error}"), 5))
                }
                _ => Ok(()),
            }
        }
        Some(name) => {
            let path = Path::new(name);
            replace(write, path).map_err(|error| {
                (format!("{}: cannot be written: {error}; name another with -o", path.display()), 5)
            })
        }
    }
}

/// Puts a file beside the one that is wanted, and then in its place: an input can be the output.
fn replace(mut write: impl FnMut(&mut dyn Write) -> io::Result<()>, path: &Path) -> io::Result<()> {
    // Through links; what is no file (a pipe, /dev/null) is written as it is.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(&path)?);
        return write(&mut out).and_then(|()| out.flush());
    }
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut out = BufWriter::new(File::options().write(true).create_new(true).open(&beside)?);
    let written = write(&mut out).and_then(|()| out.flush());
    written.and_then(|()| fs::rename(&beside, &path)).inspect_err(|_| drop(fs::remove_file(&beside)))
}
