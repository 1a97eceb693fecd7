//! Which thread has to wait for which: the order of calls that use the same thing is that of the original (ARTC's rules:
//! Weiss and others, FAST 2013), all others may overlap as they like.
//!
//! - A name (a path) is created before it is used, and not removed or renamed before its last use.
//! - A descriptor is opened before it is used, and closed after its last use; a number that is used anew is closed before.
//! - Calls that use and move the position of one open file come one after the other.
//! - Data: what overlaps in a file, and is written by one of both, comes in the original's order.

use std::collections::HashMap;

use etude_calls::{Call, Kind, Moves, Outcome};
use etude_script::{Action, Called, Script};

use crate::extents::Extents;

/// What a step waits for: a step of another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub thread: u32,
    /// Its place in the script.
    pub step: usize,
}

type Point = Wait;
pub type Waits = HashMap<usize, Vec<Wait>>;

/// Something that is made, used and ended: its users wait for its maker, and whoever makes it anew waits for all.
#[derive(Debug, Default, Clone)]
struct Thing {
    maker: Option<Point>,
    /// The last use by each thread since.
    users: Vec<Point>,
}

/// An open file.
#[derive(Debug, Clone)]
struct Opened {
    /// What it is, as far as it is known: data are the same where this is.
    file: usize,
    /// Whose position is moved in order.
    position: usize,
    append: bool,
}

#[derive(Debug, Clone)]
struct Slot {
    description: usize,
    thing: usize,
}

/// Finds all waits of a script.
pub struct Order {
    waits: Waits,
    /// By pairs of threads, up to which step the first knows the second.
    known: HashMap<(u32, u32), usize>,
    things: Vec<Thing>,
    opened: Vec<Opened>,
    places: Vec<u64>,
    names: HashMap<Vec<u8>, usize>,
    /// By name: the file that stands there.
    files: HashMap<Vec<u8>, usize>,
    data: Vec<Extents>,
    /// By process and number.
    slots: HashMap<(u32, i64), Slot>,
    directories: HashMap<usize, Vec<u8>>,
    process: HashMap<u32, u32>,
    cwd: HashMap<u32, Vec<u8>>,
}

impl Order {
    /// By the place of a step, what it waits for; of a script of one thread nothing.
    pub fn of(script: &Script) -> Waits {
        if script.steps.iter().all(|step| step.thread == 0) {
            return Waits::new();
        }
        let mut order = Order {
            waits: Waits::new(),
            known: HashMap::new(),
            things: Vec::new(),
            opened: Vec::new(),
            places: Vec::new(),
            names: HashMap::new(),
            files: HashMap::new(),
            data: Vec::new(),
            slots: HashMap::new(),
            directories: HashMap::new(),
            process: HashMap::from([(0, 0)]),
            cwd: HashMap::new(),
        };
        for (at, step) in script.steps.iter().enumerate() {
            let here = Point { thread: step.thread, step: at };
            match &step.action {
                Action::Start(other) => {
                    let process = order.process_of(step.thread);
                    order.process.insert(*other, process);
                    order.known.insert((*other, step.thread), at);
                }
                Action::Fork(other) => order.fork(here, *other),
                Action::Call(called) => order.call(here, called),
                Action::Compute(_) | Action::Wait(_) | Action::Exec => {}
            }
        }
        order.waits
    }

    fn process_of(&self, thread: u32) -> u32 {
        self.process.get(&thread).copied().unwrap_or(thread)
    }

    /// The new process has what its parent has: descriptors with positions in common, and a directory of its own.
    fn fork(&mut self, here: Point, other: u32) {
        let parent = self.process_of(here.thread);
        self.process.insert(other, other);
        self.known.insert((other, here.thread), here.step);
        let copies: Vec<_> = self
            .slots
            .iter()
            .filter(|((of, _), _)| *of == parent)
            .map(|((_, fd), slot)| (*fd, slot.clone()))
            .collect();
        for (fd, slot) in copies {
            self.uses(here, slot.thing);
            let thing = self.thing(Some(here));
            self.slots.insert((other, fd), Slot { thing, ..slot });
        }
        if let Some(cwd) = self.cwd.get(&parent).cloned() {
            self.cwd.insert(other, cwd);
        }
    }

