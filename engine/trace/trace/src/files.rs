//! The file of each event for the columns: descriptors and directories are followed by the rules of `fsmodel`, in order
//! of time. A descriptor is free from the beginning of its close on; any other change counts from its call's end on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use etude_fsmodel::flags::{AT_FDCWD, O_APPEND, O_CLOEXEC};
use etude_fsmodel::{
    DescriptorChange, Done, Opens, Reuse, Subject, Table, descriptor_change, ends, subject, written,
};

use crate::event::Event;
use crate::meta::Meta;

const STANDARD: [&str; 3] = ["(standard input)", "(standard output)", "(standard error)"];
const PIPE: &str = "(pipe)";
const SOCKET: &str = "(socket)";
const EVENTS: &str = "(event)";

/// Values by row, as many as there are rows.
#[derive(Default)]
pub struct FileColumns {
    /// Number of the file's name; 0 for none.
    pub file: Vec<u32>,
    /// The file that is read, where that is another one; else `file`.
    pub source: Vec<u32>,
    /// Number of the open file description, from 1; 0 where it is not known.
    pub opening: Vec<u32>,
    /// 1 + the byte of the file at which a transfer begins; 0 for all that is none, or has no place.
    pub place: Vec<u64>,
    /// 1 for a write to the end of its file.
    pub appends: Vec<u8>,
    /// Names by number; that of 0 is empty.
    pub names: Vec<Vec<u8>>,
}

/// Takes events by chunks, and follows them in order of their beginnings.
pub struct Files {
    model: Model,
    lives: VecDeque<(u64, Life)>,
    /// Events that may begin after one that has not come yet.
    held: BinaryHeap<Reverse<Held>>,
    /// Calls under way that change descriptors when they end.
    changes: BinaryHeap<Reverse<Held>>,
    columns: FileColumns,
}

/// An event in order of a time, then of its beginning and row.
struct Held {
    key: (u64, u64, usize),
    process: u32,
    event: Event,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key == other.key
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A note on the descriptors of a process.
enum Life {
    Begins { process: u32, parent: Option<u32>, cwd: String },
    Executes { process: u32 },
    Had { process: u32, open: Vec<crate::meta::Open> },
}

impl Files {
    /// `earliest`: when the first call of each process begins. A process begins before that, though its parent may be
    /// told of it later.
    pub fn new(meta: &[Meta], earliest: &HashMap<u32, u64>) -> Files {
        let lives = meta.iter().filter_map(|meta| match meta {
            Meta::Process { process, parent, cwd, at_ns, .. } => {
                let begins = earliest.get(process).map_or(*at_ns, |earliest| *at_ns.min(earliest));
                Some((begins, Life::Begins { process: *process, parent: *parent, cwd: cwd.clone() }))
            }
            Meta::Exec { process, at_ns, .. } => Some((*at_ns, Life::Executes { process: *process })),
            Meta::Descriptors { process, open, at_ns } => {
                Some((*at_ns, Life::Had { process: *process, open: open.clone() }))
            }
            _ => None,
        });
        let mut lives: Vec<_> = lives.collect();
        lives.sort_by_key(|(at_ns, _)| *at_ns);
        let (held, changes) = (BinaryHeap::new(), BinaryHeap::new());
        Files { model: Model::new(), lives: lives.into(), held, changes, columns: FileColumns::default() }
    }

    /// Takes a chunk of a process, whose first row this is.
    pub fn add(&mut self, row: usize, process: u32, events: &[Event]) {
        for (row, event) in (row..).zip(events) {
            let done = done(event);
            if subject(&done) != Subject::Nothing || descriptor_change(&done) != DescriptorChange::Nothing {
                let key = (event.start_ns, event.start_ns, row);
                self.held.push(Reverse(Held { key, process, event: event.clone() }));
            }
        }
    }

