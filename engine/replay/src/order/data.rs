//! Data: what overlaps in a file, and is written by one of both, keeps its order.

use etude_calls::{Kind, Moves};
use etude_script::Called;

use super::{Order, Point};

impl Order {
    /// Data: what overlaps, and is written by one of both.
    pub(super) fn data(&mut self, here: Point, process: u32, called: &Called) {
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
}
