//! Descriptors: opened before they are used, closed after their last use.

use etude_calls::{Call, Kind, Moves, Outcome};
use etude_script::Called;

use super::{Opened, Order, Point, Slot};
use crate::extents::Extents;

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

    /// What a call that went well leaves behind.
    pub(super) fn results(&mut self, here: Point, process: u32, called: &Called) {
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
fn open_flags(called: &Called) -> u64 {
    match called.call.name() {
        "open" => called.arguments[1],
        "openat" => called.arguments[2],
        "creat" => 0o1101,
        _ => 0,
    }
}

pub(super) fn creates(called: &Called) -> bool {
    open_flags(called) & 0o100 != 0
}

/// Whether where a call reads or writes depends on those before.
fn moves_position(call: Call) -> bool {
    let positioned = call.row().arguments.contains(&Kind::Offset);
    call.name() == "lseek"
        || call.name().starts_with("getdents")
        || !positioned && call.row().moves != Moves::Nothing
}
