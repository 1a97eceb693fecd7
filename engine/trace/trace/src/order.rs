//! The events of all threads in order of their beginnings.
//!
//! A trace has its events in chunks of one thread, which overlap. The heads of all chunks, read first, say how early an
//! event of a later chunk can be; only what begins later than that is held back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::Path;

use crate::event::Event;
use crate::frame::Error;
use crate::meta::{Footer, Header, Meta};
use crate::reader::{Ending, Frame, Reader, chunks};

/// An item of a trace in the order of time.
#[derive(Debug)]
pub enum Ordered<'a> {
    /// First of all; and how many threads have events.
    Header(&'a Header, usize),
    /// Where it stands in the file: before the events that were written later.
    Meta(Meta),
    Event {
        thread: u32,
        event: &'a Event,
    },
    Footer(Footer),
}

/// Why not all came.
#[derive(Debug)]
pub enum Failed {
    /// The trace is damaged, or none.
    Trace(Error),
    /// Whoever was given the events could not go on.
    Visit(io::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failed::Trace(error) => error.fmt(out),
            Failed::Visit(error) => error.fmt(out),
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Trace(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Visit(error)
    }
}

/// Gives all that stands in a trace to `visit`; says how the trace ends. What was read before damage was found is given,
/// too. Events of one thread keep their order.
pub fn in_order(path: &Path, mut visit: impl FnMut(Ordered) -> io::Result<()>) -> Result<Ending, Failed> {
    let heads = chunks(path)?;
    let mut reader = Reader::open(path)?;
    let mut threads: Vec<u32> = heads.iter().map(|head| head.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    visit(Ordered::Header(reader.header(), threads.len()))?;
    // Of each chunk: when the earliest event of those after it begins.
    let mut later: Vec<u64> = heads.iter().map(|head| head.earliest_ns).collect();
    later.push(u64::MAX);
    for at in (0..later.len() - 1).rev() {
        later[at] = later[at].min(later[at + 1]);
    }
    let (mut held, mut chunk) = (Held::default(), 0);
    let ending = loop {
        let (thread, before) = match reader.next() {
            Ok(Some(Frame::Meta(meta))) => {
                visit(Ordered::Meta(meta))?;
                continue;
            }
            Ok(Some(Frame::Footer(footer))) => {
                held.release(u64::MAX, &mut visit)?;
                visit(Ordered::Footer(footer))?;
                continue;
            }
            Ok(Some(Frame::Events { thread, .. })) => {
                chunk += 1;
                (thread, later.get(chunk).copied().unwrap_or(u64::MAX))
            }
            Ok(None) => break Ok(reader.ending().expect("it has ended")),
            Err(error) => break Err(Failed::Trace(error)),
        };
        held.add(thread, reader.take_events());
        held.release(before, &mut visit)?;
    };
    held.release(u64::MAX, &mut visit)?;
    ending
}

/// Events that have to wait for earlier ones.
#[derive(Default)]
struct Held {
    threads: HashMap<u32, VecDeque<Event>>,
    /// When the first of each thread begins.
    first: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Held {
    fn add(&mut self, thread: u32, events: Vec<Event>) {
        let queue = self.threads.entry(thread).or_default();
        if queue.is_empty() {
            if let Some(event) = events.first() {
                self.first.push(Reverse((event.start_ns, thread)));
            }
            *queue = events.into();
        } else {
            queue.extend(events);
        }
    }

    /// Gives what begins before `before`, or at it.
    fn release(&mut self, before: u64, visit: &mut impl FnMut(Ordered) -> io::Result<()>) -> io::Result<()> {
        while let Some(&Reverse((start, thread))) = self.first.peek()
            && start <= before
        {
            self.first.pop();
            let queue = self.threads.get_mut(&thread).expect("it has events");
            let limit = self.first.peek().map_or(before, |Reverse((start, _))| before.min(*start));
            while let Some(event) = queue.front() {
                if event.start_ns > limit && event.start_ns != start {
                    self.first.push(Reverse((event.start_ns, thread)));
                    break;
                }
                visit(Ordered::Event { thread, event })?;
                queue.pop_front();
            }
        }
        Ok(())
    }
}