    /// Follows what begins before a time: nothing earlier comes any more.
    pub fn follow(&mut self, before_ns: u64) {
        while self.held.peek().is_some_and(|Reverse(held)| held.key.0 < before_ns) {
            let Some(Reverse(held)) = self.held.pop() else { return };
            self.call(held);
        }
    }

    /// The columns of so many rows.
    pub fn finish(mut self, rows: usize) -> FileColumns {
        while let Some(Reverse(held)) = self.held.pop() {
            self.call(held);
        }
        let mut columns = self.columns;
        columns.resize(rows);
        columns.names = self.model.names.all.iter().map(|name| name.to_vec()).collect();
        columns
    }

    fn call(&mut self, held: Held) {
        let (start_ns, _, row) = held.key;
        self.until(start_ns);
        let change = self.look(held.process, row, &held.event);
        match change {
            DescriptorChange::Nothing => {}
            DescriptorChange::Closes(_) | DescriptorChange::ClosesRange { .. } => {
                drop(self.model.process(held.process).table.apply(&change));
            }
            _ => {
                let key = (held.event.end_ns(), start_ns, row);
                self.changes.push(Reverse(Held { key, ..held }));
            }
        }
    }

    /// Fills the row of an event; what it changes.
    fn look(&mut self, process: u32, row: usize, event: &Event) -> DescriptorChange {
        let (columns, model, done) = (&mut self.columns, &mut self.model, done(event));
        columns.resize(columns.file.len().max(row + 1));
        match subject(&done) {
            Subject::Nothing => {}
            Subject::Descriptor { descriptor, source } => {
                let (opening, file) = model.behind(process, descriptor);
                (columns.opening[row], columns.file[row]) = (opening, file);
                columns.source[row] = source.map_or(file, |source| model.behind(process, source).1);
                (columns.place[row], columns.appends[row]) = model.moves(process, &done);
            }
            Subject::Path { directory, .. } => {
                let file = model.path(process, directory, path_of(event));
                (columns.file[row], columns.source[row]) = (file, file);
            }
        }
        descriptor_change(&done)
    }

    /// Makes the changes up to a time.
    fn until(&mut self, at_ns: u64) {
        loop {
            let change = self.changes.peek().map(|Reverse(held)| held.key.0).filter(|end| *end <= at_ns);
            if let Some((time, _)) = self.lives.front()
                && *time <= change.unwrap_or(at_ns)
                && let Some((_, life)) = self.lives.pop_front()
            {
                self.model.life(life);
            } else if change.is_some()
                && let Some(Reverse(held)) = self.changes.pop()
            {
                self.model.change(held.process, &held.event);
            } else {
                return;
            }
        }
    }
}

impl FileColumns {
    fn resize(&mut self, rows: usize) {
        self.file.resize(rows, 0);
        self.source.resize(rows, 0);
        self.opening.resize(rows, 0);
        self.place.resize(rows, 0);
        self.appends.resize(rows, 0);
    }
}

fn done(event: &Event) -> Done<'_> {
    let texts = event.texts.iter().map(|text| (text.argument, &text.bytes[..]));
    Done::new(event.call, &event.arguments, event.result, texts)
}

/// The path that a call is about.
fn path_of(event: &Event) -> Option<&Arc<[u8]>> {
    match subject(&done(event)) {
        Subject::Path { text: Some(text), .. } => {
            event.texts.iter().map(|each| &each.bytes).find(|bytes| bytes.as_ptr() == text.as_ptr())
        }
        _ => None,
    }
}

struct Process {
    /// Numbers of openings.
    table: Table<u32>,
    /// Name of the working directory.
    cwd: u32,
}

/// An open file description.
struct Opening {
    name: u32,
    /// None for what has no place: a pipe, a socket.
    position: Option<u64>,
    appends: bool,
}

struct Model {
    names: Names,
    /// That of 0 is not known.
    openings: Vec<Opening>,
    processes: HashMap<u32, Process>,
}

impl Model {
    fn new() -> Model {
        let openings = vec![Opening { name: 0, position: None, appends: false }];
        Model { names: Names::new(), openings, processes: HashMap::new() }
    }

