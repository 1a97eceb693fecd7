//! The file that is written: whole up to its last line, whatever happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file that grows by whole lines.
pub struct Output {
    file: File,
    length: u64,
}

impl Output {
    /// # Errors
    /// It is there already, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Output> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Output { file, length: 0 })
    }

    /// Appends lines, with one call where there is room.
    ///
    /// # Errors
    /// There is no room; then nothing of them is left in the file.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let done = self.file.write_all(lines);
        match done {
            Ok(()) => self.length += lines.len() as u64,
            Err(_) => {
                let _ = self.file.set_len(self.length);
            }
        }
        done
    }
}
