//! The compiled form of a script: a roll (docs/roll-format.md). Small, quickly read, and checked: nothing in it is trusted.

mod write;

use std::ffi::CString;
use std::ops::Range;
use std::sync::Arc;

use etude_script::{Needed, What};
use etude_trace::Event;
use etude_trace::parts::{Decoder, Head as ChunkHead, Kind, checked, take, unzigzag};
use serde::{Deserialize, Serialize};

pub use write::Writer;

const MAGIC: &[u8; 8] = b"etuderol";
pub const VERSION: u32 = 1;
const START: usize = 16;
const HEADER: Kind = *b"head";
const NAMES: Kind = *b"name";
const NEEDED: Kind = *b"need";
const MARKS: Kind = *b"mark";
const CALLS: Kind = *b"call";
const FOOTER: Kind = *b"foot";
/// Calls that are decoded at a time: more would cost fewer bytes each, but take longer than most gaps.
pub const CHUNK: usize = 8192;
/// Bytes of all names, marks and needed files before compression; also of all names in full.
const MOST: usize = 1 << 26;
/// Names, and needed files: each costs more in memory than in the file.
const MOST_NAMES: usize = 1 << 21;
/// Bytes of a chunk's columns: 90 for each call, where nothing can be foretold.
const MOST_RAW: usize = 1 << 20;
/// Bytes of a name: the kernel refuses what is longer than 4096, and a program may have asked for that.
const MOST_NAME: usize = 1 << 16;
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
    pub threads: Vec<Stream>,
    pub calls: u64,
    pub original: Original,
    /// The most bytes that a call moves.
    pub largest: u64,
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
    pub calls_s: f64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Whether the durations of all calls are known: only then can it be replayed on the original's schedule.
    pub timed: bool,
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

/// Bytes of what a link says, or of a file's other name.
fn said(what: &What) -> usize {
    match what {
        What::Link(to) | What::HardLink(to) => to.len(),
        What::File { .. } | What::Directory => 0,
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
    /// By thread: where its chunks stand.
    chunks: Vec<Vec<Range<usize>>>,
    /// By thread: how many calls are in them.
    events: Vec<u64>,
}

impl Roll {
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
                    roll.names = names(&unpacked(payload, &mut room)?).ok_or("has names that are nonsense")?
                }
                NEEDED => {
                    let found = needed(&unpacked(payload, &mut room)?, &roll.names);
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
        let (thread, marks) = marks(bytes).ok_or("has marks that are nonsense")?;
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

    /// How many chunks a thread has.
    pub fn chunks(&self, thread: usize) -> usize {
        self.chunks[thread].len()
    }

    /// The calls of a chunk, into `events`.
    pub fn decode(
        &self,
        thread: usize,
        chunk: usize,
        decoder: &mut Decoder,
        events: &mut Vec<Event>,
    ) -> Result<(), String> {
        let payload = &self.bytes[self.chunks[thread][chunk].clone()];
        decoder.decode_alone(payload, events).map(drop)
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// All of them together have so much room, lest a small file be large in memory.
fn unpacked(payload: &[u8], room: &mut usize) -> Result<Vec<u8>, String> {
    let bytes = zstd::bulk::decompress(payload, *room)
        .map_err(|error| format!("cannot be decompressed, or has more than a roll can hold ({error})"))?;
    *room -= bytes.len();
    Ok(bytes)
}

/// So many numbers.
fn column(bytes: &mut &[u8], many: usize) -> Option<Vec<u64>> {
    (0..many).map(|_| take(bytes)).collect()
}

/// How many rows follow: no more than there are bytes.
fn rows(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(take(bytes)?).ok().filter(|many| *many <= bytes.len())
}

fn names(mut bytes: &[u8]) -> Option<Vec<CString>> {
    let many = rows(&mut bytes).filter(|many| *many <= MOST_NAMES)?;
    let (commons, more) = (column(&mut bytes, many)?, column(&mut bytes, many)?);
    let (mut names, mut all): (Vec<CString>, usize) = (Vec::new(), 0);
    for (common, more) in commons.into_iter().zip(more) {
        let before = names.last().map_or(&[][..], |name| name.as_bytes());
        let mut name = before.get(..usize::try_from(common).ok()?)?.to_vec();
        name.extend_from_slice(bytes.split_off(..usize::try_from(more).ok()?)?);
        all += name.len();
        if name.len() > MOST_NAME || all > MOST {
            return None;
        }
        names.push(CString::new(name).ok()?);
    }
    bytes.is_empty().then_some(names)
}

fn needed(mut bytes: &[u8], names: &[CString]) -> Option<Vec<Needed>> {
    let many = rows(&mut bytes).filter(|many| *many <= MOST_NAMES)?;
    let [kinds, paths, first, second] = [(); 4].map(|()| column(&mut bytes, many));
    let (kinds, paths, first, second) = (kinds?, paths?, first?, second?);
    let name = |place: u64| Some(names.get(usize::try_from(place).ok()?)?.as_bytes().into());
    let (mut before, mut found, mut all) = (0, Vec::with_capacity(many), 0);
    for at in 0..many {
        before = unzigzag(before, paths[at]);
        let what = match kinds[at] {
            kind @ (0 | 1) => {
                What::File { bytes: first[at], allocated: second[at].checked_sub(1), seen: kind == 0 }
            }
            2 => What::Directory,
            3 => What::Link(name(first[at])?),
            4 => What::HardLink(name(first[at])?),
            _ => return None,
        };
        let path: Arc<[u8]> = name(before)?;
        all += path.len() + said(&what);
        if all > MOST {
            return None;
        }
        found.push(Needed { path, what });
    }
    bytes.is_empty().then_some(found)
}

fn marks(mut bytes: &[u8]) -> Option<(usize, Vec<Mark>)> {
    let thread = usize::try_from(take(&mut bytes)?).ok()?;
    let many = rows(&mut bytes)?;
    let (mut marks, mut at) = (Vec::new(), 0_u64);
    for _ in 0..many {
        at = at.checked_add(take(&mut bytes)?)?;
        let gap_us = take(&mut bytes)?;
        let (kind, first, second) = (take(&mut bytes)?, take(&mut bytes)?, take(&mut bytes)?);
        let thread = u32::try_from(first).ok()?;
        let what = match kind {
            0 => Marked::After { thread, told: second },
            1 => Marked::Tell,
            2 => Marked::Start(thread),
            3 => Marked::Fork(thread),
            4 => Marked::Wait(thread),
            5 => Marked::Exec,
            6 => Marked::End,
            _ => return None,
        };
        marks.push(Mark { at, gap_us, what });
    }
    bytes.is_empty().then_some((thread, marks))
}
