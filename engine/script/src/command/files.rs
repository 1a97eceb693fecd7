//! Scripts in and out.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::Failed;
use crate::model::Script;
use crate::parse::{Parsed, parse};

/// Reads a script; `-` is standard input.
pub fn read(name: &OsStr) -> Result<Parsed, Failed> {
    let (shown, read) = if name == "-" {
        let mut text = Vec::new();
        ("standard input".into(), io::stdin().lock().read_to_end(&mut text).map(|_| text))
    } else {
        (name.to_string_lossy(), fs::read(name))
    };
    let text = read.map_err(|error| (format!("{shown}: cannot be read: {error}"), 3))?;
    parse(&shown, &text).map_err(|wrong| (wrong.to_string(), 3))
}

/// Writes a script, whole or not at all; none and `-` are standard output.
pub fn write(script: &Script, output: Option<&OsString>) -> Result<(), Failed> {
    match output.filter(|name| *name != "-") {
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            match crate::write(script, &mut out).and_then(|()| out.flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    Err((format!("standard output: {error}"), 5))
                }
                _ => Ok(()),
            }
        }
        Some(name) => {
            let path = Path::new(name);
            replace(script, path).map_err(|error| {
                (format!("{}: cannot be written: {error}; name another with -o", path.display()), 5)
            })
        }
    }
}

/// Puts a file beside the one that is wanted, and then in its place: an input can be the output.
fn replace(script: &Script, path: &Path) -> io::Result<()> {
    // Through links; what is no file (a pipe, /dev/null) is written as it is.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(&path)?);
        return crate::write(script, &mut out).and_then(|()| out.flush());
    }
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut out = BufWriter::new(File::options().write(true).create_new(true).open(&beside)?);
    let written = crate::write(script, &mut out).and_then(|()| out.flush());
    written.and_then(|()| fs::rename(&beside, &path)).inspect_err(|_| drop(fs::remove_file(&beside)))
}
