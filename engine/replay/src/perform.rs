//! Making a recorded call again: with the same number, live descriptors for recorded ones, and other data.

use std::ffi::CString;
use std::sync::Arc;

use etude_calls::{Call, Kind, Moves, Outcome, Processor, Set, canonical_open_flags};
use etude_trace::Event;

use crate::clock::now_ns;
use crate::maps::Maps;
use crate::pages::{PAGE, Pages};
use crate::table::Table;

/// What is played beside the calls themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// Files are opened with O_DIRECT.
    pub direct: bool,
    /// What was written is made durable when its descriptor is closed.
    pub fsync: bool,
    /// Memory that is no file's is taken, and touched while nothing else is to be done.
    pub footprint: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// `CLOCK_MONOTONIC` before and behind, ns; -errno for an error.
    Done { result: i64, begun: i64, ended: i64, same: bool },
    /// It cannot be made again, or was not asked for.
    Skipped,
}

/// What all threads of a process have in common.
#[derive(Default)]
pub struct Process {
    pub table: Table,
    pub maps: std::sync::Mutex<Maps>,
}

impl Process {
    /// As a fork leaves it to the child.
    pub fn copy(&self) -> Process {
        let maps = self.maps.lock().expect("no thread panics").clone();
        Process { table: self.table.copy(), maps: maps.into() }
    }
}

// SAFETY: its vectors point into its own pages, and are filled before each call.
unsafe impl Send for Performer {}

const SCRATCH: usize = 1 << 16;
/// Buffers of one vectored call.
const VECTORS: usize = 1024;
const UNKNOWN: i64 = i64::MIN;

/// Makes the calls of one thread.
pub struct Performer {
    names: Arc<Vec<CString>>,
    pub process: Arc<Process>,
    wishes: Wishes,
    /// Where reads go.
    into: Pages,
    /// What writes take: not compressible, and another piece of it each time.
    data: Arc<Pages>,
    piece: usize,
    scratch: Pages,
    vectors: Vec<libc::iovec>,
    /// Offsets that stand in memory.
    offsets: Box<[u64; 2]>,
    /// Transfers that had to be made without O_DIRECT.
    pub undirect: u64,
}

impl Performer {
    /// `largest`: the most bytes that a call moves.
    pub fn new(
        names: Arc<Vec<CString>>,
        process: Arc<Process>,
        data: Arc<Pages>,
        largest: usize,
        wishes: Wishes,
    ) -> std::io::Result<Performer> {
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(Performer {
            names,
            process,
            wishes,
            into: Pages::new(largest.max(PAGE))?,
            data,
            piece: 0,
            scratch: Pages::new(SCRATCH)?,
            vectors: vec![none; VECTORS],
            offsets: Box::default(),
            undirect: 0,
        })
    }

    /// For a thread that it starts, or a process that it forks.
    pub fn another(&self, process: Arc<Process>) -> std::io::Result<Performer> {
        Performer::new(self.names.clone(), process, self.data.clone(), self.into.length, self.wishes)
    }

    /// Makes a call.
    pub fn make(&mut self, event: &Event) -> Made {
        let Some(processor) = Processor::own() else { return Made::Skipped };
        let Some(number) = event.call.number(processor) else { return Made::Skipped };
        match event.call.name() {
            "close" => self.close(event),
            "close_range" => self.close_range(event),
            "dup2" | "dup3" => self.duplicate(event, number),
            "mmap" | "munmap" | "mremap" | "mprotect" | "msync" | "madvise" | "brk" => {
                self.memory(event, number)
            }
            "pipe" | "pipe2" => self.pipe(event, number),
            "fcntl" if matches!(event.arguments[1], 0 | 1030) => {
                let Some(live) = self.process.table.get(event.arguments[0] as i64) else {
                    return Made::Skipped;
                };
                self.descriptor(event, number, [live as u64, event.arguments[1], 3, 0, 0, 0])
            }
            name if refused(name, event) => Made::Skipped,
            name if name.ends_with("xattr") && !self.is_users(event) => Made::Skipped,
            _ => self.ordinary(event, number),
        }
    }

    /// Whether an attribute is one that means nothing to the kernel.
    fn is_users(&self, event: &Event) -> bool {
        let name = event.call.row().arguments.iter().position(|kind| *kind == Kind::Name);
        name.is_none_or(|index| {
            let name = (event.arguments[index] as usize).checked_sub(1).and_then(|name| self.names.get(name));
            name.is_some_and(|name| name.as_bytes().starts_with(b"user."))
        })
    }

