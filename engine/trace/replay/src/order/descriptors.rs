//! Descriptors: opened before they are used, closed after their last use.

use etude_calls::{Kind, Moves, Outcome};
use etude_script::Called;

use super::edges::Edge;
use super::locks::Owner;
use super::pipes::{End, Pipe};
use super::sizes::Use;
use super::waits::Point;
use super::{Content, Opened, Order, Slot};

impl Order {
    /// Descriptors that a call uses, ends or moves.
    pub(super) fn descriptors(&mut self, here: Point, process: u32, called: &Called) {
        for index in 0..called.call.used(&called.arguments) {
            let kind = called.call.kind(&called.arguments, index);
            if !matches!(kind, Kind::Fd | Kind::DirFd) {
                continue;
            }
            let fd = called.arguments[index] as i64;
            let Some(slot) = self.slots.get(&(process, fd)).cloned() else { continue };
            if called.call.name() == "close" && called.result >= 0 {
                self.closes(here, process, fd);
                continue;
            }
            self.uses(here, slot.thing, Edge::Descriptors);
            let opened = &self.opened[slot.description];
            if moves_position(called, index) && self.contents[opened.file].pipe.is_none() {
                let position = opened.position;
                self.makes(here, position, Edge::Descriptors);
            }
        }
    }

    /// What a process has open, and what it had: numbers with [`CLOSED`].
    pub(super) fn slots_of(&self, process: u32) -> impl Iterator<Item = (i64, &Slot)> {
        let own = self.slots.iter().filter(move |((of, _), _)| *of == process);
        own.map(|((_, fd), slot)| (*fd, slot)).filter(|(fd, _)| fd & CLOSED == 0)
    }

    fn closes(&mut self, here: Point, process: u32, fd: i64) {
        let Some(slot) = self.slots.remove(&(process, fd)) else { return };
        self.makes(here, slot.thing, Edge::Descriptors);
        self.gives_back(here, self.opened[slot.description].file, Owner::Process(process));
        self.leaves(here, slot.description);
        // Whoever gets the number next waits for this.
        let thing = self.thing(Some(here));
        self.slots.insert((process, fd | CLOSED), Slot { thing, ..slot });
    }

    fn close_those(&mut self, here: Point, process: u32, those: impl Fn(i64, &Slot) -> bool) {
        let mut closed: Vec<i64> =
            self.slots_of(process).filter(|(fd, slot)| those(*fd, slot)).map(|(fd, _)| fd).collect();
        closed.sort_unstable();
        closed.into_iter().for_each(|fd| self.closes(here, process, fd));
    }

    pub(super) fn exec(&mut self, here: Point, process: u32) {
        self.close_those(here, process, |_, slot| slot.closes_at_exec);
    }

    /// The end of a process closes what it has open.
    pub(super) fn end(&mut self, here: Point, process: u32) {
        self.ending = true;
        self.close_those(here, process, |_, _| true);
        self.ending = false;
    }

    /// One descriptor less of something that was opened: the last one gives back its locks, and its end of a pipe.
    fn leaves(&mut self, here: Point, description: usize) {
        let opened = &mut self.opened[description];
        opened.copies -= 1;
        if opened.copies > 0 {
            return;
        }
        let file = opened.file;
        for owner in [Owner::Flock(description), Owner::Description(description)] {
            self.gives_back(here, file, owner);
        }
        if let Some(End { reads, .. }) = self.contents[file].pipe
            && self.opened[description].reads
        {
            self.pipes[reads].readers -= 1;
            if self.pipes[reads].readers == 0 {
                self.breaks(here, reads);
            }
        }
    }

