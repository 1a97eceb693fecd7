//! Making a recorded call again: with the same number, live descriptors for recorded ones, and other data.

mod descriptors;
mod locks;
mod memory;
mod pipes;
mod requests;
mod sockets;
mod ways;

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use etude_calls::{Call, Kind, Moves, Outcome, Processor, Set, canonical_open_flags};
use etude_script::UNKNOWN;
use etude_trace::Event;

pub use self::sockets::Listeners;
use self::ways::{By, Plan, Waits, Way, is_harmless, is_no_device, is_stream_pair, plans};
pub use self::ways::{is_between, is_done_later, is_memory, is_never_played};
use crate::clock::now_ns;
use crate::maps::Maps;
use crate::pages::{PAGE, Pages};
use crate::requests::{Finished, Place, Queues};
use crate::table::Table;

/// What is played beside the calls themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// Files are opened with O_DIRECT.
    pub direct: bool,
    /// Sync written data when its descriptor is closed.
    pub fsync: bool,
    /// Memory that is no file's is taken, and touched while nothing else is to be done.
    pub footprint: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// `CLOCK_MONOTONIC` before and behind, ns; -errno for an error.
    Done { result: i64, begun: i64, ended: i64, same: bool },
    /// A request that the next call which hands over takes along.
    Queued,
    /// A request from before is done, and its completion taken.
    Taken { begun: i64, ended: i64, request: Finished },
    /// It cannot be made again, or was not asked for.
    Skipped,
}

/// What all threads of a process have in common.
#[derive(Default)]
pub struct Process {
    pub table: Table,
    pub maps: std::sync::Mutex<Maps>,
    pub queues: Queues,
    /// Connections that have come, and are not to be accepted yet, by their numbers. A fork leaves them to the parent.
    pub early: std::sync::Mutex<HashMap<u64, OwnedFd>>,
    /// Whether it is one, and not a copy that was made for one.
    played: AtomicBool,
}

impl Process {
    /// As a fork leaves it to the child.
    pub fn copy(&self) -> Process {
        let maps = self.maps.lock().expect("no thread panics").clone();
        Process {
            table: self.table.copy(),
            maps: maps.into(),
            queues: Queues::default(),
            early: Default::default(),
            played: false.into(),
        }
    }

    /// What the end of a process closes.
    pub fn end(&self) {
        let open: Vec<i64> = self.table.all().map(|(recorded, _)| recorded).collect();
        open.into_iter().for_each(|recorded| self.table.close(recorded));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if *self.played.get_mut() {
            self.end();
        }
    }
}

// SAFETY: its vectors point into its own pages, and are filled before each call.
unsafe impl Send for Performer {}