    /// As it was, but for descriptors, texts and data.
    fn ordinary(&mut self, event: &Event, number: u16) -> Made {
        let mut arguments = event.arguments;
        let row = event.call.row();
        for (index, argument) in arguments.iter_mut().enumerate().take(row.arguments.len()) {
            match self.argument(event, index) {
                Some(value) => *argument = value,
                None => return Made::Skipped,
            }
        }
        if row.outcome == Outcome::Descriptor {
            return self.descriptor(event, number, arguments);
        }
        if row.moves == Moves::Writes && self.wishes.fsync {
            self.process.table.wrote(event.arguments[0] as i64);
        }
        let made = timed(number, arguments, |result| same(event, result));
        self.without_direct(event, number, arguments, made)
    }

    /// O_DIRECT refuses what is not aligned: then the call is made without, which is counted.
    fn without_direct(&mut self, event: &Event, number: u16, arguments: [u64; 6], made: Made) -> Made {
        const EINVAL: i64 = -(libc::EINVAL as i64);
        let moves = event.call.row().moves != Moves::Nothing;
        match made {
            Made::Done { result: EINVAL, begun, .. } if self.wishes.direct && moves && event.result >= 0 => {
                let fd = arguments[0] as i32;
                // SAFETY: flags of a descriptor of this replay.
                let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
                // SAFETY: as above.
                unsafe { libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_DIRECT) };
                self.undirect += 1;
                let made = timed(number, arguments, |result| same(event, result));
                // SAFETY: as above.
                unsafe { libc::fcntl(fd, libc::F_SETFL, flags) };
                match made {
                    Made::Done { result, ended, same, .. } => Made::Done { result, begun, ended, same },
                    Made::Skipped => Made::Skipped,
                }
            }
            made => made,
        }
    }

    fn descriptor(&mut self, event: &Event, number: u16, arguments: [u64; 6]) -> Made {
        let mut made = timed(number, arguments, |result| same(event, result));
        if let Made::Done { result, .. } = made
            && self.wishes.direct
            && result == -i64::from(libc::EINVAL)
            && let Some(flags) =
                event.call.row().arguments.iter().position(|kind| *kind == Kind::Flags(Set::Open))
        {
            let mut arguments = arguments;
            arguments[flags] &= !(libc::O_DIRECT as u64);
            self.undirect += 1;
            made = timed(number, arguments, |result| same(event, result));
        }
        if let Made::Done { result, .. } = made
            && result >= 0
        {
            self.opened(event.result, result as i32);
        }
        made
    }

    /// A live descriptor stands for a recorded one; one that did before is closed, as are those that nobody recorded.
    fn opened(&self, recorded: i64, live: i32) {
        let before = if recorded >= 0 { self.process.table.set(recorded, live) } else { Some(live) };
        let kept = recorded < 0 || self.process.table.get(recorded) == Some(live);
        for unused in before.into_iter().chain((!kept).then_some(live)) {
            // SAFETY: one that this replay has opened.
            unsafe { libc::close(unused) };
        }
    }

    fn argument(&mut self, event: &Event, index: usize) -> Option<u64> {
        let (call, value) = (event.call, event.arguments[index]);
        let pointer = |pages: &Pages| pages.at as u64;
        Some(match call.kind(&event.arguments, index) {
            Kind::Fd => self.process.table.get(value as i64)? as u64,
            Kind::DirFd => self.directory(event, index)?,
            Kind::Path | Kind::Name => match value {
                0 => 0,
                name => self.names.get(name as usize - 1)?.as_ptr() as u64,
            },
            Kind::Buffer if call.row().moves == Moves::Writes => {
                let size = usize::try_from(event.arguments[index + 1]).ok()?;
                self.piece(size)?
            }
            Kind::Buffer => {
                let size = usize::try_from(event.arguments[index + 1]).ok()?;
                (size <= self.into.length).then(|| pointer(&self.into))?
            }
            Kind::Iovec => self.vectors(event, index)?,
            Kind::Pointer if call.name().starts_with("utim") || call.name() == "futimesat" => 0,
            Kind::Pointer => {
                let size = event.arguments.get(index + 1).copied().unwrap_or(0);
                let sized = call.row().arguments.get(index + 1) == Some(&Kind::Size);
                (!sized || size <= SCRATCH as u64).then(|| pointer(&self.scratch))?
            }
            Kind::OffsetAt => self.offset(index, value),
            // Nobody becomes another user by what a roll makes.
            Kind::Mode => value & if call.name().starts_with("mknod") { 0o170777 } else { 0o1777 },
            Kind::Flags(Set::Open) => {
                let value = value & !SIGNALS;
                let direct = if self.wishes.direct
                    && call.row().outcome == Outcome::Descriptor
                    && value & DIRECTORY == 0
                {
                    0o40000
                } else {
                    0
                };
                canonical_open_flags(Processor::own()?, value | direct)
            }
            _ => value,
        })
    }

    /// Where an offset stands, if there is one: a value is one more than it.
    fn offset(&mut self, index: usize, value: u64) -> u64 {
        let Some(offset) = value.checked_sub(1) else { return 0 };
        let cell = &mut self.offsets[index / 2 % 2];
        *cell = offset;
        cell as *mut u64 as u64
    }

    /// Of a path that begins at the root it does not matter.
    fn directory(&self, event: &Event, index: usize) -> Option<u64> {
        let recorded = event.arguments[index] as i64;
        if recorded == i64::from(libc::AT_FDCWD) {
            return Some(recorded as u64);
        }
        if let Some(live) = self.process.table.get(recorded) {
            return Some(live as u64);
        }
        let name = (event.arguments.get(index + 1).copied()? as usize).checked_sub(1)?;
        let absolute = self.names.get(name)?.as_bytes().first() == Some(&b'/');
        absolute.then_some(i64::from(libc::AT_FDCWD) as u64)
    }

    /// Where so many bytes to be written stand.
    fn piece(&mut self, size: usize) -> Option<u64> {
        if size > self.data.length {
            return None;
        }
        self.piece += 7 * PAGE;
        if self.piece + size > self.data.length {
            self.piece %= (self.data.length - size).max(1).next_multiple_of(PAGE);
            self.piece = self.piece.min((self.data.length - size) / PAGE * PAGE);
        }
        Some(self.data.at as u64 + self.piece as u64)
    }

    /// Buffers of a vectored call: of how many bytes each is was not recorded, only what moved.
    fn vectors(&mut self, event: &Event, index: usize) -> Option<u64> {
        let (many, all) = (event.arguments[index + 1] as usize, event.result.max(0) as usize);
        if many == 0 || many > VECTORS {
            return None;
        }
        let base = if event.call.row().moves == Moves::Writes {
            self.piece(all)?
        } else {
            (all <= self.into.length).then_some(self.into.at as u64)?
        };
        let each = all / many;
        for (at, vector) in self.vectors[..many].iter_mut().enumerate() {
            let length = if at + 1 == many { all - each * at } else { each };
            *vector =
                libc::iovec { iov_base: (base + (each * at) as u64) as *mut libc::c_void, iov_len: length };
        }
        Some(self.vectors.as_ptr() as u64)
    }

    fn close(&mut self, event: &Event) -> Made {
        let recorded = event.arguments[0] as i64;
        let written = self.wishes.fsync && self.process.table.was_written(recorded);
        let Some(live) = self.process.table.take(recorded) else { return Made::Skipped };
        let begun = now_ns();
        // SAFETY: one that this replay has opened.
        let result = unsafe {
            if written {
                libc::fsync(live);
            }
            answer(i64::from(libc::close(live)))
        };
        Made::Done { result, begun, ended: now_ns(), same: same(event, result) }
    }

    /// Only those that the original had.
    fn close_range(&mut self, event: &Event) -> Made {
        const CLOSE_ON_EXEC: u64 = 4;
        if event.arguments[2] & CLOSE_ON_EXEC != 0 || event.result != 0 {
            return Made::Skipped;
        }
        let range = event.arguments[0] as i64..=event.arguments[1] as i64;
        let open: Vec<i64> =
            self.process.table.all().map(|(recorded, _)| recorded).filter(|fd| range.contains(fd)).collect();
        let begun = now_ns();
        for recorded in open {
            if let Some(live) = self.process.table.take(recorded) {
                // SAFETY: as above.
                unsafe { libc::close(live) };
            }
        }
        Made::Done { result: 0, begun, ended: now_ns(), same: true }
    }

    /// The second descriptor gets its recorded number where that is free, else any.
    fn duplicate(&mut self, event: &Event, number: u16) -> Made {
        let [from, to, flags, ..] = event.arguments;
        let Some(live) = self.process.table.get(from as i64) else { return Made::Skipped };
        if from == to {
            return timed(number, [live as u64, live as u64, flags, 0, 0, 0], |result| same(event, result));
        }
        let target = match self.process.table.get(to as i64) {
            Some(target) => target,
            None => {
                // SAFETY: a new descriptor, which the call replaces at once.
                let target = unsafe { libc::fcntl(live, libc::F_DUPFD, (to as i32).max(3)) };
                if target < 0 {
                    return Made::Skipped;
                }
                self.process.table.set(to as i64, target);
                target
            }
        };
        timed(number, [live as u64, target as u64, flags, 0, 0, 0], |result| same(event, result))
    }

    fn pipe(&mut self, event: &Event, number: u16) -> Made {
        let mut pair = [0_i32; 2];
        let flags = event.arguments[1];
        let made = timed(number, [pair.as_mut_ptr() as u64, flags, 0, 0, 0, 0], |result| same(event, result));
        if let Made::Done { result: 0, .. } = made {
            let recorded = event.arguments[0];
            self.opened(i64::from(recorded as i32), pair[0]);
            self.opened(i64::from((recorded >> 32) as i32), pair[1]);
        }
        made
    }

    fn memory(&mut self, event: &Event, number: u16) -> Made {
        let process = self.process.clone();
        let mut maps = process.maps.lock().expect("no thread panics");
        if event.call.name() == "brk" {
            return if self.wishes.footprint { heap(&mut maps, event) } else { Made::Skipped };
        }
        let Some(arguments) = maps.translated(event, self.wishes.footprint, |fd| process.table.get(fd))
        else {
            return Made::Skipped;
        };
        let made = timed(number, arguments, |result| same(event, result));
        if let Made::Done { result, .. } = made {
            maps.made(event, result);
        }
        made
    }

    /// Touches memory that was taken for its size, until a time.
    pub fn touch(&self, until: i64) {
        if self.wishes.footprint {
            self.process.maps.lock().expect("no thread panics").touch(until);
        }
    }

    /// Closes what is to be closed when a program becomes another one.
    pub fn exec(&self) {
        let table = &self.process.table;
        let closing: Vec<i64> = table
            .all()
            // SAFETY: flags of a descriptor of this replay.
            .filter(|(_, live)| unsafe { libc::fcntl(*live, libc::F_GETFD) } & libc::FD_CLOEXEC != 0)
            .map(|(recorded, _)| recorded)
            .collect();
        for recorded in closing {
            if let Some(live) = table.take(recorded) {
                // SAFETY: as above.
                unsafe { libc::close(live) };
            }
        }
        self.process.maps.lock().expect("no thread panics").clear();
    }
}