    fn process(&mut self, process: u32) -> &mut Process {
        let unknown = || Process { table: Table::new(Reuse::Replaces), cwd: 0 };
        self.processes.entry(process).or_insert_with(unknown)
    }

    /// Opening and name behind a descriptor.
    fn behind(&mut self, process: u32, descriptor: i32) -> (u32, u32) {
        let slot = self.process(process).table.get(descriptor).copied();
        match slot.map(|slot| slot.behind) {
            Some(opening) => (opening, self.openings[opening as usize].name),
            None if descriptor < 0 => (0, 0),
            None => (0, self.names.number(format!("(descriptor {descriptor})").as_bytes())),
        }
    }

    /// The opening behind a descriptor; the unknown one has no position.
    fn opening_behind(&mut self, process: u32, descriptor: i32) -> &mut Opening {
        let slot = self.process(process).table.get(descriptor).copied();
        &mut self.openings[slot.map_or(0, |slot| slot.behind as usize)]
    }

    /// Name of a path from a directory.
    fn path(&mut self, process: u32, directory: i32, text: Option<&Arc<[u8]>>) -> u32 {
        let base = match directory {
            AT_FDCWD => self.process(process).cwd,
            _ => self.behind(process, directory).1,
        };
        match text {
            Some(text) if !text.is_empty() => self.names.below(base, text),
            _ => base,
        }
    }

    /// Moves the positions of the descriptors of a call: at which place it begins, and whether it goes to the end.
    fn moves(&mut self, process: u32, done: &Done) -> (u64, u8) {
        const OF_SOCKETS: [&str; 6] = ["recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg"];
        let Ok(result) = u64::try_from(done.result) else { return (0, 0) };
        // What is behind a standard descriptor is not known.
        if OF_SOCKETS.contains(&done.call.name()) {
            return (0, 0);
        }
        if done.call.name() == "lseek" {
            let opening = self.opening_behind(process, done.descriptor(0));
            if let Some(position) = &mut opening.position {
                *position = result;
            }
            return (0, 0);
        }
        let ends = ends(done);
        // Both ends may have one position, which moves once.
        let before = ends.map(|end| self.opening_behind(process, done.descriptor(end?.argument)).position);
        let mut found = (0, 0);
        for (end, before) in ends.into_iter().zip(before) {
            let (Some(end), Some(before)) = (end, before) else { continue };
            let opening = self.opening_behind(process, done.descriptor(end.argument));
            if end.at.is_none() {
                opening.position = Some(before.saturating_add(result));
            }
            if result > 0 && ends[1].is_none() {
                let to_end = end.writes && (end.appends || opening.appends);
                found = (end.at.unwrap_or(before).saturating_add(1), u8::from(to_end));
            }
        }
        found
    }

    fn life(&mut self, life: Life) {
        match life {
            Life::Begins { process, parent, cwd } => {
                let parent = parent.and_then(|parent| self.processes.get(&parent));
                let begun = match parent {
                    Some(parent) => Process { table: parent.table.clone(), cwd: parent.cwd },
                    None => self.first(&cwd),
                };
                self.processes.insert(process, begun);
            }
            Life::Executes { process } => drop(self.process(process).table.exec()),
            Life::Had { process, open } => {
                for each in open {
                    let stream = match each.path.split(':').next() {
                        Some("pipe") => Some(PIPE),
                        Some("socket") => Some(SOCKET),
                        Some("anon_inode") => Some(EVENTS),
                        _ => None,
                    };
                    let position = if stream.is_none() { Some(each.offset) } else { None };
                    let name = stream.unwrap_or(&each.path).as_bytes();
                    self.open(process, each.descriptor as i32, name, position, each.flags);
                }
            }
        }
    }