const SCRATCH: usize = 1 << 16;
/// Buffers of one vectored call.
const VECTORS: usize = 1024;

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
    /// The range of a lock.
    range: Box<libc::flock>,
    /// Transfers that had to be made without O_DIRECT.
    pub undirect: u64,
    /// Where the call that is made stands; its thread always.
    pub place: Place,
    listeners: Arc<Listeners>,
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
        process.played.store(true, Ordering::Relaxed);
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
            range: Box::new(libc::flock { l_type: 0, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 }),
            undirect: 0,
            place: Place::default(),
            listeners: Arc::default(),
        })
    }

    /// For a thread that it starts, or a process that it forks.
    pub fn another(&self, process: Arc<Process>) -> std::io::Result<Performer> {
        let (names, data) = (self.names.clone(), self.data.clone());
        let new = Performer::new(names, process, data, self.into.length, self.wishes)?;
        Ok(new.accepting(self.listeners.clone()))
    }

    /// With what threads accept connections by.
    pub fn accepting(self, listeners: Arc<Listeners>) -> Performer {
        Performer { listeners, ..self }
    }

    /// Makes a call.
    pub fn make(&mut self, event: &Event) -> Made {
        let Plan { way, number, waits } = plans()[usize::from(event.call.code()) - 1];
        match way {
            Way::Ordinary => self.through_pipe(event, waits).unwrap_or_else(|| self.ordinary(event, number)),
            Way::Close => self.close(event),
            Way::CloseRange => self.close_range(event),
            Way::Duplicate => self.duplicate(event, number),
            Way::Memory => self.memory(event, number),
            Way::Pipe => self.pair(event, number),
            Way::Sockets if is_stream_pair(event) => self.pair(event, number),
            Way::Socket if is_stream_pair(event) => self.ordinary(event, number),
            Way::Connect => self.connect(event, number),
            Way::Accept => self.accept(event),
            Way::Asynchronous(role) => self.asynchronous(event, role),
            Way::Order => {
                let now = now_ns();
                Made::Done { result: event.result, begun: now, ended: now, same: true }
            }
            Way::Control if matches!(event.arguments[1], 0 | 1030) => self.copy(event, number),
            Way::Lock => self.lock(event, number),
            Way::Control if locks::is_of_range(event) => self.lock(event, number),
            Way::Control if is_harmless(event) => self.ordinary(event, number),
            Way::Create if self.wishes.direct => self.create(event),
            Way::Create => self.ordinary(event, number),
            Way::Node(mode) if is_no_device(event.arguments[mode]) => self.ordinary(event, number),
            Way::Attribute if self.is_users(event) => self.ordinary(event, number),
            Way::Control | Way::Node(_) | Way::Sockets | Way::Socket | Way::Attribute | Way::Never => {
                Made::Skipped
            }
        }
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
        if self.wishes.fsync
            && let Some(index) = written(event.call)
        {
            self.process.table.wrote(event.arguments[index] as i64);
        }
        let made = timed(number, arguments, |result| same(event, result));
        self.without_direct(event, number, arguments, made)
    }

    /// None where it is made as it was: no pipe, or too much of one.
    fn through_pipe(&mut self, event: &Event, waits: Waits) -> Option<Made> {
        let (reads, by) = match waits {
            Waits::Reads(by) => (true, by),
            Waits::Writes(by) => (false, by),
            _ => return None,
        };
        let made = self.streamed(event, reads, by);
        // Of a socket that is not connected in the replay.
        made.or_else(|| (by != By::File).then_some(Made::Skipped))
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
                    made => made,
                }
            }
            made => made,
        }
    }

    /// The present value of a recorded argument.
    fn argument(&mut self, event: &Event, index: usize) -> Option<u64> {
        let (call, value) = (event.call, event.arguments[index]);
        let pointer = |pages: &Pages| pages.at as u64;
        Some(match call.kind(&event.arguments, index) {
            Kind::Fd => self.process.table.get(value as i64)? as u64,
            Kind::DirFd => self.directory(event, index)?,
            Kind::Path | Kind::Name => match value {
                // Before Linux 6.11 no path is not the same.
                0 if is_about_its_descriptor(event) => c"".as_ptr() as u64,
                0 => 0,
                name => fetched(self.names.get(name as usize - 1)?.as_ptr()),
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
            Kind::Range => self.range(value)?,
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

    /// It does not matter for a path that begins at the root.
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
}

/// The argument that says where a call writes.
fn written(call: Call) -> Option<usize> {
    match (call.row().moves, call.row().arguments) {
        (Moves::Writes, _) | (Moves::Both, [Kind::Fd, Kind::Fd, ..]) => Some(0),
        (Moves::Both, _) => Some(2),
        _ => None,
    }
}

fn timed(number: u16, arguments: [u64; 6], same: impl Fn(i64) -> bool) -> Made {
    let [a, b, c, d, e, f] = arguments;
    let begun = now_ns();
    // SAFETY: descriptors are this replay's, and memory that is written to is that of `Pages` of enough length, or of
    // mappings that the replay itself has made for this.
    let result = unsafe { libc::syscall(number.into(), a, b, c, d, e, f) };
    let ended = now_ns();
    // The clock leaves errno as it is.
    let result = answer(result);
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
    is_same(event.call, event.result, result)
}

pub fn is_same(call: Call, expected: i64, result: i64) -> bool {
    if expected == UNKNOWN {
        return true;
    }
    if expected < 0 || result < 0 {
        return expected == result;
    }
    let exact = match call.row().outcome {
        Outcome::Bytes => call.row().moves != Moves::Nothing,
        Outcome::Status | Outcome::Offset => true,
        _ => false,
    };
    !exact || expected == result
}

/// True if an empty path is the descriptor before it (AT_EMPTY_PATH).
fn is_about_its_descriptor(event: &Event) -> bool {
    const EMPTY_PATH: u64 = 0x1000;
    let mut kinds = event.call.row().arguments.iter().zip(event.arguments);
    kinds.any(|(kind, value)| matches!(kind, Kind::Flags(Set::At | Set::Eaccess)) && value & EMPTY_PATH != 0)
}

const DIRECTORY: u64 = 0o200000;
/// O_ASYNC: signals at I/O.
const SIGNALS: u64 = 0o20000;

/// Where a name stands. It is looked at, so that the kernel does not wait for memory as it would not for a program that
/// has just made it.
fn fetched(name: *const libc::c_char) -> u64 {
    // SAFETY: a name has a last byte at least.
    unsafe { name.read_volatile() };
    name as u64
}
