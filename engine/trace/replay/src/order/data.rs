//! Data: what overlaps in a file, and is written by one of both, keeps its order; so does what goes through a pipe.

use std::collections::BTreeMap;

use etude_calls::Kind;
use etude_fsmodel::{DataEnd, SizeChange, ends, named, size_change};
use etude_script::Called;

use super::Order;
use super::locks::REFUSED;
use super::pipes::{End as PipeEnd, Pipe};
use super::sizes::Use;
use super::waits::{Edge, Point};

/// True if a call moved less than it was to; of a vectored one that is not known.
fn is_short(called: &Called) -> bool {
    let asked = called.call.row().arguments.iter().position(|kind| *kind == Kind::Size);
    asked.is_none_or(|index| (called.result as u64) < called.arguments[index])
}

impl Order {
    /// Data: what overlaps, and is written by one of both.
    pub(super) fn data(&mut self, here: Point, process: u32, called: &Called) {
        let (done, fd) = (called.done(), called.arguments[0] as i32);
        if called.result >= 0 && called.call.name() == "lseek" {
            return self.position(process, fd, called.result as u64);
        }
        if size_change(&done) != SizeChange::Nothing && named(&done).next().is_none() {
            if called.result >= 0 {
                self.touch(here, process, fd, (0, u64::MAX), true);
            }
            return;
        }
        for end in ends(&done).into_iter().flatten() {
            let descriptor = done.descriptor(end.argument);
            match self.pipe_of(process, descriptor, end.writes) {
                Some(pipe) if end.writes => self.pipe_writes(here, pipe, called.result),
                Some(pipe) if called.result == REFUSED => self.pipe_reads(here, pipe, None),
                Some(pipe) => {
                    if let Ok(found) = u64::try_from(called.result) {
                        self.pipe_reads(here, pipe, Some(found));
                    }
                }
                None if called.result >= 0 => self.transfer(here, process, called, end),
                None => {}
            }
        }
    }

    /// The pipe that a call reads from, or writes to, and whether it writes.
    pub(super) fn pipe_end(&self, process: u32, called: &Called) -> Option<(&Pipe, bool)> {
        let done = called.done();
        let end = ends(&done)[0]?;
        let pipe = self.pipe_of(process, done.descriptor(end.argument), end.writes)?;
        Some((&self.pipes[pipe], end.writes))
    }

    fn pipe_of(&self, process: u32, fd: i32, writes: bool) -> Option<usize> {
        let end = self.end_of(process, fd)?;
        Some(if writes { end.writes } else { end.reads })
    }

    pub(super) fn end_of(&self, process: u32, fd: i32) -> Option<PipeEnd> {
        let slot = self.slot_of(process, fd)?;
        self.contents[self.opened[slot.description].file].pipe
    }

    /// Data of a descriptor, at a place or where its position is, which then moves.
    fn transfer(&mut self, here: Point, process: u32, called: &Called, end: DataEnd) {
        let (fd, bytes) = (called.arguments[end.argument] as i32, called.result as u64);
        let Some(slot) = self.slot_of(process, fd) else { return };
        let description = slot.description;
        let from = end.at.unwrap_or(self.places[description]);
        let append = end.writes && (end.appends || self.opened[description].append);
        let file = self.opened[description].file;
        let size = self.contents[file].size.bytes();
        let reached = if append { size.saturating_add(bytes) } else { from.saturating_add(bytes) };
        if end.at.is_none() {
            self.places[description] = if append && bytes == 0 { from } else { reached };
        }
        if end.writes && bytes > 0 {
            self.size(here, file, Use::Reaches(reached));
        } else if !end.writes && is_short(called) && reached >= size {
            self.size(here, file, Use::Asks);
        }
        let (from, bytes) = if append { (0, u64::MAX) } else { (from, bytes) };
        self.touch(here, process, fd, (from, bytes), end.writes);
    }

    fn touch(&mut self, here: Point, process: u32, fd: i32, (from, bytes): (u64, u64), writes: bool) {
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

    fn position(&mut self, process: u32, fd: i32, place: u64) {
        if let Some(slot) = self.slot_of(process, fd) {
            self.places[slot.description] = place;
        }
    }
}

/// Who has written and read which bytes of a file last.
#[derive(Debug, Default)]
pub struct Extents(BTreeMap<u64, Extent>);

#[derive(Debug, Clone)]
struct Extent {
    end: u64,
    writer: Option<Point>,
    readers: Vec<Point>,
}

impl Extents {
    /// Notes a use; `others` are those that come before it.
    pub fn touch(&mut self, here: Point, from: u64, to: u64, writes: bool, others: &mut Vec<Point>) {
        if from >= to {
            return;
        }
        self.cut(from);
        self.cut(to);
        let (mut at, mut gaps) = (from, Vec::new());
        for (start, extent) in self.0.range_mut(from..to) {
            if at < *start {
                gaps.push((at, *start));
            }
            at = extent.end;
            others.extend(extent.writer);
            if writes {
                others.append(&mut extent.readers);
                extent.writer = Some(here);
            } else {
                match extent.readers.iter_mut().find(|reader| reader.thread == here.thread) {
                    Some(reader) => *reader = here,
                    None => extent.readers.push(here),
                }
            }
        }
        if at < to {
            gaps.push((at, to));
        }
        if writes {
            // One extent in place of all.
            let starts: Vec<u64> = self.0.range(from..to).map(|(start, _)| *start).collect();
            starts.iter().for_each(|start| drop(self.0.remove(start)));
            self.0.insert(from, Extent { end: to, writer: Some(here), readers: Vec::new() });
        } else {
            for (start, end) in gaps {
                self.0.insert(start, Extent { end, writer: None, readers: vec![here] });
            }
        }
    }

    /// Makes a boundary there.
    fn cut(&mut self, at: u64) {
        if let Some((_, extent)) = self.0.range_mut(..at).next_back()
            && extent.end > at
        {
            let mut behind = extent.clone();
            extent.end = at;
            behind.end = behind.end.max(at);
            self.0.insert(at, behind);
        }
    }
}
