//! A roll that is written.

use std::io::{self, Write};

use etude_script::Needed;
use etude_trace::Event;
use etude_trace::parts::{Encoder, Kind, head};

use super::sizes::Sizes;
use super::{
    CALLS, CHUNK, FOOTER, Foretold, HEADER, Head, MAGIC, MARKS, MOST, MOST_NAME, MOST_NAMES, Mark, NAMES,
    NEEDED, Rhythm, START, TIMES, VERSION, said, tables,
};

/// A roll is made once and played often.
const LEVEL: i32 = 19;

/// Writes a roll.
pub struct Writer<W> {
    out: W,
    encoder: Encoder,
    rhythm: Rhythm,
    sizes: Sizes,
    /// Bytes that may still be compressed.
    room: usize,
}

impl<W: Write> Writer<W> {
    /// `rhythm`: that of all calls that follow.
    pub fn new(
        mut out: W,
        header: &Head,
        names: &[Vec<u8>],
        needed: &[Needed],
        rhythm: Rhythm,
    ) -> io::Result<Self> {
        let mut start = [0; START];
        start[..8].copy_from_slice(MAGIC);
        start[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out.write_all(&start)?;
        if names.iter().any(|name| name.len() > MOST_NAME) {
            let what = format!("has a name of more than {MOST_NAME} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let paths = needed.iter().map(|each| each.path.len() + said(&each.what)).sum::<usize>();
        let all = names.iter().map(Vec::len).sum::<usize>().max(paths);
        if all > MOST || names.len().max(needed.len()) > MOST_NAMES {
            return Err(too_much());
        }
        let sizes = Sizes::of(needed, names.iter().map(Vec::as_slice));
        let mut writer = Writer { out, encoder: Encoder::new(LEVEL)?, rhythm, sizes, room: MOST };
        let header = Head { format: "etude-roll".into(), version: VERSION, ..header.clone() };
        writer.frame(HEADER, &serde_json::to_vec(&header)?)?;
        writer.packed(NAMES, &tables::names_bytes(names))?;
        writer.packed(NEEDED, &tables::needed_bytes(needed, names))?;
        let times = writer.rhythm.to_bytes();
        writer.packed(TIMES, &times)?;
        Ok(writer)
    }

    /// All calls of a thread, from its start on; times in ns. Texts are names: the number of each, from 1, stands in its
    /// argument.
    pub fn calls(&mut self, thread: u32, events: &mut [Event]) -> io::Result<()> {
        let (mut so_far, mut payload) = (Foretold::default(), Vec::new());
        for chunk in events.chunks_mut(CHUNK) {
            chunk.iter_mut().for_each(|event| so_far.tell(event, &self.rhythm, &self.sizes));
            payload.clear();
            self.encoder.encode_alone(thread, chunk, &mut payload)?;
            self.frame(CALLS, &payload)?;
        }
        Ok(())
    }

    /// All marks of a thread.
    pub fn marks(&mut self, thread: u32, marks: &[Mark]) -> io::Result<()> {
        self.packed(MARKS, &tables::marks_bytes(thread, marks))
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.frame(FOOTER, b"{}")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn packed(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        self.room = self.room.checked_sub(bytes.len()).ok_or_else(too_much)?;
        let packed = zstd::bulk::compress(bytes, LEVEL)?;
        self.frame(kind, &packed)
    }

    fn frame(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        self.out.write_all(&head(kind, payload))?;
        self.out.write_all(payload)
    }
}

fn too_much() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "has more names, files or marks than a roll can hold")
}
