//! Descriptors: opened before they are used, closed after their last use.

use etude_calls::Kind;
use etude_fsmodel::flags::{O_ACCMODE, O_CLOEXEC, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY, is_nameless};
use etude_fsmodel::{
    Closed, DescriptorChange, NameChange, Opens, Reuse, Table, appends, descriptor_change, ends, name_change,
    open_flags,
};
use etude_script::Called;

use super::locks::Owner;
use super::pipes::{End, Pipe};
use super::sizes::Use;
use super::waits::{Edge, Point};
use super::{Content, Opened, Order, Slot};

impl Order {
    /// Descriptors that a call uses, ends or moves.
    pub(super) fn descriptors(&mut self, here: Point, process: u32, called: &Called) {
        let change = descriptor_change(&called.done());
        if let DescriptorChange::Closes(_) = change {
            return self.change(here, process, &change);
        }
        for index in 0..called.call.used(&called.arguments) {
            let kind = called.call.kind(&called.arguments, index);
            if !matches!(kind, Kind::Fd | Kind::DirFd) {
                continue;
            }
            let Some(slot) = self.slot_of(process, called.arguments[index] as i32) else { continue };
            self.uses(here, slot.thing, Edge::Descriptors);
            let opened = &self.opened[slot.description];
            if moves_position(called, index) && self.contents[opened.file].pipe.is_none() {
                let position = opened.position;
                self.makes(here, position, Edge::Descriptors);
            }
        }
    }

    pub(super) fn slot_of(&self, process: u32, descriptor: i32) -> Option<Slot> {
        Some(self.tables.get(&process)?.get(descriptor)?.behind)
    }

    /// The open descriptors of a process.
    pub(super) fn slots_of(&self, process: u32) -> impl Iterator<Item = Slot> {
        self.tables.get(&process).into_iter().flat_map(Table::iter).map(|(_, slot)| slot.behind)
    }

    fn table(&mut self, process: u32) -> &mut Table<Slot> {
        self.tables.entry(process).or_insert_with(|| Table::new(Reuse::Replaces))
    }

    /// Does what a call did to the table of its process, and ends what that closed.
    fn change(&mut self, here: Point, process: u32, change: &DescriptorChange) {
        let closed = self.table(process).apply(change);
        self.ends(here, process, closed);
    }

    fn ends(&mut self, here: Point, process: u32, closed: Closed<Slot>) {
        for (fd, slot) in closed {
            let Slot { description, thing } = slot.behind;
            self.makes(here, thing, Edge::Descriptors);
            self.gives_back(here, self.opened[description].file, Owner::Process(process));
            self.leaves(here, description);
            // Whoever gets the number next waits for this.
            let thing = self.thing(Some(here));
            self.closed.insert((process, fd), thing);
        }
    }

    pub(super) fn exec(&mut self, here: Point, process: u32) {
        let closed = self.table(process).exec();
        self.ends(here, process, closed);
    }

