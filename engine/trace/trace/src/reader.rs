//! A trace that is being read.

use std::path::Path;

use crate::chunk::{Decoder, Head};
use crate::dictionary::Dictionary;
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

    /// The events of the last frame, taken instead of borrowed.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
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