    fn thing(&mut self, maker: Option<Point>) -> usize {
        self.things.push(Thing { maker, users: Vec::new() });
        self.things.len() - 1
    }

    fn wait(&mut self, here: Point, other: Point) {
        if other.thread == here.thread {
            return;
        }
        let known = self.known.entry((here.thread, other.thread)).or_insert(0);
        if *known >= other.step && *known > 0 {
            return;
        }
        *known = other.step;
        self.waits.entry(here.step).or_default().push(other);
    }

    fn uses(&mut self, here: Point, thing: usize) {
        if let Some(maker) = self.things[thing].maker {
            self.wait(here, maker);
        }
        let users = &mut self.things[thing].users;
        match users.iter_mut().find(|user| user.thread == here.thread) {
            Some(user) => *user = here,
            None => users.push(here),
        }
    }

    fn makes(&mut self, here: Point, thing: usize) {
        let users = std::mem::take(&mut self.things[thing].users);
        users.into_iter().for_each(|user| self.wait(here, user));
        if let Some(maker) = self.things[thing].maker.replace(here) {
            self.wait(here, maker);
        }
    }

    fn call(&mut self, here: Point, called: &Called) {
        let process = self.process_of(here.thread);
        self.name_space(here, process, called);
        self.descriptors(here, process, called);
        if called.result >= 0 {
            self.data(here, process, called);
            self.results(here, process, called);
        }
    }

    /// Paths: whoever changes what stands at one waits for all that used it.
    fn name_space(&mut self, here: Point, process: u32, called: &Called) {
        let name = called.call.name();
        let changes = called.result >= 0 && changes_names(name);
        let creates = called.result >= 0 && creates(called);
        for path in self.paths(process, called) {
            let thing = self.name(&path);
            if changes || creates && !self.files.contains_key(&path) {
                self.makes(here, thing);
            } else {
                self.uses(here, thing);
            }
            let mut below = &path[..];
            while let Some(directory) = parent(below) {
                let thing = self.name(directory);
                self.uses(here, thing);
                below = directory;
            }
        }
    }

    fn name(&mut self, path: &[u8]) -> usize {
        if let Some(thing) = self.names.get(path) {
            return *thing;
        }
        let thing = self.thing(None);
        self.names.insert(path.to_vec(), thing);
        thing
    }

    /// All paths of a call, from the root on.
    fn paths(&self, process: u32, called: &Called) -> Vec<Vec<u8>> {
        let mut paths = Vec::new();
        for text in &called.texts {
            let index = usize::from(text.argument);
            if called.call.kind(&called.arguments, index) != Kind::Path || is_content(called.call, index) {
                continue;
            }
            let before = index.checked_sub(1).map(|before| called.call.kind(&called.arguments, before));
            let base = match before {
                Some(Kind::DirFd) => self.directory(process, called.arguments[index - 1] as i64),
                _ => self.cwd.get(&process).cloned(),
            };
            if !text.bytes.is_empty() {
                paths.push(joined(base.as_deref().unwrap_or(b""), &text.bytes));
            }
        }
        paths
    }

    fn directory(&self, process: u32, fd: i64) -> Option<Vec<u8>> {
        const AT_FDCWD: i64 = -100;
        if fd == AT_FDCWD {
            return self.cwd.get(&process).cloned();
        }
        let slot = self.slots.get(&(process, fd))?;
        self.directories.get(&slot.description).cloned()
    }

