//! What stands behind the descriptors of each process, and where its relative paths begin.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use etude_calls::Kind;
use etude_trace::Event;

use crate::from_trace::tree::{Node, Path};
use crate::world::End;

pub(crate) const AT_FDCWD: i32 = -100;
pub(crate) const O_CREAT: u64 = 0o100;
pub(crate) const O_EXCL: u64 = 0o200;
pub(crate) const O_TRUNC: u64 = 0o1000;
pub(crate) const O_APPEND: u64 = 0o2000;
pub(crate) const O_DIRECTORY: u64 = 0o200000;
pub(crate) const O_NOFOLLOW: u64 = 0o400000;
pub(crate) const O_TMPFILE: u64 = 0o20000000;
const O_CLOEXEC: u64 = 0o2000000;
/// Where relative paths begin if nobody knows: no path that is resolved has such a component.
const UNKNOWN: &[u8] = b"/./cwd";

/// What a descriptor stands for; copies of it share it.
pub(crate) struct Opening {
    pub behind: Behind,
    /// Its name now.
    pub path: RefCell<Option<Path>>,
    pub node: Option<Node>,
    pub position: Cell<u64>,
    /// Where the next transfer at an offset in memory begins, if each goes on where the last one ended.
    pub spot: Cell<u64>,
    pub appends: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    File,
    /// An end of a pipe, or of a pair of sockets; with its streams, where it is counted what goes through.
    Pipe(Option<End>),
    /// A counter of events, with its number: its reads and writes are steps as those of futexes are.
    Events(u32),
    /// Its calls are not replayed, and why.
    Dropped(&'static str),
}

impl Behind {
    /// Why its calls are not replayed as they are.
    pub fn dropped(self) -> Option<&'static str> {
        match self {
            Behind::File | Behind::Pipe(_) => None,
            Behind::Events(_) => Some("events"),
            Behind::Dropped(why) => Some(why),
        }
    }
}

impl Opening {
    pub fn new(behind: Behind, path: Option<Path>, node: Option<Node>) -> Opening {
        let (path, position, spot) = (RefCell::new(path), Cell::new(0), Cell::new(0));
        let appends = Cell::new(false);
        Opening { behind, path, node, position, spot, appends }
    }
}

#[derive(Clone)]
struct Slot {
    opening: Rc<Opening>,
    closed_at_exec: bool,
}

#[derive(Clone)]
struct Process {
    table: BTreeMap<i32, Slot>,
    cwd: Path,
}

/// The tables of all processes; threads of one share its.
#[derive(Default)]
pub(crate) struct Tables {
    processes: HashMap<u32, Process>,
    /// The process of each thread of the trace.
    pub threads: HashMap<u32, u32>,
}

impl Tables {
    pub fn begin(&mut self, process: u32, parent: Option<u32>, cwd: &str) {
        let begun = match parent.and_then(|parent| self.processes.get(&parent)) {
            Some(parent) => parent.clone(),
            None => Process { table: BTreeMap::new(), cwd: start(cwd) },
        };
        self.processes.insert(process, begun);
    }

    pub fn exec(&mut self, process: u32) {
        self.of(process).table.retain(|_, slot| !slot.closed_at_exec);
    }

