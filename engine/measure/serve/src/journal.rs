//! The journal of a repetition: whole lines on disk, or none.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

/// How often lines are made to survive the machine at the most.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// A results file that lines are appended to.
pub(crate) struct Journal {
    file: File,
    path: String,
    /// Length of all whole lines, B.
    whole: u64,
    synced: Instant,
}

impl Journal {
    /// Opens or creates the file. Errors are one line.
    pub fn open(path: &str) -> Result<Journal, String> {
        let explain = |error: io::Error| format!("journal: {path}: {error}");
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(explain)?;
        let whole = file.metadata().map_err(explain)?.len();
        if whole > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(explain)?;
            if last != *b"\n" {
                return Err(format!("journal: {path}: its last line is cut short; drop that line first"));
            }
        }
        Ok(Journal { file, path: path.to_owned(), whole, synced: Instant::now() })
    }

    /// Appends whole lines in one write. On an error nothing of them stays, and the error is one line.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), String> {
        let written = loop {
            match self.file.write(lines) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => break written,
            }
        };
        let problem = match written {
            Ok(length) if length == lines.len() => {
                self.whole += length as u64;
                return self.sync_now_and_then();
            }
            Ok(length) => {
                format!("only {length} of {} bytes could be written; is the file system full?", lines.len())
            }
            Err(error) => error.to_string(),
        };
        let undone = self.file.set_len(self.whole).err();
        let torn = undone.map_or_else(String::new, |error| format!("; its last line is cut short: {error}"));
        Err(format!("journal: {}: {problem}{torn}", self.path))
    }

    /// Makes all lines survive the machine.
    pub fn sync(&mut self) -> Result<(), String> {
        self.synced = Instant::now();
        self.file.sync_data().map_err(|error| format!("journal: {}: not synced: {error}", self.path))
    }

    fn sync_now_and_then(&mut self) -> Result<(), String> {
        if self.synced.elapsed() < SYNC_EVERY { Ok(()) } else { self.sync() }
    }
}
