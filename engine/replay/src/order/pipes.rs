//! What goes through a pipe: by the number of bytes each read finds what it found, and no more.

use std::collections::VecDeque;

use super::Point;

/// So many bytes fit in a pipe whatever pieces they came in: two of its sixteen pages that follow each other hold more than
/// 4096 bytes.
const ROOM: u64 = 7 * 4096;
/// So many where they are one piece.
const WHOLE: u64 = 16 * 4096;

#[derive(Debug)]
struct Write {
    begin: u64,
    end: u64,
    by: Point,
}

/// A pipe, as far as its calls are known.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The thing that writes use: that somebody can read.
    pub readable: usize,
    /// How many can.
    pub readers: usize,
    /// Those of which something was not read.
    writes: VecDeque<Write>,
    written: u64,
    read: u64,
    reader: Option<Point>,
    /// The last read, if it found less than it had room for.
    short: Option<Point>,
}

impl Pipe {
    pub fn new(readable: usize) -> Pipe {
        Pipe { readable, ..Pipe::default() }
    }

    /// Whether so many bytes are there.
    pub fn has(&self, bytes: u64) -> bool {
        self.read.saturating_add(bytes) <= self.written
    }

    /// `others` are those that come before it.
    pub fn write(&mut self, here: Point, bytes: u64, others: &mut Vec<Point>) {
        others.extend(self.short);
        let begin = self.written;
        self.written = begin.saturating_add(bytes);
        if self.written > self.read {
            self.writes.push_back(Write { begin, end: self.written, by: here });
        }
    }

    /// A read that has room for `asked` bytes and finds `found`.
    pub fn read(&mut self, here: Point, found: u64, asked: u64, others: &mut Vec<Point>) {
        others.extend(self.reader.replace(here));
        let end = self.read.saturating_add(found);
        let needed = self.writes.iter().take_while(|write| write.begin < end);
        // Those that end without this read; the last ones first: who waits for these knows those before.
        let ended = |write: &&Write| {
            write.end - self.read <= ROOM || write.begin == self.read && write.end - self.read <= WHOLE
        };
        // What waited for the first byte is woken by it, now as then.
        let woken = self
            .writes
            .front()
            .is_some_and(|first| first.begin == self.read && first.by.step > here.step && first.end >= end);
        if !woken {
            let ended: Vec<Point> = needed.filter(ended).map(|write| write.by).collect();
            others.extend(ended.into_iter().rev());
        }
        self.read = end;
        while self.writes.front().is_some_and(|write| write.end <= end) {
            self.writes.pop_front();
        }
        self.short = (found < asked).then_some(here);
    }
}
