//! What stands behind the descriptors of each process, and where its relative paths begin.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use etude_fsmodel::flags::{AT_FDCWD, O_CLOEXEC};
use etude_fsmodel::{DescriptorChange, Done, End, Reuse, Table, appends, descriptor_change, moved};
use etude_trace::Event;

use crate::from_trace::tree::{Node, Path};

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
struct Process {
    table: Table<Rc<Opening>>,
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
            None => Process { table: Table::new(Reuse::Replaces), cwd: start(cwd) },
        };
        self.processes.insert(process, begun);
    }

    pub fn exec(&mut self, process: u32) {
        self.of(process).table.exec();
    }

    pub fn end(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    pub fn get(&self, process: u32, descriptor: i32) -> Option<&Rc<Opening>> {
        self.processes.get(&process)?.table.get(descriptor).map(|slot| &slot.behind)
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
        let [first, last] = [first, last].map(|bound| i32::try_from(bound).unwrap_or(i32::MAX));
        let mut slots = self.of(process).table.range(first, last.max(first));
        slots.any(|(_, slot)| slot.behind.behind.dropped().is_none())
    }

    /// What a call does to descriptors and the directory. `opened`: what stands behind new descriptors.
    pub fn apply(&mut self, process: u32, event: &Event, opened: &[Rc<Opening>]) {
        let change = descriptor_change(&done(event));
        let table = &mut self.of(process).table;
        match change {
            DescriptorChange::Opens { descriptor, flags, .. } => {
                if let Some(opening) = opened.first() {
                    table.open(descriptor, opening.clone(), flags & O_CLOEXEC != 0);
                }
            }
            DescriptorChange::OpensPair { descriptors: Some(pair), flags, .. } => {
                for (descriptor, opening) in pair.into_iter().zip(opened) {
                    table.open(descriptor, opening.clone(), flags & O_CLOEXEC != 0);
                }
            }
            DescriptorChange::SetsFlags { descriptor, flags } => {
                if let Some(slot) = table.get(descriptor) {
                    slot.behind.appends.set(appends(flags));
                }
            }
            DescriptorChange::EntersDescriptor(descriptor) => {
                let path = table.get(descriptor).and_then(|slot| slot.behind.path.borrow().clone());
                self.of(process).cwd = path.unwrap_or_else(|| UNKNOWN.into());
            }
            _ => drop(table.apply(&change)),
        }
    }

    pub fn change_directory(&mut self, process: u32, path: Path) {
        self.of(process).cwd = path;
    }

    /// A file, or a directory with all that is in it, is called otherwise: so are what descriptors stand for, and the
    /// directories in which processes are.
    pub fn renames(&mut self, from: &Path, to: &Path, swaps: bool) {
        let both = [(from, to), (to, from)];
        let renamed = |path: &Path| {
            both[..1 + usize::from(swaps)].iter().find_map(|(from, to)| moved(path, from, to).map(Path::from))
        };
        let mut met = HashSet::new();
        for process in self.processes.values_mut() {
            if let Some(path) = renamed(&process.cwd) {
                process.cwd = path;
            }
            let openings = process.table.iter().map(|(_, slot)| &slot.behind);
            for opening in openings.filter(|opening| met.insert(Rc::as_ptr(opening))) {
                let path = opening.path.borrow().as_ref().and_then(renamed);
                if path.is_some() {
                    *opening.path.borrow_mut() = path;
                }
            }
        }
    }

    fn of(&mut self, process: u32) -> &mut Process {
        let unknown = || Process { table: Table::new(Reuse::Replaces), cwd: UNKNOWN.into() };
        self.processes.entry(process).or_insert_with(unknown)
    }
}

/// The directory in which a program starts.
pub(crate) fn start(cwd: &str) -> Path {
    if cwd.starts_with('/') { cwd.as_bytes().into() } else { UNKNOWN.into() }
}

/// A call of a trace as the model reads it.
pub(crate) fn done(event: &Event) -> Done<'_> {
    let texts = event.texts.iter().map(|text| (text.argument, &text.bytes[..]));
    Done::new(event.call, &event.arguments, event.result, texts)
}
