//! All processes, and the CPU time that each used since they were last looked at.
//!
//! To read `/proc/PID/stat` of each would be most of what a sample costs. But a process with one thread that did not run
//! since cannot have used CPU time, have new threads, or have waited for children: for such one the small file
//! `schedstat`, kept open, is enough. And where nothing forked there is no new process to look for.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

use crate::kept::{Kept, Root};
use crate::process::{Stat, ran_ns};
use crate::text::number;

/// Files that are kept open at most; each takes about 5 KiB of the kernel's memory.
const MOST_KEPT: u64 = 16_384;
/// Descriptors that are left to all else.
const LEFT: u64 = 200;

/// One process.
#[derive(Debug, Default)]
pub struct Process {
    pub pid: u32,
    /// When it started, ticks since boot: with it a number that is used again is told apart.
    pub start: i64,
    pub name: String,
    pub parent: u32,
    /// Resident pages.
    pub pages: i64,
    /// CPU time of this interval, ns.
    pub cpu_ns: i64,
    /// CPU time of children that ended in this interval, as far as it had not been seen as theirs, ns.
    pub children_ns: i64,
    /// Whether it ran at all since it was last looked at.
    pub ran: bool,
    /// Bytes read and written so far, at the end of a look after which it did not run unseen.
    pub io: Option<(i64, i64)>,
    kept: Option<Kept>,
    keeps_stat: bool,
    threads: i64,
    first_ran_ns: Option<i64>,
    used: i64,
    waited: i64,
    /// Ticks of children that are gone, which were seen while they lived and are not in `waited` yet.
    owed: i64,
}

/// One that is gone.
struct Gone {
    pid: u32,
    parent: u32,
    /// CPU time that was seen of it and of children it had waited for, ticks.
    seen: i64,
}

/// All of them, by number.
pub struct Processes {
    pub all: Vec<Process>,
    directory: File,
    listed: Vec<u32>,
    gone: Vec<Gone>,
    buffer: Vec<u8>,
    forks: Option<i64>,
    keepable: u64,
    tick_ns: i64,
    /// When they were last looked at, ticks since boot; none before the first time.
    looked: Option<i64>,
}

impl Processes {
    /// # Errors
    /// There is no `/proc`.
    pub fn open(root: &Root) -> io::Result<Processes> {
        Ok(Processes {
            all: Vec::new(),
            directory: File::open(root.path("proc"))?,
            listed: Vec::new(),
            gone: Vec::new(),
            buffer: vec![0; 32 << 10],
            forks: None,
            keepable: (etude_launch::sys::most_open_files() as u64).saturating_sub(LEFT).min(MOST_KEPT),
            tick_ns: 1_000_000_000 / crate::machine::ticks_a_second(),
            looked: None,
        })
    }

    /// Looks at all of them. `forks`: how many were started since boot, read just before; `now_ns` since boot.
    pub fn look(&mut self, forks: Option<i64>, now_ns: u64) {
        self.look_at_known();
        // Some kernels that only look like Linux always say 0.
        if forks.is_none_or(|forks| forks == 0) || forks != self.forks {
            self.list();
            self.add_new();
        }
        self.forks = forks;
        self.settle();
        self.looked = Some(i64::try_from(now_ns).unwrap_or(i64::MAX) / self.tick_ns);
    }

