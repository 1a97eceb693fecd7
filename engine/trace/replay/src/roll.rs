//! The compiled form of a script: a roll (docs/reference/roll-format.md). Small, quickly read, and checked: nothing in it is trusted.
//!
//! The tables beside calls are in `tables.rs`; `foretold.rs` foretells calls, so that little is left to be said.

mod foretold;
mod tables;
#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use etude_script::{Dropped, Needed, What};
use etude_trace::parts::{Decoder, Encoder, Head as ChunkHead, Kind, checked, head};
use etude_trace::{Event, Scheduling, ordinary};
use serde::{Deserialize, Serialize};

pub use foretold::Rhythm;
use foretold::{Foretold, Sizes};

const MAGIC: &[u8; 8] = b"etuderol";
pub const VERSION: u32 = 2;
const START: usize = 16;
const HEADER: Kind = *b"head";
const NAMES: Kind = *b"name";
const NEEDED: Kind = *b"need";
const MARKS: Kind = *b"mark";
const TIMES: Kind = *b"time";
const CALLS: Kind = *b"call";
const FOOTER: Kind = *b"foot";
/// Calls that are decoded at a time: more would cost fewer bytes each, but take longer than most gaps.
pub const CHUNK: usize = 8192;
/// Bytes of all names, marks and needed files before compression; also of all names in full.
const MOST: usize = 1 << 26;
/// Names, and needed files: each costs more in memory than in the file.
const MOST_NAMES: usize = 1 << 21;
/// Bytes of a name: the kernel refuses what is longer than 4096, and a program may have asked for that.
const MOST_NAME: usize = 1 << 16;
/// Bytes of a chunk's columns: 90 for each call, where nothing can be foretold.
const MOST_RAW: usize = 1 << 20;
/// Threads of a roll.
pub const MOST_THREADS: usize = 1 << 14;

/// What is known of a roll as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// Always `etude-roll`.
    pub format: String,
    pub version: u32,
    /// The script's notes.
    pub notes: Vec<String>,
    /// The class in which the program ran, where that is not the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    pub threads: Vec<Stream>,
    /// Threads that accept connections of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepting: Vec<u32>,
    pub calls: u64,
    pub original: Original,
    /// The most bytes that a call moves.
    pub largest: u64,
    /// Calls of the recording that are not in the script.
    pub dropped: Vec<Dropped>,
}

/// One thread of the original.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stream {
    /// The number of the first thread of its process.
    pub process: u32,
    pub calls: u64,
}

/// How long things took when they were recorded, s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Original {
    pub run_s: f64,
    pub read_s: f64,
    pub write_s: f64,
    /// Within calls that hand requests over, wait for them, or both.
    #[serde(skip_serializing_if = "is_none")]
    pub requests_s: f64,
    pub calls_s: f64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Whether the durations of all calls are known: only then can it be replayed on the original's schedule.
    pub timed: bool,
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Something that a thread does beside calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How many of the thread's calls come before it.
    pub at: u64,
    /// Computing before it, since the call or the mark before, µs.
    pub gap_us: u64,
    pub what: Marked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// Waits until another thread has told so many times.
    After {
        thread: u32,
        told: u64,
    },
    /// Tells others that it has come so far.
    Tell,
    Start(u32),
    Fork(u32),
    Wait(u32),
    Exec,
    /// The last of each thread.
    End,
}

/// The calls of a thread, chunk by chunk.
pub struct Reading {
    thread: usize,
    next: usize,
    /// Made at the first chunk: what a process has when it forks costs time at each fork.
    decoder: Option<Decoder>,
    so_far: Foretold,
}

impl Reading {
    pub fn new(thread: usize) -> Reading {
        Reading { thread, next: 0, decoder: None, so_far: Foretold::default() }
    }

    /// Whether there are more.
    pub fn more(&self, roll: &Roll) -> bool {
        self.next < roll.chunks[self.thread].len()
    }

    /// The calls of the next chunk, into `events`: times in ns since the thread began, of what it computes and calls.
    pub fn read(&mut self, roll: &Roll, events: &mut Vec<Event>) -> Result<(), String> {
        let payload = &roll.bytes[roll.chunks[self.thread][self.next].clone()];
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(Decoder::new().map_err(|error| error.to_string())?),
        };
        decoder.decode_alone(payload, events)?;
        events.iter_mut().for_each(|event| self.so_far.read(event, &roll.rhythm, &roll.sizes));
        self.next += 1;
        Ok(())
    }
}

/// A roll that was read, as it is played: chunks are decoded when their time comes.
#[derive(Debug)]
pub struct Roll {
    bytes: Vec<u8>,
    pub head: Head,
    pub names: Vec<CString>,
    pub needed: Vec<Needed>,
    /// By thread.
    pub marks: Vec<Vec<Mark>>,
    rhythm: Rhythm,
    sizes: Sizes,
    /// By thread: where its chunks stand.
    chunks: Vec<Vec<Range<usize>>>,
    /// By thread: how many calls are in them.
    events: Vec<u64>,
}

impl Roll {
    /// Of a file; the error says what is wrong with it, to stand behind its name.
    pub fn open(path: &Path) -> Result<Roll, String> {
        ordinary::read(path).map_err(|error| error.to_string()).and_then(Roll::read)
    }