    /// What a call that went well leaves behind.
    pub(super) fn results(&mut self, here: Point, process: u32, called: &Called) {
        let (name, arguments) = (called.call.name(), &called.arguments);
        match name {
            "dup" | "dup2" | "dup3" if arguments[0] as i64 != called.result => {
                let closes_at_exec = name == "dup3" && arguments[2] & O_CLOEXEC != 0;
                self.copy(here, process, arguments[0] as i64, called.result, closes_at_exec);
            }
            "dup2" => {}
            "fcntl" if matches!(arguments[1], F_DUPFD | F_DUPFD_CLOEXEC) => {
                let closes_at_exec = arguments[1] == F_DUPFD_CLOEXEC;
                self.copy(here, process, arguments[0] as i64, called.result, closes_at_exec);
            }
            "fcntl" if arguments[1] == F_SETFD => {
                if let Some(slot) = self.slots.get_mut(&(process, arguments[0] as i64)) {
                    slot.closes_at_exec = arguments[2] & 1 != 0;
                }
            }
            "close_range" if arguments[2] & CLOSE_RANGE_CLOEXEC == 0 => {
                let range = arguments[0] as i64..=arguments[1] as i64;
                self.close_those(here, process, |fd, _| range.contains(&fd));
            }
            "pipe" | "pipe2" | "socketpair" => self.pair(here, process, called),
            "connect" => self.joins(process, called.arguments[0] as i64, called),
            "accept" | "accept4" => {
                self.open(here, process, called);
                self.joins(process, called.result, called);
            }
            "shutdown" => self.shuts(here, process, called),
            "mknod" | "mknodat" => self.fifo(process, called),
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
                let behind = |order: &Order| {
                    let slot = order.slots.get(&(process, arguments[0] as i64))?;
                    Some(order.opened[slot.description].file)
                };
                let (file, to) = match &self.paths(process, called)[..] {
                    [from, to] => (self.files.get(from).copied(), to.clone()),
                    // Of what a descriptor stands for.
                    [to] => (behind(self), to.clone()),
                    _ => return,
                };
                self.files.extend(file.map(|file| (to, file)));
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
        // A file without a name is none that another call opens.
        let nameless = open_flags(called) & O_TMPFILE == O_TMPFILE;
        let path = self.paths(process, called).pop().filter(|_| !nameless);
        let known = path.as_ref().and_then(|path| self.files.get(path)).copied();
        let file = known.unwrap_or_else(|| self.content(Content::default()));
        if let Some(path) = &path {
            self.files.insert(path.clone(), file);
        }
        let flags = open_flags(called);
        if flags & O_TRUNC != 0 && flags & O_PATH == 0 {
            self.size(here, file, Use::Sets(0));
            self.overwrites(here, file);
        }
        let description = self.description(here, file, flags);
        if let Some(path) = path {
            self.directories.insert(description, path);
        }
        self.slot(here, process, called.result, description, flags & O_CLOEXEC != 0);
    }

    pub(super) fn content(&mut self, content: Content) -> usize {
        self.contents.push(content);
        self.contents.len() - 1
    }

    /// Something that is opened.
    fn description(&mut self, here: Point, file: usize, flags: u64) -> usize {
        let (position, reads) = (self.thing(Some(here)), flags & O_ACCMODE != O_WRONLY);
        self.opened.push(Opened { file, position, append: flags & O_APPEND != 0, reads, copies: 0 });
        self.places.push(0);
        if let Some(pipe) = self.contents[file].pipe.filter(|_| reads) {
            self.pipes[pipe.reads].readers += 1;
        }
        self.opened.len() - 1
    }

    /// Both ends of a pipe, or a pair of sockets.
    fn pair(&mut self, here: Point, process: u32, called: &Called) {
        let Some(pair) = called.texts.iter().find(|text| text.bytes.len() == 8) else { return };
        let closes_at_exec = called.call.name() != "pipe" && called.arguments[1] & O_CLOEXEC != 0;
        let ends = if called.call.name() == "socketpair" {
            let (one, other) = (self.stream(), self.stream());
            let both = [End { reads: one, writes: other }, End { reads: other, writes: one }];
            both.map(|end| (self.content(Content { pipe: Some(end), ..Content::default() }), O_RDWR))
        } else {
            let file = self.new_pipe();
            [(file, 0), (file, O_WRONLY)]
        };
        for (bytes, (file, flags)) in pair.bytes.chunks_exact(4).zip(ends) {
            let fd = i32::from_le_bytes(bytes.try_into().expect("four bytes"));
            let description = self.description(here, file, flags);
            self.slot(here, process, fd.into(), description, closes_at_exec);
        }
    }

    /// One half of a connection between two sockets, which both name. Who accepts waits in the kernel for who connects.
    fn joins(&mut self, process: u32, fd: i64, called: &Called) {
        let Some(name) = called.text(1) else { return };
        let Some(slot) = self.slots.get(&(process, fd)) else { return };
        let file = self.opened[slot.description].file;
        let end = self.half_made.remove(name).unwrap_or_else(|| {
            let (one, other) = (self.stream(), self.stream());
            self.half_made.insert(name.to_vec(), End { reads: other, writes: one });
            End { reads: one, writes: other }
        });
        self.contents[file].pipe = Some(end);
        self.pipes[end.reads].readers += 1;
    }

    /// A pipe that has a name.
    fn fifo(&mut self, process: u32, called: &Called) {
        const S_IFMT: u64 = 0o170000;
        const S_IFIFO: u64 = 0o10000;
        let mode = called.arguments[if called.call.name() == "mknod" { 1 } else { 2 }];
        if let Some(path) = self.paths(process, called).pop().filter(|_| mode & S_IFMT == S_IFIFO) {
            let file = self.new_pipe();
            self.files.insert(path, file);
        }
    }

    fn new_pipe(&mut self) -> usize {
        let stream = self.stream();
        let end = End { reads: stream, writes: stream };
        self.content(Content { pipe: Some(end), ..Content::default() })
    }

    fn stream(&mut self) -> usize {
        let (readable, empty) = (self.thing(None), self.thing(None));
        self.pipes.push(Pipe::new(readable, empty));
        self.pipes.len() - 1
    }

    fn copy(&mut self, here: Point, process: u32, from: i64, to: i64, closes_at_exec: bool) {
        if let Some(slot) = self.slots.get(&(process, from)).cloned() {
            self.slot(here, process, to, slot.description, closes_at_exec);
        }
    }

    fn slot(&mut self, here: Point, process: u32, fd: i64, description: usize, closes_at_exec: bool) {
        self.opened[description].copies += 1;
        self.closes(here, process, fd);
        if let Some(slot) = self.slots.remove(&(process, fd | CLOSED)) {
            self.makes(here, slot.thing, Edge::Descriptors);
        }
        let thing = self.thing(Some(here));
        self.slots.insert((process, fd), Slot { description, thing, closes_at_exec });
    }
}

/// Marks a number whose descriptor was closed.
const CLOSED: i64 = 1 << 40;

const O_ACCMODE: u64 = 3;
const O_WRONLY: u64 = 1;
const O_RDWR: u64 = 2;
const O_TRUNC: u64 = 0o1000;
const O_PATH: u64 = 0o10000000;
const O_TMPFILE: u64 = 0o20200000;
const O_APPEND: u64 = 0o2000;
const O_CLOEXEC: u64 = 0o2000000;
const F_DUPFD: u64 = 0;
const F_SETFD: u64 = 2;
const F_DUPFD_CLOEXEC: u64 = 1030;
const CLOSE_RANGE_CLOEXEC: u64 = 4;

fn open_flags(called: &Called) -> u64 {
    match called.call.name() {
        "open" => called.arguments[1],
        "openat" => called.arguments[2],
        "creat" => 0o1101,
        // A socket's type is not among these flags.
        "socket" => called.arguments[1] & O_CLOEXEC | O_RDWR,
        "accept4" => called.arguments[3] & O_CLOEXEC | O_RDWR,
        _ => 0,
    }
}

pub(super) fn creates(called: &Called) -> bool {
    open_flags(called) & 0o100 != 0
}

/// Whether a call uses and moves the position of its descriptor at `index`.
fn moves_position(called: &Called, index: usize) -> bool {
    let kinds = called.call.row().arguments;
    let moves = called.call.row().moves;
    match called.call.name() {
        "lseek" | "getdents" | "getdents64" => true,
        // An offset that stands in memory is used instead.
        "copy_file_range" | "splice" | "sendfile" => {
            kinds.get(index + 1) != Some(&Kind::OffsetAt) || called.text(index + 1).is_none()
        }
        _ if moves == Moves::Nothing => false,
        _ => kinds
            .iter()
            .position(|kind| *kind == Kind::Offset)
            .is_none_or(|at| (called.arguments[at] as i64) < 0),
    }
}
