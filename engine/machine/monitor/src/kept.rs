//! Files of the kernel's that stay open and are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Below which `/proc`, `/sys` and `/dev` are.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    pub fn new(directory: &Path) -> Root {
        Root(directory.to_path_buf())
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    /// A small file's text, read once; none where it cannot be read.
    pub fn text(&self, below: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(below)).ok()
    }

    /// The names in a directory in the order of their numbers (`cpu2` before `cpu10`); empty where there is none.
    pub fn names(&self, below: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(below)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        names
    }
}

/// One such file.
#[derive(Debug)]
pub struct Kept(File);

impl Kept {
    pub fn new(file: File) -> Kept {
        Kept(file)
    }

    /// # Errors
    /// The kernel's.
    pub fn open(root: &Root, below: &str) -> io::Result<Kept> {
        File::open(root.path(below)).map(Kept)
    }

    /// Its text as of now, in a buffer that is used again.
    ///
    /// # Errors
    /// The kernel's: a device or process that is gone.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let mut length = 0;
        loop {
            if buffer.len() - length < 4096 {
                buffer.resize((buffer.len() * 2).max(8192), 0);
            }
            // A text of many lines comes in pieces of about a page, whatever the buffer: only nothing is its end.
            match self.0.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => return Ok(&buffer[..length]),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The text of a file that comes in one piece.
    ///
    /// # Errors
    /// The kernel's: a device or process that is gone.
    pub fn piece<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let read = self.0.read_at(buffer, 0)?;
        Ok(&buffer[..read])
    }

    /// The one number that a file of `/sys` holds.
    pub fn number(&self) -> Option<i64> {
        self.piece(&mut [0; 64]).ok().and_then(crate::text::lone_number)
    }
}