    /// The end of a process closes what it has open.
    pub(super) fn end(&mut self, here: Point, process: u32) {
        self.ending = true;
        self.change(here, process, &DescriptorChange::ClosesRange { first: 0, last: i32::MAX });
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

    /// The effect that a call leaves behind.
    pub(super) fn results(&mut self, here: Point, process: u32, called: &Called) {
        let done = called.done();
        match descriptor_change(&done) {
            DescriptorChange::Opens { descriptor, what, flags } => {
                self.open(here, process, called, (descriptor, flags));
                if what == Opens::Accepted {
                    self.joins(process, descriptor, called);
                }
            }
            DescriptorChange::OpensPair { descriptors: Some(pair), sockets, flags } => {
                self.pair(here, process, pair, sockets, flags & O_CLOEXEC != 0);
            }
            DescriptorChange::Copies { from, to, closes_at_exec, .. } => {
                if let Some(slot) = self.slot_of(process, from) {
                    self.slot(here, process, to, slot.description, closes_at_exec);
                }
            }
            DescriptorChange::SetsFlags { descriptor, flags } => {
                if let Some(slot) = self.slot_of(process, descriptor) {
                    self.opened[slot.description].append = appends(flags);
                }
            }
            DescriptorChange::Connects(descriptor) => self.joins(process, descriptor, called),
            DescriptorChange::EntersPath => {
                if let Some(path) = self.paths(process, &done).pop() {
                    self.cwd.insert(process, path);
                }
            }
            DescriptorChange::EntersDescriptor(descriptor) => {
                if let Some(path) = self.directory(process, Some(descriptor)) {
                    self.cwd.insert(process, path);
                }
            }
            // `descriptors` has done it.
            DescriptorChange::Closes(_) => {}
            change => self.change(here, process, &change),
        }
        match (name_change(&done), &self.paths(process, &done)[..]) {
            (NameChange::MakesNode { mode }, [.., path]) => self.fifo(path, mode),
            (NameChange::Renames { swaps }, [from, to]) => self.renames(from, to, swaps),
            (NameChange::Links, [from, to]) => {
                let file = self.files.get(from).copied();
                self.files.extend(file.map(|file| (to.clone(), file)));
            }
            (NameChange::LinksDescriptor(descriptor), [to]) => {
                let file = self.file_of(process, descriptor);
                self.files.extend(file.map(|file| (to.clone(), file)));
            }
            (NameChange::Removes { .. }, paths) => {
                for path in paths {
                    self.files.remove(path);
                }
            }
            _ => {}
        }
        if called.call.name() == "shutdown" && called.result >= 0 {
            self.shuts(here, process, called);
        }
    }

    fn open(&mut self, here: Point, process: u32, called: &Called, (descriptor, flags): (i32, u64)) {
        let done = called.done();
        // A file without a name is none that another call opens.
        let nameless = open_flags(&done).is_some_and(is_nameless);
        let path = self.paths(process, &done).pop().filter(|_| !nameless);
        let known = path.as_ref().and_then(|path| self.files.get(path)).copied();
        let file = known.unwrap_or_else(|| self.content(Content::default()));
        if let Some(path) = &path {
            self.files.insert(path.clone(), file);
        }
        if open_flags(&done).is_some_and(|flags| flags & O_TRUNC != 0) {
            self.size(here, file, Use::Sets(0));
            self.overwrites(here, file);
        }
        let description = self.description(here, file, flags);
        if let Some(path) = path {
            self.directories.insert(description, path);
        }
        self.slot(here, process, descriptor, description, flags & O_CLOEXEC != 0);
    }

    pub(super) fn content(&mut self, content: Content) -> usize {
        self.contents.push(content);
        self.contents.len() - 1
    }

    /// Something that is opened.
    fn description(&mut self, here: Point, file: usize, flags: u64) -> usize {
        let (position, reads) = (self.thing(Some(here)), flags & O_ACCMODE != O_WRONLY);
        self.opened.push(Opened { file, position, append: appends(flags), reads, copies: 0 });
        self.places.push(0);
        if let Some(pipe) = self.contents[file].pipe.filter(|_| reads) {
            self.pipes[pipe.reads].readers += 1;
        }
        self.opened.len() - 1
    }

    /// Both ends of a pipe, or a pair of sockets.
    fn pair(&mut self, here: Point, process: u32, pair: [i32; 2], sockets: bool, closes_at_exec: bool) {
        let ends = if sockets {
            let (one, other) = (self.stream(), self.stream());
            let both = [End { reads: one, writes: other }, End { reads: other, writes: one }];
            both.map(|end| (self.content(Content { pipe: Some(end), ..Content::default() }), O_RDWR))
        } else {
            let file = self.new_pipe();
            [(file, 0), (file, O_WRONLY)]
        };
        for (fd, (file, flags)) in pair.into_iter().zip(ends) {
            let description = self.description(here, file, flags);
            self.slot(here, process, fd, description, closes_at_exec);
        }
    }

    /// One half of a connection between two sockets, which both name. Who accepts waits in the kernel for who connects.
    fn joins(&mut self, process: u32, fd: i32, called: &Called) {
        let Some(name) = called.text(1) else { return };
        let Some(slot) = self.slot_of(process, fd) else { return };
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
    fn fifo(&mut self, path: &[u8], mode: u64) {
        const S_IFMT: u64 = 0o170000;
        const S_IFIFO: u64 = 0o10000;
        if mode & S_IFMT == S_IFIFO {
            let file = self.new_pipe();
            self.files.insert(path.to_vec(), file);
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

    fn slot(&mut self, here: Point, process: u32, fd: i32, description: usize, closes_at_exec: bool) {
        self.opened[description].copies += 1;
        self.change(here, process, &DescriptorChange::ClosesRange { first: fd, last: fd });
        if let Some(thing) = self.closed.remove(&(process, fd)) {
            self.makes(here, thing, Edge::Descriptors);
        }
        let thing = self.thing(Some(here));
        self.table(process).open(fd, Slot { description, thing }, closes_at_exec);
    }
}

pub(super) fn creates(called: &Called) -> bool {
    open_flags(&called.done()).is_some_and(|flags| flags & O_CREAT != 0)
}

/// Whether a call uses and moves the position of its descriptor at `index`.
fn moves_position(called: &Called, index: usize) -> bool {
    matches!(called.call.name(), "lseek" | "getdents" | "getdents64")
        || ends(&called.done()).iter().flatten().any(|end| end.argument == index && end.at.is_none())
}