    /// Descriptors that a call uses, ends or moves.
    fn descriptors(&mut self, here: Point, process: u32, called: &Called) {
        for index in 0..called.call.used(&called.arguments) {
            let kind = called.call.kind(&called.arguments, index);
            if !matches!(kind, Kind::Fd | Kind::DirFd) {
                continue;
            }
            let fd = called.arguments[index] as i64;
            let Some(slot) = self.slots.get(&(process, fd)).cloned() else { continue };
            if called.call.name() == "close" && called.result >= 0 {
                self.makes(here, slot.thing);
                self.slots.remove(&(process, fd));
                // Whoever gets the number next waits for this.
                let thing = self.thing(Some(here));
                self.slots.insert((process, fd | CLOSED), Slot { thing, ..slot });
                continue;
            }
            self.uses(here, slot.thing);
            if moves_position(called.call) {
                let position = self.opened[slot.description].position;
                self.makes(here, position);
            }
        }
    }

    /// Data: what overlaps, and is written by one of both.
    fn data(&mut self, here: Point, process: u32, called: &Called) {
        let row = called.call.row();
        let fd = |index: usize| {
            (row.arguments.get(index) == Some(&Kind::Fd)).then(|| called.arguments[index] as i64)
        };
        let bytes = called.result as u64;
        match (called.call.name(), row.moves) {
            ("lseek", _) => self.position(process, fd(0), called.result as u64),
            ("ftruncate" | "fallocate", _) => self.touch(here, process, fd(0), 0, u64::MAX, true),
            ("copy_file_range" | "splice", _) => {
                self.transfer(here, process, fd(0), None, bytes, false);
                self.transfer(here, process, fd(2), None, bytes, true);
            }
            ("sendfile", _) => {
                self.transfer(here, process, fd(1), None, bytes, false);
                self.transfer(here, process, fd(0), None, bytes, true);
            }
            (_, Moves::Reads | Moves::Writes) => {
                let at = row.arguments.iter().position(|kind| *kind == Kind::Offset);
                let at = at.map(|index| called.arguments[index]).filter(|at| *at as i64 >= 0);
                self.transfer(here, process, fd(0), at, bytes, row.moves == Moves::Writes);
            }
            _ => {}
        }
    }

    /// Data of a descriptor, at a place or where its position is, which then moves.
    fn transfer(
        &mut self,
        here: Point,
        process: u32,
        fd: Option<i64>,
        at: Option<u64>,
        bytes: u64,
        writes: bool,
    ) {
        let Some(slot) = fd.and_then(|fd| self.slots.get(&(process, fd))).cloned() else { return };
        let append = writes && self.opened[slot.description].append;
        let from = at.unwrap_or(self.places[slot.description]);
        if at.is_none() {
            self.places[slot.description] = from.saturating_add(bytes);
        }
        let (from, bytes) = if append { (0, u64::MAX) } else { (from, bytes) };
        self.touch(here, process, fd, from, bytes, writes);
    }

    fn touch(&mut self, here: Point, process: u32, fd: Option<i64>, from: u64, bytes: u64, writes: bool) {
        let Some(slot) = fd.and_then(|fd| self.slots.get(&(process, fd))) else { return };
        let file = self.opened[slot.description].file;
        let mut others = Vec::new();
        self.data[file].touch(here, from, from.saturating_add(bytes), writes, &mut others);
        others.into_iter().for_each(|other| self.wait(here, other));
    }

    fn position(&mut self, process: u32, fd: Option<i64>, place: u64) {
        if let Some(slot) = fd.and_then(|fd| self.slots.get(&(process, fd))) {
            let description = slot.description;
            self.places[description] = place;
        }
    }

