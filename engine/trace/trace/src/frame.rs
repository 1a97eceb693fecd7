//! The outer form: a magic number, a version, then frames, each with a checksum.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::ordinary;

pub const MAGIC: &[u8; 8] = b"etudetrc";
pub const VERSION: u32 = 1;
/// No frame is longer: what says so is damaged.
pub const MOST_BYTES: usize = 1 << 26;
/// Of the file, before the first frame.
const START: usize = 16;
/// Of a frame: kind, length, checksum.
pub const HEAD: usize = 12;

/// What a frame is.
pub type Kind = [u8; 4];
pub const HEADER: Kind = *b"head";
pub const META: Kind = *b"meta";
pub const CALLS: Kind = *b"call";
/// Of files that were found: JSON as of `meta`, in one zstd frame.
pub const FILES: Kind = *b"file";
pub const FOOTER: Kind = *b"foot";

/// What is wrong with a trace, in one line, with its name.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    pub what: String,
    /// Of the system, where it is not about what the file holds.
    pub errno: Option<i32>,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for Error {}

/// The first bytes of a trace.
pub fn start() -> [u8; START] {
    let mut bytes = [0; START];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Makes the head of a frame out of its payload.
pub fn head(kind: Kind, payload: &[u8]) -> [u8; HEAD] {
    let length = u32::try_from(payload.len()).expect("frames are bounded");
    let mut bytes = [0; HEAD];
    bytes[..4].copy_from_slice(&kind);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    let checksum = checksum(&bytes[..8], payload);
    bytes[8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The first frame of these bytes and what follows it; the error says what is wrong with it.
pub fn checked(bytes: &[u8]) -> Result<(Kind, &[u8], &[u8]), String> {
    let (head, rest) = bytes.split_at_checked(HEAD).ok_or("is cut short")?;
    let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
    let (payload, rest) = rest.split_at_checked(length).ok_or("is cut short")?;
    if checksum(&head[..8], payload).to_le_bytes() != head[8..] {
        return Err("is damaged: a checksum is wrong".into());
    }
    Ok((head[..4].try_into().expect("four bytes"), payload, rest))
}

fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

/// The frames of a file, one after the other.
pub struct Frames {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the next frame begins.
    pub at: u64,
}

/// What came next.
pub enum Next {
    Frame(Kind),
    /// Nothing: the file ends after a whole frame.
    End,
    /// A frame that is not whole.
    CutShort,
}

impl Frames {
    /// Opens a file and reads what stands before the first frame.
    pub fn open(path: &Path) -> Result<Frames, Error> {
        let refuse = |what: String| Error { path: path.to_owned(), what, errno: None };
        let system = |error: io::Error| Error {
            path: path.to_owned(),
            what: error.to_string(),
            errno: error.raw_os_error(),
        };
        let mut file = BufReader::with_capacity(1 << 16, ordinary::open(path).map_err(system)?);
        let mut bytes = [0; START];
        let length = fill(&mut file, &mut bytes).map_err(system)?;
        if length == 0 {
            return Err(refuse("is empty: nothing was recorded".into()));
        }
        if length < START || bytes[..8] != *MAGIC {
            return Err(refuse("is no trace of etude record: it begins with something else".into()));
        }
        let version = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        if version != VERSION {
            let what = format!("is a trace of version {version}; this Étude reads version {VERSION}");
            return Err(refuse(what));
        }
        Ok(Frames { path: path.to_owned(), file, at: START as u64 })
    }

    /// Reads the next frame into `payload`; one with a wrong checksum is an error.
    pub fn read(&mut self, payload: &mut Vec<u8>) -> Result<Next, Error> {
        let Some((head, length)) = self.head()? else { return Ok(Next::CutShort) };
        if length == usize::MAX {
            return Ok(Next::End);
        }
        payload.resize(length, 0);
        if self.fill(payload)? < length {
            return Ok(Next::CutShort);
        }
        if checksum(&head[..8], payload).to_le_bytes() != head[8..] {
            return Err(self.damage("the checksum of a frame does not fit"));
        }
        self.at += (HEAD + length) as u64;
        Ok(Next::Frame(head[..4].try_into().expect("four bytes")))
    }

    /// Reads the beginning of the next frame's payload and goes past it. The checksum is not looked at.
    pub fn skim(&mut self, beginning: &mut [u8]) -> Result<Next, Error> {
        let Some((head, length)) = self.head()? else { return Ok(Next::CutShort) };
        if length == usize::MAX {
            return Ok(Next::End);
        }
        let wanted = beginning.len().min(length);
        let got = self.fill(&mut beginning[..wanted])?;
        let rest = (length - wanted) as u64;
        let size = self.file.get_ref().metadata().map_err(|error| self.system(&error))?.len();
        self.at += (HEAD + length) as u64;
        if got < wanted || self.at > size {
            return Ok(Next::CutShort);
        }
        self.file.seek_relative(rest as i64).map_err(|error| self.system(&error))?;
        Ok(Next::Frame(head[..4].try_into().expect("four bytes")))
    }

    /// A frame's head and its length; None if it is cut short, a length of `usize::MAX` at the end of the file.
    fn head(&mut self) -> Result<Option<([u8; HEAD], usize)>, Error> {
        let mut head = [0; HEAD];
        match self.fill(&mut head)? {
            0 => return Ok(Some((head, usize::MAX))),
            HEAD => {}
            _ => return Ok(None),
        }
        let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
        if length > MOST_BYTES {
            return Err(self.damage("a frame is longer than any can be"));
        }
        Ok(Some((head, length)))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        fill(&mut self.file, bytes).map_err(|error| self.system(&error))
    }

    fn system(&self, error: &io::Error) -> Error {
        Error { path: self.path.clone(), what: error.to_string(), errno: error.raw_os_error() }
    }

    /// The error of a file that says what cannot be.
    pub fn damage(&self, why: &str) -> Error {
        let what = format!("is damaged at byte {}: {why}; what stands before can be read", self.at);
        Error { path: self.path.clone(), what, errno: None }
    }

    /// An error that is about the whole file.
    pub fn refuse(&self, what: impl Into<String>) -> Error {
        Error { path: self.path.clone(), what: what.into(), errno: None }
    }
}

/// Reads until the bytes are full or the file ends; how many there were.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