/// A larger heap: memory of its own, since the replayer has a heap itself.
fn heap(maps: &mut Maps, event: &Event) -> Made {
    let Some(grown) = maps.grown(event) else { return Made::Skipped };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let begun = now_ns();
    // SAFETY: a fresh mapping.
    let live = unsafe { libc::mmap(std::ptr::null_mut(), grown as usize, protection, flags, -1, 0) };
    let ended = now_ns();
    if live == libc::MAP_FAILED {
        return Made::Skipped;
    }
    maps.grow(event, grown, live as u64);
    Made::Done { result: event.result, begun, ended, same: true }
}

const DIRECTORY: u64 = 0o200000;
/// O_ASYNC: signals at I/O.
const SIGNALS: u64 = 0o20000;

/// Commands of fcntl: flags of descriptors, and what is asked of pipes and seals. Others send signals to processes, or
/// mean something in memory.
const HARMLESS: [u64; 6] = [1, 2, 3, 4, 1032, 1034];

/// What is never played: it would reach beyond the replay's directory, or what it means is not known.
fn refused(name: &str, event: &Event) -> bool {
    match name {
        "openat2" | "open_by_handle_at" | "name_to_handle_at" | "ioctl" | "sync" | "vmsplice" | "tee" => true,
        "fcntl" => !HARMLESS.contains(&event.arguments[1]),
        "mknod" | "mknodat" => {
            let mode = event.arguments[if name == "mknod" { 1 } else { 2 }] as u32 & libc::S_IFMT;
            !matches!(mode, 0 | libc::S_IFREG | libc::S_IFIFO)
        }
        "memfd_create" | "eventfd2" | "inotify_add_watch" => true,
        _ => {
            name.starts_with("io_")
                || event.call.row().arguments.contains(&Kind::Socket)
                || is_of_sockets(event.call)
        }
    }
}

