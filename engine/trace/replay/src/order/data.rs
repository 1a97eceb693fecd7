//! Data: what overlaps in a file, and is written by one of both, keeps its order; so does what goes through a pipe.

use etude_calls::{Kind, Moves};
use etude_script::Called;

use super::Order;
use super::edges::Edge;
use super::locks::REFUSED;
use super::pipes::{End as PipeEnd, Pipe};
use super::sizes::Use;
use super::waits::Point;

/// Where a call moves data to or from.
#[derive(Clone, Copy)]
struct End {
    fd: i64,
    /// Whether it moved less than it was to; of a vectored call that is not known.
    short: bool,
    /// None for where the position is.
    at: Option<u64>,
    writes: bool,
}

/// Both ends of a call, as far as it has them.
fn ends(called: &Called) -> [Option<End>; 2] {
    let row = called.call.row();
    let fd = |index: usize| called.arguments[index] as i64;
    let asked = row.arguments.iter().position(|kind| *kind == Kind::Size);
    let short = asked.is_none_or(|index| (called.result as u64) < called.arguments[index]);
    let in_memory = |index: usize| called.text(index)?.try_into().ok().map(u64::from_le_bytes);
    let (read, write) = match called.call.name() {
        "copy_file_range" | "splice" => ((0, in_memory(1)), Some((2, in_memory(3)))),
        "sendfile" => ((1, in_memory(2)), Some((0, None))),
        _ if row.arguments.first() != Some(&Kind::Fd) => return [None; 2],
        _ if !matches!(row.moves, Moves::Reads | Moves::Writes) => return [None; 2],
        _ => {
            let at = row.arguments.iter().position(|kind| *kind == Kind::Offset);
            let at = at.map(|index| called.arguments[index]).filter(|at| *at as i64 >= 0);
            let writes = row.moves == Moves::Writes;
            return [Some(End { fd: fd(0), short, at, writes }), None];
        }
    };
    let end = |(index, at), writes| End { fd: fd(index), short, at, writes };
    [Some(end(read, false)), write.map(|write| end(write, true))]
}

impl Order {
    /// Data: what overlaps, and is written by one of both.
    pub(super) fn data(&mut self, here: Point, process: u32, called: &Called) {
        let fd = called.arguments[0] as i64;
        match called.call.name() {
            "lseek" if called.result >= 0 => self.position(process, fd, called.result as u64),
            "ftruncate" | "fallocate" if called.result >= 0 => {
                self.touch(here, process, fd, (0, u64::MAX), true);
            }
            _ => {
                for end in ends(called).into_iter().flatten() {
                    match self.pipe_of(process, end.fd, end.writes) {
                        Some(pipe) if end.writes => self.pipe_writes(here, pipe, called.result),
                        Some(pipe) if called.result == REFUSED => self.pipe_reads(here, pipe, None),
                        Some(pipe) => {
                            if let Ok(found) = u64::try_from(called.result) {
                                self.pipe_reads(here, pipe, Some(found));
                            }
                        }
                        None if called.result >= 0 => {
                            self.transfer(here, process, end, called.result as u64);
                        }
                        None => {}
                    }
                }
            }
        }
    }

    /// The pipe that a call reads from, or writes to, and whether it writes.
    pub(super) fn pipe_end(&self, process: u32, called: &Called) -> Option<(&Pipe, bool)> {
        let end = ends(called)[0]?;
        Some((&self.pipes[self.pipe_of(process, end.fd, end.writes)?], end.writes))
    }

    fn pipe_of(&self, process: u32, fd: i64, writes: bool) -> Option<usize> {
        let end = self.end_of(process, fd)?;
        Some(if writes { end.writes } else { end.reads })
    }

    pub(super) fn end_of(&self, process: u32, fd: i64) -> Option<PipeEnd> {
        let slot = self.slots.get(&(process, fd))?;
        self.contents[self.opened[slot.description].file].pipe
    }

    /// Data of a descriptor, at a place or where its position is, which then moves.
    fn transfer(&mut self, here: Point, process: u32, end: End, bytes: u64) {
        let Some(slot) = self.slots.get(&(process, end.fd)) else { return };
        let description = slot.description;
        let from = end.at.unwrap_or(self.places[description]);
        if end.at.is_none() {
            self.places[description] = from.saturating_add(bytes);
        }
        let append = end.writes && self.opened[description].append;
        let file = self.opened[description].file;
        let size = self.contents[file].size.bytes();
        let reached = if append { size.saturating_add(bytes) } else { from.saturating_add(bytes) };
        if end.writes && bytes > 0 {
            self.size(here, file, Use::Reaches(reached));
        } else if !end.writes && end.short && reached >= size {
            self.size(here, file, Use::Asks);
        }
        let (from, bytes) = if append { (0, u64::MAX) } else { (from, bytes) };
        self.touch(here, process, end.fd, (from, bytes), end.writes);
    }

    fn touch(&mut self, here: Point, process: u32, fd: i64, (from, bytes): (u64, u64), writes: bool) {
        if let Some(file) = self.file_of(process, fd) {
            self.touch_file(here, file, (from, bytes), writes);
        }
    }

    pub(super) fn touch_file(&mut self, here: Point, file: usize, (from, bytes): (u64, u64), writes: bool) {
        let mut others = Vec::new();
        let to = from.saturating_add(bytes);
        self.contents[file].extents.touch(here, from, to, writes, &mut others);
        others.into_iter().for_each(|other| self.wait(here, other, Edge::Data));
    }

    /// All that was in a file is gone.
    pub(super) fn overwrites(&mut self, here: Point, file: usize) {
        let mut others = Vec::new();
        self.contents[file].extents.touch(here, 0, u64::MAX, true, &mut others);
        others.into_iter().for_each(|other| self.wait(here, other, Edge::Data));
    }

    fn position(&mut self, process: u32, fd: i64, place: u64) {
        if let Some(slot) = self.slots.get(&(process, fd)) {
            self.places[slot.description] = place;
        }
    }
}
