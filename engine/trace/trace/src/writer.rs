//! A trace that is being written.

use std::fs::File;
use std::io::{self, Write};

use serde::Serialize;

pub use crate::chunk::MOST_EVENTS;
use crate::chunk::{Encoder, Known, MOST_TEXT};
use crate::event::Event;
use crate::frame::{self, CALLS, FILES, FOOTER, HEADER, Kind, META};
use crate::meta::{Footer, Header, Meta};

/// The level that compresses best for its cost (docs/reference/trace-format.md has the measurements).
pub const LEVEL: i32 = 3;
/// Bytes of frames that are written in any case.
const MOST_GATHERED: usize = 1 << 16;

/// Writes a trace as it comes. Each call writes whole frames, so that what was written can be read whatever happens;
/// `gathering` leaves it to the caller when that is.
pub struct Writer {
    file: File,
    encoder: Encoder,
    known: Known,
    payload: Vec<u8>,
    /// Frames that are not in the file yet.
    gathered: Vec<u8>,
    gathers: bool,
    bytes: u64,
    events: u64,
}

impl Writer {
    /// Begins a trace in a file, which should be empty. The header's `format` and `version` are filled in.
    pub fn create(file: File, header: &Header) -> io::Result<Writer> {
        Self::with_level(file, header, LEVEL)
    }

    /// The same with another level of zstd, 1 to 19.
    pub fn with_level(mut file: File, header: &Header, level: i32) -> io::Result<Writer> {
        let start = frame::start();
        file.write_all(&start)?;
        let (encoder, known) = (Encoder::new(level)?, Known::default());
        let bytes = start.len() as u64;
        let (payload, gathered, gathers) = (Vec::new(), Vec::new(), false);
        let mut writer = Writer { file, encoder, known, payload, gathered, gathers, bytes, events: 0 };
        let header = Header { format: "etude-trace".into(), version: frame::VERSION, ..header.clone() };
        writer.json(HEADER, &header)?;
        Ok(writer)
    }

    /// From now on frames go to the file at `flush`, or when there are some: one write for many.
    pub fn gathering(self) -> Writer {
        Writer { gathers: true, ..self }
    }

    /// Writes the frames that were gathered.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.gathered);
        self.gathered.clear();
        written
    }

    /// Notes something.
    pub fn meta(&mut self, meta: &Meta) -> io::Result<()> {
        if let Meta::Files { .. } = meta {
            let payload = zstd::bulk::compress(&serde_json::to_vec(meta)?, LEVEL)?;
            return self.frame(FILES, &payload);
        }
        self.json(META, meta)
    }

    /// Writes events of one thread, in order; any number: they are cut into chunks of up to [`MOST_EVENTS`]. A chunk
    /// of few events costs more for each: some thousands are as good as many.
    ///
    /// Arguments must be normalised. An error of a text (longer than 64 KiB, or not in order) writes nothing more.
    pub fn events(&mut self, thread: u32, events: &[Event]) -> io::Result<()> {
        let mut rest = events;
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(chunk_length(rest));
            let anew = self.known.all.is_full();
            if anew {
                self.known.clear();
            }
            let mut payload = std::mem::take(&mut self.payload);
            payload.clear();
            let encoded = self.encoder.encode(thread, chunk, anew, &mut self.known, &mut payload);
            let written = encoded.and_then(|()| self.frame(CALLS, &payload));
            self.payload = payload;
            written?;
            self.events += chunk.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Ends the trace. The footer's `events` is filled in.
    pub fn finish(mut self, footer: &Footer) -> io::Result<()> {
        let footer = Footer { events: self.events, ..footer.clone() };
        self.json(FOOTER, &footer)?;
        self.flush()
    }

    /// How long the file is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn json(&mut self, kind: Kind, value: &impl Serialize) -> io::Result<()> {
        let payload = serde_json::to_vec(value)?;
        self.frame(kind, &payload)
    }

    fn frame(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        if payload.len() > frame::MOST_BYTES {
            return Err(io::Error::other("a frame is longer than any can be"));
        }
        let head = frame::head(kind, payload);
        self.bytes += (head.len() + payload.len()) as u64;
        self.gathered.extend(&head);
        self.gathered.extend(payload);
        if self.gathers && self.gathered.len() < MOST_GATHERED { Ok(()) } else { self.flush() }
    }
}

/// How many of the events go into one chunk.
fn chunk_length(events: &[Event]) -> usize {
    let most = events.len().min(MOST_EVENTS);
    let mut text = 0;
    let too_much = |event: &Event| {
        text += event.texts.iter().map(|text| text.bytes.len()).sum::<usize>();
        text > MOST_TEXT
    };
    events[..most].iter().position(too_much).unwrap_or(most).max(1)
}