fn is_of_sockets(call: Call) -> bool {
    const SOCKETS: [&str; 8] =
        ["socket", "socketpair", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "accept4"];
    SOCKETS.contains(&call.name())
}

fn timed(number: u16, arguments: [u64; 6], same: impl Fn(i64) -> bool) -> Made {
    let [a, b, c, d, e, f] = arguments;
    let begun = now_ns();
    // SAFETY: descriptors are this replay's, and memory that is written to is that of `Pages` of enough length, or of
    // mappings that the replay itself has made for this.
    let result = answer(unsafe { libc::syscall(number.into(), a, b, c, d, e, f) });
    let ended = now_ns();
    Made::Done { result, begun, ended, same: same(result) }
}

/// As the kernel gives it.
fn answer(result: i64) -> i64 {
    if result == -1 {
        -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    } else {
        result
    }
}

/// Whether a result is that of the original, as far as another machine's can be.
fn same(event: &Event, result: i64) -> bool {
    if event.result == UNKNOWN {
        return true;
    }
    if event.result < 0 || result < 0 {
        return event.result == result;
    }
    let exact = match event.call.row().outcome {
        Outcome::Bytes => event.call.row().moves != Moves::Nothing,
        Outcome::Status | Outcome::Offset => true,
        _ => false,
    };
    !exact || event.result == result
}
