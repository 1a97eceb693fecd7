//! What goes through a pipe needs no order: a replay reads as much as the original found, and waits for it in the kernel.
//! What found nothing there, or nobody who reads, has its place.

use super::edges::Edge;
use super::{Order, Point};

/// EPIPE.
pub const BROKEN: i64 = -32;

/// A pipe, as far as its calls are known.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The thing that writes use: that somebody can read.
    pub readable: usize,
    /// How many can.
    pub readers: usize,
    /// The thing that reads and writes use, and that a read makes which is refused: that nothing is in it.
    pub empty: usize,
    written: u64,
    read: u64,
}

impl Pipe {
    pub fn new(readable: usize, empty: usize) -> Pipe {
        Pipe { readable, empty, ..Pipe::default() }
    }

    /// Whether so many bytes are there.
    pub fn has(&self, bytes: u64) -> bool {
        self.read.saturating_add(bytes) <= self.written
    }
}

impl Order {
    pub(super) fn pipe_writes(&mut self, here: Point, pipe: usize, result: i64) {
        if result < 0 && result != BROKEN {
            return;
        }
        let Pipe { readable, empty, .. } = self.pipes[pipe];
        // Those that go well do while somebody can read, the others when nobody can any more.
        self.uses(here, readable, Edge::Pipes);
        self.uses(here, empty, Edge::Pipes);
        let pipe = &mut self.pipes[pipe];
        pipe.written = pipe.written.saturating_add(result.max(0) as u64);
    }

    /// `found`: None where it was refused, since nothing was there.
    pub(super) fn pipe_reads(&mut self, here: Point, pipe: usize, found: Option<u64>) {
        let empty = self.pipes[pipe].empty;
        match found {
            None => self.makes(here, empty, Edge::Pipes),
            Some(found) => {
                self.uses(here, empty, Edge::Pipes);
                let pipe = &mut self.pipes[pipe];
                pipe.read = pipe.read.saturating_add(found);
            }
        }
    }
}
