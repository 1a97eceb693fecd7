//! What scans found, kept from one program's start to the next.
//!
//! A file a piece of code, in the cache directory of the user (`$XDG_CACHE_HOME/etude/sites`):
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `etudesit` |
//! | 4 | version of form and patterns, little-endian as all that follows |
//! | 4 | CRC-32 of the rest |
//! | | the key: its length in 2 bytes, its text |
//! | | how many sites, in 4 bytes, and the sites; how many are left, in 4 bytes, and those |
//!
//! Addresses are kept as distances from the base. What is damaged, of another version or another user's is not there.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::pack::{self, Reader};
use crate::{Left, Scan, Site};

const MAGIC: &[u8; 8] = b"etudesit";
/// Also another one when a pattern changes.
const VERSION: u32 = 1;
/// More than what any program's sites take.
const MOST: u64 = 64 << 20;

/// Which piece of code it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// A segment of an image with a build-id; where it is in the file and its length tell the segments apart.
    pub fn of_build(build_id: &[u8], offset: u64, length: u64) -> Key {
        let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Key(format!("{id}-{offset:x}-{length:x}"))
    }

    /// A segment of a file without one: it is the same as long as nobody writes to the file.
    pub fn of_file(file: &Metadata, offset: u64, length: u64) -> Key {
        let (modified, changed) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
        Key(format!(
            "file-{:x}-{:x}-{:x}-{}.{:09}-{}.{:09}-{offset:x}-{length:x}",
            file.dev(),
            file.ino(),
            file.size(),
            modified.0,
            modified.1,
            changed.0,
            changed.1,
        ))
    }
}

/// A directory of scans.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The user's: below `$XDG_CACHE_HOME`, or `$HOME/.cache`. None where neither is an absolute path.
    pub fn of_user() -> Option<Cache> {
        let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below = path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")))?;
        Some(Cache::at(below.join("etude/sites")))
    }

    /// In a directory, which is made when something is stored.
    pub fn at(directory: PathBuf) -> Cache {
        Cache { directory }
    }

    /// What was stored for a piece of code, if it is now at `base`; None where there is nothing, or nothing good.
    pub fn load(&self, key: &Key, base: u64) -> Option<Scan> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.path(key))
            .ok()?;
        let about = file.metadata().ok()?;
        // What is loaded ends up in a program that runs as this user.
        // SAFETY: geteuid cannot fail.
        let is_own = about.uid() == unsafe { libc::geteuid() } && about.mode() & 0o022 == 0;
        if !is_own || !about.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes).ok()?;
        decode(&bytes, key, base)
    }

    /// Stores what was found in a piece of code at `base`: all of it or nothing.
    ///
    /// # Errors
    /// Those of making the directory and of writing; the scan is as good without.
    pub fn store(&self, key: &Key, base: u64, scan: &Scan) -> io::Result<()> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let partial = self.directory.join(format!(".{}-{number}.partial", std::process::id()));
        let _ = fs::remove_file(&partial);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        let stored = write(&mut file, key, base, scan).and_then(|()| fs::rename(&partial, self.path(key)));
        if stored.is_err() {
            let _ = fs::remove_file(&partial);
        }
        stored
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(&key.0)
    }
}

fn write(file: &mut File, key: &Key, base: u64, scan: &Scan) -> io::Result<()> {
    file.write_all(&encode(key, base, scan))
}

/// What was found in a piece of code at `base`, as it is stored.
pub fn encode(key: &Key, base: u64, scan: &Scan) -> Vec<u8> {
    let mut rest = Vec::new();
    rest.extend((key.0.len() as u16).to_le_bytes());
    rest.extend(key.0.as_bytes());
    rest.extend((scan.sites.len() as u32).to_le_bytes());
    scan.sites.iter().for_each(|site| pack::site(&mut rest, base, site));
    rest.extend((scan.left.len() as u32).to_le_bytes());
    scan.left.iter().for_each(|left| pack::left(&mut rest, base, left));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(crc32fast::hash(&rest).to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// The same for a piece of code that is now at `base`; None of what was not stored for this key, or is damaged.
pub fn decode(bytes: &[u8], key: &Key, base: u64) -> Option<Scan> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&VERSION.to_le_bytes())?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut reader = Reader::new(rest, base);
    let length = reader.u16()?;
    if reader.take(usize::from(length))? != key.0.as_bytes() {
        return None;
    }
    let sites = (0..reader.u32()?).map(|_| reader.site()).collect::<Option<Vec<Site>>>()?;
    let left = (0..reader.u32()?).map(|_| reader.left()).collect::<Option<Vec<Left>>>()?;
    reader.is_at_end().then_some(Scan { sites, left })
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
