//! Makes files, directories and links below a descriptor, and takes them away again if not all can be made.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use etude_terminal::{clear_line, tell};

use crate::prepare::content::Content;
use crate::prepare::plan::{Entry, Plan};
use crate::prepare::{PREPARED, Preparation, Prepared, Refused, ended};

const PIECE: usize = 1 << 20;
/// How often it is said how far it is, and after what time first.
const EVERY: Duration = Duration::from_secs(1);

/// `other`: the place that has the files which are shared.
pub(crate) fn build(
    plan: &Plan,
    root: &File,
    other: Option<&File>,
    directory: &Path,
    how: Preparation,
) -> Result<Prepared, Refused> {
    let mut builder = Builder {
        root: Tree { root, inside: None },
        other: Tree { root: other.unwrap_or(root), inside: None },
        made: Vec::new(),
        done: Prepared::default(),
        buffer: vec![0; PIECE],
        told: Instant::now(),
        room: plan.room,
        written: 0,
        progress: how.progress,
        shown: false,
    };
    let built = builder.all(plan).and_then(|()| if how.sync { builder.sync() } else { Ok(()) });
    builder.clear_line();
    match built {
        Ok(()) => Ok(builder.done),
        Err((path, error)) => {
            builder.remove();
            Err(ended().unwrap_or_else(|| {
                let path = directory.join(String::from_utf8_lossy(&path).as_ref());
                Refused::machine(format!("{}: {error}; nothing is left", path.display()))
            }))
        }
    }
}

/// A path and what was wrong with it.
type Failed = (Vec<u8>, io::Error);

struct Builder<'a> {
    root: Tree<'a>,
    other: Tree<'a>,
    /// What is there by now, and whether it is a directory.
    made: Vec<(Vec<u8>, bool)>,
    done: Prepared,
    buffer: Vec<u8>,
    told: Instant,
    room: u64,
    written: u64,
    progress: bool,
    shown: bool,
}

