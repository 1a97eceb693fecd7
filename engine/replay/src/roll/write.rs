//! A roll that is written.

use std::collections::HashMap;
use std::io::{self, Write};

use etude_script::{Needed, What};
use etude_trace::Event;
use etude_trace::parts::{Encoder, Kind, head, put, zigzag};

use super::{
    CALLS, FOOTER, HEADER, Head, MAGIC, MARKS, MOST, MOST_NAME, MOST_NAMES, Mark, Marked, NAMES, NEEDED,
    START, VERSION, said,
};

/// A roll is made once and played often.
const LEVEL: i32 = 19;

/// Writes a roll.
pub struct Writer<W> {
    out: W,
    encoder: Encoder,
    payload: Vec<u8>,
    /// Bytes that may still be compressed.
    room: usize,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, header: &Head, names: &[Vec<u8>], needed: &[Needed]) -> io::Result<Self> {
        let mut start = [0; START];
        start[..8].copy_from_slice(MAGIC);
        start[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out.write_all(&start)?;
        let mut writer = Writer { out, encoder: Encoder::new(LEVEL)?, payload: Vec::new(), room: MOST };
        let header = Head { format: "etude-roll".into(), version: VERSION, ..header.clone() };
        writer.frame(HEADER, &serde_json::to_vec(&header)?)?;
        if names.iter().any(|name| name.len() > MOST_NAME) {
            return Err(io::Error::other(format!("has a name of more than {MOST_NAME} bytes")));
        }
        let paths = needed.iter().map(|each| each.path.len() + said(&each.what)).sum::<usize>();
        let all = names.iter().map(Vec::len).sum::<usize>().max(paths);
        if all > MOST || names.len().max(needed.len()) > MOST_NAMES {
            return Err(too_much());
        }
        writer.packed(NAMES, &names_bytes(names))?;
        writer.packed(NEEDED, &needed_bytes(needed, names))?;
        Ok(writer)
    }

    /// Calls of one thread, at most [`CHUNK`]; times in µs. Texts are names: the number of each, from 1, stands in its
    /// argument.
    pub fn calls(&mut self, thread: u32, events: &[Event]) -> io::Result<()> {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        self.encoder.encode_alone(thread, events, &mut payload)?;
        let written = self.frame(CALLS, &payload);
        self.payload = payload;
        written
    }

    /// All marks of a thread.
    pub fn marks(&mut self, thread: u32, marks: &[Mark]) -> io::Result<()> {
        let mut bytes = Vec::new();
        put(&mut bytes, thread.into());
        put(&mut bytes, marks.len() as u64);
        let mut before = 0;
        for mark in marks {
            put(&mut bytes, mark.at - before);
            put(&mut bytes, mark.gap_us);
            before = mark.at;
            let (kind, first, second) = match mark.what {
                Marked::After { thread, told } => (0, thread.into(), told),
                Marked::Tell => (1, 0, 0),
                Marked::Start(thread) => (2, thread.into(), 0),
                Marked::Fork(thread) => (3, thread.into(), 0),
                Marked::Wait(thread) => (4, thread.into(), 0),
                Marked::Exec => (5, 0, 0),
                Marked::End => (6, 0, 0),
            };
            for value in [kind, first, second] {
                put(&mut bytes, value);
            }
        }
        self.packed(MARKS, &bytes)
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
    io::Error::other("has more names, files or marks than a roll can hold")
}

/// How many bytes each has in common with the one before, how many more it has, and these: columns.
fn names_bytes(names: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, names.len() as u64);
    let before = || std::iter::once(&[][..]).chain(names.iter().map(Vec::as_slice));
    let common =
        |(before, name): (&[u8], &Vec<u8>)| before.iter().zip(name).take_while(|(a, b)| a == b).count();
    let commons: Vec<usize> = before().zip(names).map(common).collect();
    commons.iter().for_each(|common| put(&mut bytes, *common as u64));
    names.iter().zip(&commons).for_each(|(name, common)| put(&mut bytes, (name.len() - common) as u64));
    names.iter().zip(&commons).for_each(|(name, common)| bytes.extend_from_slice(&name[*common..]));
    bytes
}

/// Columns: kinds, paths (as names, by the difference to the one before), two numbers.
fn needed_bytes(needed: &[Needed], names: &[Vec<u8>]) -> Vec<u8> {
    let places: HashMap<&[u8], u64> = names.iter().map(Vec::as_slice).zip(0..).collect();
    let place = |path: &[u8]| places.get(path).copied().expect("paths of needed files are names");
    let rows: Vec<(u64, u64, u64, u64)> = needed
        .iter()
        .map(|each| {
            let path = place(&each.path);
            match &each.what {
                What::File { bytes, allocated, seen } => (
                    u64::from(!seen),
                    path,
                    *bytes,
                    allocated.map_or(0, |allocated| allocated.saturating_add(1)),
                ),
                What::Directory => (2, path, 0, 0),
                What::Link(to) => (3, path, place(to), 0),
                What::HardLink(of) => (4, path, place(of), 0),
            }
        })
        .collect();
    let mut bytes = Vec::new();
    put(&mut bytes, rows.len() as u64);
    rows.iter().for_each(|row| put(&mut bytes, row.0));
    let before = std::iter::once(0).chain(rows.iter().map(|row| row.1));
    before.zip(&rows).for_each(|(before, row)| put(&mut bytes, zigzag(before, row.1)));
    rows.iter().for_each(|row| put(&mut bytes, row.2));
    rows.iter().for_each(|row| put(&mut bytes, row.3));
    bytes
}