    /// A small file of a process, into a buffer; none where it may not be read.
    pub fn file<'a>(&self, pid: u32, file: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        open(&self.directory, pid, file).ok()?.piece(buffer).ok()
    }

    /// CPU time of all processes in this interval, ns.
    pub fn cpu_ns(&self) -> i64 {
        self.all.iter().fold(0, |sum, process| sum.saturating_add(process.cpu_ns))
    }

    fn look_at_known(&mut self) {
        let (directory, buffer, tick_ns) = (&self.directory, &mut self.buffer[..], self.tick_ns);
        let (gone, keepable) = (&mut self.gone, &mut self.keepable);
        gone.clear();
        self.all.retain_mut(|process| match process.look(directory, buffer, tick_ns, keepable) {
            Ok(()) => true,
            Err(error) if is_gone(&error) => {
                *keepable += u64::from(process.kept.is_some());
                gone.push(Gone {
                    pid: process.pid,
                    parent: process.parent,
                    seen: process.used + process.waited,
                });
                false
            }
            // It could not be read this time, and what it used is added the next time.
            Err(_) => {
                (process.cpu_ns, process.children_ns, process.ran, process.io) = (0, 0, false, None);
                true
            }
        });
    }

    /// The numbers of all processes, ascending, as the kernel lists them.
    fn list(&mut self) {
        self.listed.clear();
        let fd = self.directory.as_raw_fd();
        // SAFETY: a descriptor of a directory.
        unsafe { libc::lseek(fd, 0, libc::SEEK_SET) };
        loop {
            let (place, size) = (self.buffer.as_mut_ptr(), self.buffer.len());
            // SAFETY: the kernel writes at most `size` bytes into the buffer.
            let read = unsafe { libc::syscall(libc::SYS_getdents64, fd, place, size) };
            match usize::try_from(read) {
                Ok(length @ 1..) => self.listed.extend(numbers(&self.buffer[..length])),
                _ => break,
            }
        }
        self.listed.sort_unstable();
    }

    fn add_new(&mut self) {
        let known = self.all.len();
        for at in 0..self.listed.len() {
            let pid = self.listed[at];
            if self.all[..known].binary_search_by_key(&pid, |process| process.pid).is_ok() {
                continue;
            }
            let mut process = Process { pid, ..Process::default() };
            if process.meet(&self.directory, &mut self.buffer, self.tick_ns, &mut self.keepable).is_err() {
                continue;
            }
            // At the first look all were there before; later one that is old was hidden, or could not be opened.
            if self.looked.is_none_or(|looked| process.start < looked - 1) {
                (process.cpu_ns, process.children_ns, process.io) = (0, 0, None);
            }
            self.all.push(process);
        }
        if self.all.len() > known {
            self.all.sort_unstable_by_key(|process| process.pid);
        }
    }

    /// What a parent is told of a child that ended, less what was seen of that child before; and who took in orphans.
    fn settle(&mut self) {
        for at in 0..self.gone.len() {
            let mut parent = self.gone[at].parent;
            for _ in 0..self.gone.len() {
                match self.gone.iter().find(|gone| gone.pid == parent) {
                    Some(gone) => parent = gone.parent,
                    None => break,
                }
            }
            if let Ok(place) = self.all.binary_search_by_key(&parent, |process| process.pid) {
                self.all[place].owed += self.gone[at].seen;
            }
        }
        for process in &mut self.all {
            if process.owed > 0 && process.children_ns > 0 {
                let paid = process.owed.min(process.children_ns / self.tick_ns);
                process.owed -= paid;
                process.children_ns -= paid * self.tick_ns;
            }
            if !self.gone.is_empty() && self.gone.iter().any(|gone| gone.pid == process.parent) {
                let text = open(&self.directory, process.pid, "stat").and_then(|kept| {
                    kept.piece(&mut self.buffer).map(|text| Stat::read(text).map(|stat| stat.parent))
                });
                process.parent = text.ok().flatten().unwrap_or(process.parent);
            }
        }
    }
}

impl Process {
    /// Looks at it for the first time: all that it used so far is of this interval.
    fn meet(
        &mut self,
        directory: &File,
        buffer: &mut [u8],
        tick_ns: i64,
        keepable: &mut u64,
    ) -> io::Result<()> {
        let ran_ns = open(directory, self.pid, "schedstat").and_then(|kept| {
            let ran_ns = kept.piece(buffer).map(ran_ns)?;
            if *keepable > 0 {
                *keepable -= 1;
                self.kept = Some(kept);
            }
            Ok(ran_ns)
        });
        self.io = Some((0, 0));
        (self.threads, self.first_ran_ns) = (1, Some(0));
        let text = open(directory, self.pid, "stat")?;
        self.take(text.piece(buffer)?, ran_ns.unwrap_or(None), tick_ns)
    }