    pub fn end(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    pub fn get(&self, process: u32, descriptor: i32) -> Option<&Rc<Opening>> {
        self.processes.get(&process)?.table.get(&descriptor).map(|slot| &slot.opening)
    }

    pub fn cwd(&mut self, process: u32) -> Path {
        self.of(process).cwd.clone()
    }

    /// Where a path begins that is relative to a directory's descriptor.
    pub fn base(&mut self, process: u32, directory: i32) -> Option<Path> {
        if directory == AT_FDCWD {
            Some(self.cwd(process))
        } else {
            self.get(process, directory)?.path.borrow().clone()
        }
    }

    /// Whether any descriptor in a range stands for what is replayed.
    pub fn any_kept(&mut self, process: u32, first: u32, last: u32) -> bool {
        let slots = self.of(process).table.range(clamp(first)..=clamp(last).max(clamp(first)));
        slots.into_iter().any(|(_, slot)| slot.opening.behind.dropped().is_none())
    }

    /// What a call does to descriptors and the directory. `opened`: what stands behind new descriptors.
    pub fn apply(&mut self, process: u32, event: &Event, opened: &[Rc<Opening>]) {
        let (name, words) = (event.call.name(), &event.arguments);
        let descriptor = words[0] as i32;
        // A close that fails has closed, unless there was nothing to close.
        if name == "close" && event.result != -9 {
            self.of(process).table.remove(&descriptor);
        }
        if event.result < 0 {
            return;
        }
        let result = event.result as i32;
        let at_exec = closed_at_exec(event);
        match name {
            "dup" => self.copy(process, descriptor, result, false),
            "dup2" | "dup3" if descriptor != result => self.copy(process, descriptor, result, at_exec),
            "fcntl" => match words[1] {
                0 | 1030 => self.copy(process, descriptor, result, words[1] == 1030),
                2 => {
                    if let Some(slot) = self.of(process).table.get_mut(&descriptor) {
                        slot.closed_at_exec = words[2] & 1 != 0;
                    }
                }
                4 => {
                    if let Some(opening) = self.get(process, descriptor) {
                        opening.appends.set(words[2] & O_APPEND != 0);
                    }
                }
                _ => {}
            },
            "close_range" => self.close_range(process, words),
            "fchdir" => {
                let path = self.get(process, descriptor).and_then(|opening| opening.path.borrow().clone());
                self.of(process).cwd = path.unwrap_or_else(|| UNKNOWN.into());
            }
            _ => {
                for (descriptor, opening) in new_descriptors(event).into_iter().zip(opened) {
                    let slot = Slot { opening: opening.clone(), closed_at_exec: at_exec };
                    self.of(process).table.insert(descriptor, slot);
                }
            }
        }
    }

    pub fn change_directory(&mut self, process: u32, path: Path) {
        self.of(process).cwd = path;
    }

    /// A file, or a directory with all that is in it, is called otherwise: so are what descriptors stand for, and the
    /// directories in which processes are.
    pub fn renames(&mut self, from: &Path, to: &Path, swaps: bool) {
        let both = [(from, to), (to, from)];
        let moved = |path: &Path| {
            both[..1 + usize::from(swaps)].iter().find_map(|(from, to)| {
                let rest = path.strip_prefix(&from[..])?;
                (rest.is_empty() || rest[0] == b'/').then(|| Path::from([&to[..], rest].concat()))
            })
        };
        let mut met = HashSet::new();
        for process in self.processes.values_mut() {
            if let Some(path) = moved(&process.cwd) {
                process.cwd = path;
            }
            let openings = process.table.values().map(|slot| &slot.opening);
            for opening in openings.filter(|opening| met.insert(Rc::as_ptr(opening))) {
                let path = opening.path.borrow().as_ref().and_then(moved);
                if path.is_some() {
                    *opening.path.borrow_mut() = path;
                }
            }
        }
    }

    fn close_range(&mut self, process: u32, words: &[u64; 6]) {
        let (first, last) = (clamp(words[0] as u32), clamp(words[1] as u32));
        let table = &mut self.of(process).table;
        if words[2] & 4 == 0 {
            table.retain(|descriptor, _| !(first..=last).contains(descriptor));
        } else {
            table
                .iter_mut()
                .filter(|(d, _)| (first..=last).contains(*d))
                .for_each(|(_, s)| s.closed_at_exec = true);
        }
    }

    fn copy(&mut self, process: u32, old: i32, new: i32, closed_at_exec: bool) {
        let table = &mut self.of(process).table;
        match table.get(&old).map(|slot| slot.opening.clone()) {
            Some(opening) => table.insert(new, Slot { opening, closed_at_exec }),
            None => table.remove(&new),
        };
    }

    fn of(&mut self, process: u32) -> &mut Process {
        let unknown = || Process { table: BTreeMap::new(), cwd: UNKNOWN.into() };
        self.processes.entry(process).or_insert_with(unknown)
    }
}

/// The directory in which a program starts.
pub(crate) fn start(cwd: &str) -> Path {
    if cwd.starts_with('/') { cwd.as_bytes().into() } else { UNKNOWN.into() }
}

/// Descriptors that a call has made.
pub(crate) fn new_descriptors(event: &Event) -> Vec<i32> {
    let pair = event.call.row().arguments.iter().position(|kind| *kind == Kind::Pair);
    match pair.and_then(|at| event.text(at)) {
        Some(text) if text.len() == 8 => {
            let at = |at: usize| i32::from_le_bytes(text[at..at + 4].try_into().expect("four bytes"));
            vec![at(0), at(4)]
        }
        _ if pair.is_some() => Vec::new(),
        _ => vec![event.result as i32],
    }
}

/// The flags with which a call opens; None if it does not.
pub(crate) fn open_flags(event: &Event) -> Option<u64> {
    match event.call.name() {
        "open" => Some(event.arguments[1]),
        "openat" => Some(event.arguments[2]),
        "creat" => Some(O_CREAT | O_TRUNC | 1),
        _ => None,
    }
}

fn closed_at_exec(event: &Event) -> bool {
    let words = &event.arguments;
    let flags = match event.call.name() {
        "open" | "socket" | "eventfd2" | "pipe2" | "socketpair" => words[1],
        "openat" | "dup3" | "open_by_handle_at" => words[2],
        "accept4" => words[3],
        "memfd_create" => (words[1] & 1) * O_CLOEXEC,
        _ => 0,
    };
    flags & O_CLOEXEC != 0
}

fn clamp(descriptor: u32) -> i32 {
    descriptor.min(i32::MAX as u32) as i32
}