impl Builder<'_> {
    fn all(&mut self, plan: &Plan) -> Result<(), Failed> {
        let later = |entry: &Entry| matches!(entry, Entry::HardLink(_));
        // A name needs its file.
        for last in [false, true] {
            for (path, entry) in plan.entries_by_path.iter().filter(|(_, entry)| later(entry) == last) {
                self.entry(path, entry).map_err(|error| (path.clone(), error))?;
            }
        }
        self.mark().map_err(|error| (PREPARED.into(), error))
    }

    fn entry(&mut self, path: &[u8], entry: &Entry) -> io::Result<()> {
        if ended().is_some() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let (directory, name) = split(path);
        let name = CString::new(name)?;
        let at = self.root.directory(directory)?;
        match entry {
            Entry::Directory => {
                // SAFETY: an open descriptor and a text that ends with a zero byte.
                checked(unsafe { libc::mkdirat(at, name.as_ptr(), 0o755) })?;
                self.made.push((path.to_vec(), true));
                self.done.directories += 1;
            }
            Entry::Shared { bytes, data, seen } => {
                match link(self.other.directory(directory)?, &name, at, &name) {
                    // The next place has the copy that is made here.
                    Err(error) if error.raw_os_error() == Some(libc::EMLINK) => {
                        return self.entry(path, &Entry::File { bytes: *bytes, data: *data, seen: *seen });
                    }
                    linked => linked?,
                }
                self.made.push((path.to_vec(), false));
                self.done.links += 1;
            }
            Entry::File { bytes, data, seen } => {
                /// Programs look whether others can be executed (`access` with X_OK); nothing here is.
                const MODE: u32 = 0o755;
                const FLAGS: i32 =
                    libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
                // SAFETY: as above.
                let file = checked(unsafe { libc::openat(at, name.as_ptr(), FLAGS, MODE) })?;
                // SAFETY: it was just opened, and nobody else has it.
                let file = unsafe { File::from_raw_fd(file) };
                self.made.push((path.to_vec(), false));
                self.write(&file, path, *data)?;
                if data < bytes {
                    file.set_len(*bytes)?;
                }
                self.done.files += 1;
                self.done.bytes += bytes;
                self.done.at_least += u64::from(!seen);
            }
            Entry::Link(target) => {
                let target = CString::new(&target[..])?;
                // SAFETY: as above.
                checked(unsafe { libc::symlinkat(target.as_ptr(), at, name.as_ptr()) })?;
                self.made.push((path.to_vec(), false));
                self.done.links += 1;
            }
            Entry::HardLink(other) => {
                let (directory, old) = split(other);
                let from = open_directory(self.root.root, directory)?;
                link(from.as_raw_fd(), &CString::new(old)?, at, &name)?;
                self.made.push((path.to_vec(), false));
                self.done.links += 1;
            }
        }
        Ok(())
    }

    /// Says that this directory is one for replays. A file that is needed there says so, too.
    fn mark(&mut self) -> io::Result<()> {
        let name = CString::new(PREPARED)?;
        const FLAGS: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: an open descriptor and a text that ends with a zero byte.
        match checked(unsafe { libc::openat(self.root.root.as_raw_fd(), name.as_ptr(), FLAGS, 0o644) }) {
            // SAFETY: it was just opened, and nobody else has it.
            Ok(file) => drop(unsafe { OwnedFd::from_raw_fd(file) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(error),
        }
        self.made.push((PREPARED.into(), false));
        Ok(())
    }

    fn write(&mut self, file: &File, path: &[u8], bytes: u64) -> io::Result<()> {
        let (mut content, mut at) = (Content::of(path), 0);
        while at < bytes {
            if ended().is_some() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let piece = (bytes - at).min(PIECE as u64) as usize;
            content.fill(&mut self.buffer[..piece]);
            file.write_all_at(&self.buffer[..piece], at)?;
            at += piece as u64;
            self.written += piece as u64;
            self.tell();
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Failed> {
        // SAFETY: an open descriptor.
        checked(unsafe { libc::syncfs(self.root.root.as_raw_fd()) })
            .map(drop)
            .map_err(|error| (Vec::new(), error))
    }

    fn remove(&mut self) {
        for (path, directory) in std::mem::take(&mut self.made).into_iter().rev() {
            let (above, name) = split(&path);
            let (Ok(at), Ok(name)) = (self.root.directory(above), CString::new(name)) else { continue };
            let flags = if directory { libc::AT_REMOVEDIR } else { 0 };
            // SAFETY: an open descriptor and a text that ends with a zero byte.
            unsafe { libc::unlinkat(at, name.as_ptr(), flags) };
        }
    }

    fn tell(&mut self) {
        if self.progress && self.told.elapsed() > EVERY {
            self.told = Instant::now();
            self.shown = true;
            tell(&format!("\retude prepare: {} of {} MB", self.written >> 20, self.room >> 20));
        }
    }

    fn clear_line(&self) {
        if self.shown {
            clear_line();
        }
    }
}

/// A directory and what is below it.
struct Tree<'a> {
    root: &'a File,
    /// The directory that was last used.
    inside: Option<(Vec<u8>, OwnedFd)>,
}

impl Tree<'_> {
    /// The descriptor of a directory below the root.
    fn directory(&mut self, path: &[u8]) -> io::Result<i32> {
        if path.is_empty() {
            return Ok(self.root.as_raw_fd());
        }
        if self.inside.as_ref().is_none_or(|(inside, _)| inside != path) {
            self.inside = Some((path.to_vec(), open_directory(self.root, path)?));
        }
        Ok(self.inside.as_ref().map_or(-1, |(_, descriptor)| descriptor.as_raw_fd()))
    }
}

/// Gives a file one more name; a link is not followed.
fn link(from: i32, old: &CStr, to: i32, new: &CStr) -> io::Result<()> {
    // SAFETY: open descriptors and texts that end with a zero byte.
    checked(unsafe { libc::linkat(from, old.as_ptr(), to, new.as_ptr(), 0) }).map(drop)
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// Opens a directory below another one component by component, through no link.
fn open_directory(root: &File, path: &[u8]) -> io::Result<OwnedFd> {
    let mut at = root.as_raw_fd();
    let mut inside: Option<OwnedFd> = None;
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        let name = CString::new(part)?;
        const FLAGS: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: an open descriptor and a text that ends with a zero byte.
        let next = checked(unsafe { libc::openat(at, name.as_ptr(), FLAGS) })?;
        // SAFETY: it was just opened, and nobody else has it.
        inside = Some(unsafe { OwnedFd::from_raw_fd(next) });
        at = next;
    }
    match inside {
        Some(inside) => Ok(inside),
        None => Ok(root.try_clone()?.into()),
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
