//! What goes through a pipe, or a pair of sockets, needs no order: a replay reads as much as the original found, and waits for
//! it in the kernel. What found nothing there, or nobody who reads, has its place.

use etude_script::Called;

use super::Order;
use super::waits::{Edge, Point};

/// EPIPE.
pub const BROKEN: i64 = -32;
/// ECONNRESET: of a read, that the other end is closed, and has not read all.
pub const RESET: i64 = -104;

/// The streams that are read and written at an end: of a pipe the same.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub reads: usize,
    pub writes: usize,
}

/// One direction of what goes through a pipe or a pair of sockets, as far as its calls are known.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The thing that writes use: that somebody can read.
    pub readable: usize,
    /// How many can.
    pub readers: usize,
    /// Nobody can any more, however many there are.
    pub shut: bool,
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
        if result == BROKEN {
            if let Some(maker) = self.things[readable].maker {
                self.wait(here, maker, Edge::Pipes);
            }
            return;
        }
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

    /// `shutdown` of a descriptor: what goes out of it, or comes in, goes no further.
    pub(super) fn shuts(&mut self, here: Point, process: u32, called: &Called) {
        let [fd, how, ..] = called.arguments;
        let Some(End { reads, writes }) = self.end_of(process, fd as i32) else { return };
        // SHUT_RD, SHUT_WR, SHUT_RDWR
        let streams: &[usize] = match how {
            0 => &[reads],
            1 => &[writes],
            _ => &[reads, writes],
        };
        for stream in streams {
            self.pipes[*stream].shut = true;
            self.breaks(here, *stream);
        }
    }

    /// Nobody can read it any more. Who says so first is not known where several do: none waits for another.
    pub(super) fn breaks(&mut self, here: Point, stream: usize) {
        let readable = &mut self.things[self.pipes[stream].readable];
        readable.maker = Some(here);
        let users = std::mem::take(&mut readable.users);
        users.into_iter().for_each(|user| self.wait(here, user, Edge::Pipes));
    }
}