    /// Of the bytes of a file; the error says what is wrong with it, to stand behind its name.
    pub fn read(bytes: Vec<u8>) -> Result<Roll, String> {
        if bytes.is_empty() {
            return Err("is empty".into());
        }
        if bytes.len() < START || bytes[..8] != *MAGIC {
            return Err(
                "is no roll: it begins with something else; etude compile makes one of a script".into()
            );
        }
        let version = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        if version != VERSION {
            return Err(format!(
                "is a roll of version {version}; this Étude plays version {VERSION}: compile it anew"
            ));
        }
        let mut roll = Roll {
            head: Head::default(),
            names: Vec::new(),
            needed: Vec::new(),
            marks: Vec::new(),
            rhythm: Rhythm::default(),
            sizes: Sizes::default(),
            chunks: Vec::new(),
            events: Vec::new(),
            bytes: Vec::new(),
        };
        let (mut rest, mut ended, mut room) = (&bytes[START..], false, MOST);
        while !rest.is_empty() {
            if ended {
                return Err("has something behind its end".into());
            }
            let (kind, payload, behind) = checked(rest)?;
            let at = bytes.len() - behind.len() - payload.len();
            rest = behind;
            match kind {
                HEADER => roll.header(payload)?,
                FOOTER => ended = true,
                CALLS => roll.chunk(payload, at)?,
                NAMES => {
                    roll.names =
                        tables::names(&unpacked(payload, &mut room)?).ok_or("has names that are nonsense")?
                }
                TIMES => {
                    let found = Rhythm::from_bytes(&unpacked(payload, &mut room)?);
                    roll.rhythm = found.ok_or("has times that are nonsense")?;
                }
                NEEDED => {
                    let found = tables::needed(&unpacked(payload, &mut room)?, &roll.names);
                    roll.needed = found.ok_or("has needed files that are nonsense")?;
                }
                MARKS => roll.add_marks(&unpacked(payload, &mut room)?)?,
                _ => return Err("has a part that this version does not know".into()),
            }
        }
        if !ended {
            return Err("is cut short".into());
        }
        roll.bytes = bytes;
        roll.sizes = Sizes::of(&roll.needed, roll.names.iter().map(|name| name.as_bytes()));
        roll.consistent()?;
        Ok(roll)
    }

    fn header(&mut self, payload: &[u8]) -> Result<(), String> {
        self.head = serde_json::from_slice(payload).map_err(|error| format!("has a wrong head: {error}"))?;
        let many = self.head.threads.len();
        if many == 0 || many > MOST_THREADS {
            return Err(format!("has {many} threads; expected 1 to {MOST_THREADS}"));
        }
        self.marks = vec![Vec::new(); many];
        self.chunks = vec![Vec::new(); many];
        self.events = vec![0; many];
        Ok(())
    }

    fn chunk(&mut self, payload: &[u8], at: usize) -> Result<(), String> {
        let head = ChunkHead::from_bytes(payload).ok_or("has a chunk that begins with nonsense")?;
        let chunks =
            self.chunks.get_mut(head.thread as usize).ok_or("has calls of a thread that it does not have")?;
        if head.events as usize > CHUNK || head.raw_bytes() > MOST_RAW {
            return Err("has a chunk with more calls than a roll's".into());
        }
        chunks.push(at..at + payload.len());
        self.events[head.thread as usize] += u64::from(head.events);
        Ok(())
    }

    fn add_marks(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (thread, marks) = tables::marks(bytes).ok_or("has marks that are nonsense")?;
        let place = self.marks.get_mut(thread).ok_or("has marks of a thread that it does not have")?;
        *place = marks;
        Ok(())
    }

    /// Whether threads are started once, by others, and end; and whether it says rightly how many calls it has.
    fn consistent(&self) -> Result<(), String> {
        let many = self.head.threads.len();
        if many == 0 {
            return Err("has no head".into());
        }
        let threads = &self.head.threads;
        if self.marks.iter().zip(threads).any(|(marks, of)| marks.iter().any(|mark| mark.at > of.calls))
            || self.events.iter().zip(threads).any(|(events, of)| *events != of.calls)
            || self.head.calls != self.events.iter().sum::<u64>()
        {
            return Err("has other calls than it says".into());
        }
        let mut started = vec![false; many];
        started[0] = true;
        let mut processes = vec![0; many];
        for (thread, marks) in self.marks.iter().enumerate() {
            if marks.last().map(|mark| mark.what) != Some(Marked::End) {
                return Err(format!("has no end of thread {thread}"));
            }
            for mark in marks {
                if let Marked::Fork(other) = mark.what
                    && let Some(process) = processes.get_mut(other as usize)
                {
                    *process = other;
                }
                if let Marked::Start(other) = mark.what
                    && let Some(process) = processes.get_mut(other as usize)
                {
                    *process = threads[thread].process;
                }
                if let Marked::Start(other) | Marked::Fork(other) = mark.what
                    && std::mem::replace(
                        started.get_mut(other as usize).ok_or("starts a thread that it does not have")?,
                        true,
                    )
                {
                    return Err(format!("starts thread {other} twice"));
                }
                if let Marked::After { thread: other, .. } | Marked::Wait(other) = mark.what
                    && other as usize >= many
                {
                    return Err("waits for a thread that it does not have".into());
                }
            }
        }
        if processes.iter().zip(threads).any(|(process, of)| *process != of.process) {
            return Err("has threads in other processes than it says".into());
        }
        match started.iter().position(|started| !started) {
            Some(thread) => Err(format!("does not start thread {thread}")),
            None => Ok(()),
        }
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

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

/// All of them together have so much room, lest a small file be large in memory.
fn unpacked(payload: &[u8], room: &mut usize) -> Result<Vec<u8>, String> {
    let bytes = zstd::bulk::decompress(payload, *room)
        .map_err(|error| format!("cannot be decompressed, or has more than a roll can hold ({error})"))?;
    *room -= bytes.len();
    Ok(bytes)
}

/// Bytes of what a link says, or of a file's other name.
fn said(what: &What) -> usize {
    match what {
        What::Link(to) | What::HardLink(to) => to.len(),
        What::File { .. } | What::Directory => 0,
    }
}