    /// What it did since the last look.
    fn look(
        &mut self,
        directory: &File,
        buffer: &mut [u8],
        tick_ns: i64,
        keepable: &mut u64,
    ) -> io::Result<()> {
        if self.keeps_stat {
            let kept = self.kept.as_ref().ok_or(io::ErrorKind::NotFound)?;
            return self.take_of(kept.piece(buffer)?.len(), buffer, None, tick_ns);
        }
        let ran = match &self.kept {
            Some(kept) => kept.piece(buffer).map(ran_ns),
            None => open(directory, self.pid, "schedstat").and_then(|kept| kept.piece(buffer).map(ran_ns)),
        };
        let ran = match ran {
            // A kernel without schedstat.
            Err(error) if self.kept.is_none() && error.kind() == io::ErrorKind::NotFound => None,
            other => other?,
        };
        if self.threads == 1 && ran.is_some() && ran == self.first_ran_ns {
            (self.cpu_ns, self.children_ns, self.ran) = (0, 0, false);
            return Ok(());
        }
        let stat = open(directory, self.pid, "stat")?;
        let length = stat.piece(buffer)?.len();
        self.take_of(length, buffer, ran, tick_ns)?;
        if self.threads > 1 && (self.kept.is_some() || *keepable > 0) {
            *keepable -= u64::from(self.kept.is_none());
            (self.kept, self.keeps_stat) = (Some(stat), true);
        }
        Ok(())
    }

    fn take_of(&mut self, length: usize, buffer: &[u8], ran: Option<i64>, tick_ns: i64) -> io::Result<()> {
        self.take(&buffer[..length], ran, tick_ns)
    }

    fn take(&mut self, text: &[u8], ran_ns: Option<i64>, tick_ns: i64) -> io::Result<()> {
        let stat = Stat::read(text).ok_or(io::ErrorKind::NotFound)?;
        if self.start != 0 && stat.start != self.start {
            // Another process of the same number.
            return Err(io::ErrorKind::NotFound.into());
        }
        let since = |now: i64, before: i64| now.saturating_sub(before).max(0).saturating_mul(tick_ns);
        self.cpu_ns = since(stat.used, self.used);
        // Of one thread the kernel tells nanoseconds. They do not count if others were there meanwhile.
        if let (1, 1, Some(now), Some(before)) = (self.threads, stat.threads, ran_ns, self.first_ran_ns) {
            let fine = now.saturating_sub(before);
            if (fine - self.cpu_ns).abs() <= 2 * tick_ns {
                self.cpu_ns = fine.max(0);
            }
        }
        self.children_ns = since(stat.waited, self.waited);
        self.ran = true;
        if self.name.as_bytes() != stat.name {
            self.name = crate::text::name(stat.name);
        }
        (self.start, self.parent, self.pages) = (stat.start, stat.parent, stat.pages);
        (self.threads, self.first_ran_ns) = (stat.threads, ran_ns);
        (self.used, self.waited) = (stat.used, stat.waited);
        Ok(())
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn open(directory: &File, pid: u32, file: &str) -> io::Result<Kept> {
    let path = CString::new(format!("{pid}/{file}"))?;
    // SAFETY: a descriptor of a directory and a C string.
    let fd = unsafe { libc::openat(directory.as_raw_fd(), path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    // SAFETY: a new descriptor that nobody else has.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(Kept::new(unsafe { File::from_raw_fd(fd) })) }
}

/// The entries of a directory that are numbers, from the records of getdents64.
fn numbers(records: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = records;
    std::iter::from_fn(move || {
        // Inode and offset (8 bytes each), length of the record (2), kind (1), name and a zero byte.
        let length = usize::from(u16::from_ne_bytes(rest.get(16..18)?.try_into().ok()?));
        let record = rest.get(..length).filter(|record| record.len() > 19)?;
        rest = &rest[length..];
        let name = &record[19..];
        Some(number(&name[..crate::text::find(name, 0).unwrap_or(name.len())]))
    })
    .flatten()
    .filter_map(|pid| u32::try_from(pid).ok())
}