    /// What a call that went well leaves behind.
    fn results(&mut self, here: Point, process: u32, called: &Called) {
        let name = called.call.name();
        match name {
            "dup" | "dup2" | "dup3" => self.copy(here, process, called.arguments[0] as i64, called.result),
            "fcntl" if matches!(called.arguments[1], 0 | 1030) => {
                self.copy(here, process, called.arguments[0] as i64, called.result)
            }
            "pipe" | "pipe2" | "socketpair" => {}
            "chdir" => {
                if let Some(path) = self.paths(process, called).pop() {
                    self.cwd.insert(process, path);
                }
            }
            "fchdir" => {
                if let Some(path) = self.directory(process, called.arguments[0] as i64) {
                    self.cwd.insert(process, path);
                }
            }
            "rename" | "renameat" | "renameat2" => {
                if let [from, to] = &self.paths(process, called)[..]
                    && let Some(file) = self.files.remove(from)
                {
                    self.files.insert(to.clone(), file);
                }
            }
            "link" | "linkat" => {
                if let [from, to] = &self.paths(process, called)[..]
                    && let Some(file) = self.files.get(from).copied()
                {
                    self.files.insert(to.clone(), file);
                }
            }
            "unlink" | "unlinkat" | "rmdir" => {
                for path in self.paths(process, called) {
                    self.files.remove(&path);
                }
            }
            _ if called.call.row().outcome == Outcome::Descriptor => self.open(here, process, called),
            _ => {}
        }
    }

    fn open(&mut self, here: Point, process: u32, called: &Called) {
        const O_APPEND: u64 = 0o2000;
        let path = self.paths(process, called).pop();
        let file = path.as_ref().and_then(|path| self.files.get(path)).copied().unwrap_or_else(|| {
            self.data.push(Extents::default());
            self.data.len() - 1
        });
        if let Some(path) = &path {
            self.files.insert(path.clone(), file);
        }
        let append = open_flags(called) & O_APPEND != 0;
        let position = self.thing(Some(here));
        self.opened.push(Opened { file, position, append });
        self.places.push(0);
        let description = self.opened.len() - 1;
        if let Some(path) = path {
            self.directories.insert(description, path);
        }
        self.slot(here, process, called.result, description);
    }

    fn copy(&mut self, here: Point, process: u32, from: i64, to: i64) {
        if let Some(slot) = self.slots.get(&(process, from)).cloned() {
            self.slot(here, process, to, slot.description);
        }
    }

    fn slot(&mut self, here: Point, process: u32, fd: i64, description: usize) {
        for old in [fd, fd | CLOSED] {
            if let Some(slot) = self.slots.remove(&(process, old)) {
                self.makes(here, slot.thing);
            }
        }
        let thing = self.thing(Some(here));
        self.slots.insert((process, fd), Slot { description, thing });
    }
}

/// Marks a number whose descriptor was closed.
const CLOSED: i64 = 1 << 40;

/// A symbolic link's content is no path of the call.
fn is_content(call: Call, index: usize) -> bool {
    matches!((call.name(), index), ("symlink" | "symlinkat", 0))
}

fn changes_names(name: &str) -> bool {
    const CHANGING: [&str; 15] = [
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "unlink",
        "unlinkat",
        "symlink",
        "symlinkat",
        "mkdir",
        "mkdirat",
        "rmdir",
        "mknod",
        "mknodat",
        "truncate",
    ];
    CHANGING.contains(&name)
}

fn open_flags(called: &Called) -> u64 {
    match called.call.name() {
        "open" => called.arguments[1],
        "openat" => called.arguments[2],
        "creat" => 0o1101,
        _ => 0,
    }
}

fn creates(called: &Called) -> bool {
    open_flags(called) & 0o100 != 0
}

/// Whether where a call reads or writes depends on those before.
fn moves_position(call: Call) -> bool {
    let positioned = call.row().arguments.contains(&Kind::Offset);
    call.name() == "lseek"
        || call.name().starts_with("getdents")
        || !positioned && call.row().moves != Moves::Nothing
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    (slash > 0).then(|| &path[..slash])
}

/// A path from the root on: `.` and `..` taken out, without a slash in front.
fn joined(base: &[u8], path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let base = if path.first() == Some(&b'/') { &b""[..] } else { base };
    for part in base.split(|byte| *byte == b'/').chain(path.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join(&b'/')
}
