//! A trace that is being read: as it stands in the file, or the events of all threads in order of their beginnings.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::Path;

use crate::chunk::{Decoder, Dictionary, Head};
use crate::event::Event;
use crate::frame::{CALLS, Error, FILES, FOOTER, Frames, HEADER, Kind, META, MOST_BYTES, Next};
use crate::meta::{Footer, Header, Meta};

/// Commas and brackets in the files of one frame: each can stand for a hundred bytes in memory.
const MOST_PARTS: usize = 1 << 21;

/// Reads a trace as a stream.
pub struct Reader {
    frames: Frames,
    header: Header,
    decoder: Decoder,
    dictionary: Dictionary,
    payload: Vec<u8>,
    events: Vec<Event>,
    ending: Option<Ending>,
}

/// What stands in a trace.
#[derive(Debug)]
pub enum Frame<'a> {
    Meta(Meta),
    /// Some of one thread's events, in order.
    Events {
        thread: u32,
        events: &'a [Event],
    },
    Footer(Footer),
}

/// How a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Whole,
    /// In the middle of a frame that begins at this byte, or before the footer: the recorder was killed, or the disk
    /// was full.
    CutShort { at: u64 },
}

impl Ending {
    /// What to tell of it: one line, or nothing.
    pub fn warning(self) -> Option<String> {
        match self {
            Ending::Whole => None,
            Ending::CutShort { at } => {
                Some(format!("the trace is cut short at byte {at}: what was recorded later is missing"))
            }
        }
    }
}

impl Reader {
    /// Opens a trace. What is none, one of another version, or without a whole header is an error of one line.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let mut frames = Frames::open(path)?;
        let mut payload = Vec::new();
        let header = match frames.read(&mut payload)? {
            Next::Frame(HEADER) => serde_json::from_slice(&payload)
                .map_err(|error| frames.damage(&format!("its header is not understood ({error})")))?,
            Next::Frame(_) => return Err(frames.damage("it does not begin with a header")),
            Next::End | Next::CutShort => return Err(frames.refuse("is cut short before its first event")),
        };
        let decoder = Decoder::new().map_err(|error| frames.refuse(error.to_string()))?;
        let (dictionary, events) = (Dictionary::default(), Vec::new());
        Ok(Reader { frames, header, decoder, dictionary, payload, events, ending: None })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next frame; None at the end, of which [`Reader::ending`] says how it came. Kinds of frames that a later
    /// version may add are passed over. An error is damage, and the end as well.
    #[expect(clippy::should_implement_trait, reason = "it lends its events")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Error> {
        while self.ending.is_none() {
            let at = self.frames.at;
            let next = self.frames.read(&mut self.payload);
            let kind = match next {
                Ok(Next::Frame(kind)) => kind,
                Ok(Next::End | Next::CutShort) => {
                    self.ending = Some(Ending::CutShort { at });
                    break;
                }
                Err(error) => return Err(self.fail(at, error)),
            };
            match kind {
                META | FILES | FOOTER => {
                    let noted = noted(kind, &self.payload);
                    if matches!(noted, Ok(Frame::Footer(_))) {
                        self.ending = Some(Ending::Whole);
                    }
                    return noted.map(Some).map_err(|why| self.fail(at, self.frames.damage(&why)));
                }
                CALLS => {
                    let head = self.decoder.decode(&self.payload, &mut self.dictionary, &mut self.events);
                    let head = head.map_err(|why| self.frames.damage(&why));
                    return match head {
                        Ok(Head { thread, .. }) => Ok(Some(Frame::Events { thread, events: &self.events })),
                        Err(error) => Err(self.fail(at, error)),
                    };
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn fail(&mut self, at: u64, error: Error) -> Error {
        self.ending = Some(Ending::CutShort { at });
        error
    }

    /// How the trace ends; None before that was reached.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }
}

fn understood(meta: Meta) -> Result<Frame<'static>, String> {
    match meta.misunderstood() {
        Some(kind) => Err(format!("a note of the kind {kind} lacks a member, or has one that cannot be")),
        None => Ok(Frame::Meta(meta)),
    }
}

/// What a frame of JSON says.
fn noted(kind: Kind, payload: &[u8]) -> Result<Frame<'static>, String> {
    let why = |error: serde_json::Error| error.to_string();
    match kind {
        META => understood(serde_json::from_slice(payload).map_err(why)?),
        FILES => {
            let text = zstd::bulk::decompress(payload, MOST_BYTES).map_err(|error| error.to_string())?;
            let parts = text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
            if parts > MOST_PARTS {
                return Err("it has more files than one frame can have".into());
            }
            understood(serde_json::from_slice(&text).map_err(why)?)
        }
        _ => serde_json::from_slice(payload).map(Frame::Footer).map_err(why),
    }
}

/// The heads of all chunks of events that are whole, without what is in them. What is damaged ends the list; who reads
/// the frames will say so.
pub(crate) fn chunks(path: &Path) -> Result<Vec<Head>, Error> {
    let mut frames = Frames::open(path)?;
    let (mut heads, mut beginning) = (Vec::new(), [0; Head::BYTES]);
    while let Ok(Next::Frame(kind)) = frames.skim(&mut beginning) {
        if kind == CALLS {
            let Some(head) = Head::from_bytes(&beginning) else { break };
            heads.push(head);
        }
    }
    Ok(heads)
}

/// The notes of a trace, without its events. What is damaged ends the list, as above.
pub(crate) fn notes(path: &Path) -> Result<Vec<Meta>, Error> {
    let mut frames = Frames::open(path)?;
    let (mut notes, mut payload) = (Vec::new(), Vec::new());
    while let Ok(Next::Frame(kind)) = frames.read(&mut payload) {
        if kind == META {
            match noted(kind, &payload) {
                Ok(Frame::Meta(note)) => notes.push(note),
                _ => break,
            }
        }
    }
    Ok(notes)
}

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
///
/// A trace has its events in chunks of one thread, which overlap. The heads of all chunks, read first, say how early an
/// event of a later chunk can be; only what begins later than that is held back.
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
        held.add(thread, std::mem::take(&mut reader.events));
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
