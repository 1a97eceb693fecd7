//! Answers: one line each, in one write.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use etude_protocol::Reply;

/// The engine's standard output, without the standard library's line buffer.
pub(crate) struct Output {
    stdout: ManuallyDrop<File>,
    line: Vec<u8>,
}

impl Output {
    pub fn new() -> Output {
        // SAFETY: descriptor 1 is open from the start of a Rust program, and ManuallyDrop leaves it so.
        let stdout = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
        Output { stdout, line: Vec::new() }
    }

    /// Sends one line.
    pub fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, reply)?;
        self.line.push(b'\n');
        self.stdout.write_all(&self.line)
    }
}
