//! Where a worker's standard streams come from and go to.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use etude_protocol::{Stdio, Worker};
use libc::c_int;

use crate::capture::Capture;

/// The open streams of one worker.
pub(crate) struct Streams {
    /// Descriptors for 0, 1 and 2; -1 keeps the launcher's own.
    pub fds: [c_int; 3],
    /// Captured standard output and standard error.
    pub captures: [Option<Capture>; 2],
    input: Option<File>,
    _outputs: Vec<File>,
}

impl Streams {
    /// Opens what `worker` asks for; files are relative to its directory.
    pub fn open(worker: &Worker, null: &File, capture_bytes: usize) -> Result<Streams, String> {
        let mut streams =
            Streams { fds: [null.as_raw_fd(); 3], captures: [None, None], input: None, _outputs: Vec::new() };
        let directory = worker.cwd.as_deref().map(Path::new);
        match &worker.stdin {
            Stdio::Null => {}
            Stdio::Inherit => streams.fds[0] = -1,
            Stdio::Capture => {
                return Err("stdin: cannot be captured; expected null, inherit or a file".into());
            }
            Stdio::File(path) => {
                let file =
                    File::open(within(directory, path)).map_err(|error| format!("stdin: {path}: {error}"))?;
                streams.fds[0] = file.as_raw_fd();
                streams.input = Some(file);
            }
        }
        for (index, (name, wanted)) in
            [("stdout", &worker.stdout), ("stderr", &worker.stderr)].into_iter().enumerate()
        {
            let fd = &mut streams.fds[index + 1];
            match wanted {
                Stdio::Null => {}
                Stdio::Inherit => *fd = -1,
                Stdio::Capture => {
                    let capture =
                        Capture::new(capture_bytes).map_err(|error| format!("{name}: no pipe: {error}"))?;
                    *fd = capture.write_end();
                    streams.captures[index] = Some(capture);
                }
                Stdio::File(path) => {
                    let file = OpenOptions::new().append(true).create(true).open(within(directory, path));
                    let file = file.map_err(|error| format!("{name}: {path}: {error}"))?;
                    *fd = file.as_raw_fd();
                    streams._outputs.push(file);
                }
            }
        }
        Ok(streams)
    }

    /// Sets an input file back to its beginning, so that each launch reads all of it.
    pub fn rewind(&mut self) {
        if let Some(input) = &mut self.input {
            // What cannot seek (a named pipe) has no beginning to go back to.
            let _ = input.seek(SeekFrom::Start(0));
        }
    }
}

fn within(directory: Option<&Path>, path: &str) -> PathBuf {
    directory.map_or_else(|| path.into(), |directory| directory.join(path))
}