    /// A process of which no parent is known.
    fn first(&mut self, cwd: &str) -> Process {
        let mut table = Table::new(Reuse::Replaces);
        for (descriptor, name) in (0..).zip(STANDARD) {
            table.open(descriptor, self.opening(name.as_bytes(), Some(0), 0), false);
        }
        Process { table, cwd: self.names.number(if cwd.is_empty() { b"." } else { cwd.as_bytes() }) }
    }

    fn opening(&mut self, name: &[u8], position: Option<u64>, flags: u64) -> u32 {
        let name = self.names.number(name);
        self.openings.push(Opening { name, position, appends: flags & O_APPEND != 0 });
        self.openings.len() as u32 - 1
    }

    fn open(&mut self, process: u32, descriptor: i32, name: &[u8], position: Option<u64>, flags: u64) {
        let opening = self.opening(name, position, flags);
        self.process(process).table.open(descriptor, opening, flags & O_CLOEXEC != 0);
    }

    fn change(&mut self, process: u32, event: &Event) {
        let done = done(event);
        match descriptor_change(&done) {
            DescriptorChange::Opens { descriptor, what, flags } => {
                let unnamed = || format!("(descriptor {descriptor})").into_bytes();
                let (name, position) = match what {
                    Opens::Path => (self.opened_path(process, event).unwrap_or_else(unnamed), Some(0)),
                    Opens::Handle => (unnamed(), Some(0)),
                    Opens::Memory => {
                        let name = done.text(0).unwrap_or_default();
                        ([b"(memory ", name, b")"].concat(), Some(0))
                    }
                    Opens::Socket | Opens::Accepted => (SOCKET.into(), None),
                    Opens::Events => (EVENTS.into(), None),
                    Opens::Ring => ("(io_uring)".into(), None),
                };
                self.open(process, descriptor, &name, position, flags);
            }
            DescriptorChange::OpensPair { descriptors, sockets, flags } => {
                let name = if sockets { SOCKET } else { PIPE }.as_bytes();
                for descriptor in descriptors.into_iter().flatten() {
                    self.open(process, descriptor, name, None, flags);
                }
            }
            DescriptorChange::SetsFlags { descriptor, flags } => {
                self.opening_behind(process, descriptor).appends = flags & O_APPEND != 0;
            }
            DescriptorChange::EntersPath => {
                self.process(process).cwd = self.path(process, AT_FDCWD, path_of(event));
            }
            DescriptorChange::EntersDescriptor(descriptor) => {
                self.process(process).cwd = self.behind(process, descriptor).1;
            }
            change => drop(self.process(process).table.apply(&change)),
        }
    }

    /// Name of what an open opened; None where no path is recorded.
    fn opened_path(&mut self, process: u32, event: &Event) -> Option<Vec<u8>> {
        let Subject::Path { directory, .. } = subject(&done(event)) else { return None };
        let name = self.path(process, directory, Some(path_of(event)?));
        Some(self.names.all[name as usize].to_vec())
    }
}

/// Names of files by number; that of 0 is empty.
struct Names {
    all: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, u32>,
    /// Paths that were met, by the name of their directory.
    paths: HashMap<u32, HashMap<Arc<[u8]>, u32>>,
}

impl Names {
    fn new() -> Names {
        let none: Arc<[u8]> = Arc::default();
        Names { all: vec![none.clone()], numbers: HashMap::from([(none, 0)]), paths: HashMap::new() }
    }

    fn number(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let (name, number): (Arc<[u8]>, _) = (name.into(), self.all.len() as u32);
        self.all.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// Number of a path that begins at a directory; the directory may be no file, and in brackets.
    fn below(&mut self, base: u32, text: &Arc<[u8]>) -> u32 {
        if let Some(number) = self.paths.get(&base).and_then(|paths| paths.get(text)) {
            return *number;
        }
        let directory = &self.all[base as usize];
        let name = if directory.starts_with(b"(") && !text.starts_with(b"/") {
            [directory, &b"/"[..], text].concat()
        } else {
            written(directory, text)
        };
        let number = self.number(&name);
        self.paths.entry(base).or_default().insert(text.clone(), number);
        number
    }
}
