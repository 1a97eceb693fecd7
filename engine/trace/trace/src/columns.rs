//! A trace as columns for Python (docs/reference/trace-format.md, "Columns"), in the container of results' columns.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use etude_calls::Call;
use serde::Serialize;

use crate::event::Event;
use crate::files::{FileColumns, Files};
use crate::frame::Error;
use crate::meta::{Footer, Header, Meta};
use crate::order::Failed;
use crate::reader::{Ending, Frame, Reader, chunks, notes};
use crate::window::Window;

const MAGIC: &[u8; 8] = b"etudeevc";
const VERSION: u32 = 2;
/// What each column begins at a multiple of.
const PAGE: u64 = 4096;

/// The columns of events, and bytes of a value.
const COLUMNS: [(&str, &str, u64); 14] = [
    ("start_ns", "i8", 8),
    ("duration_ns", "i8", 8),
    ("result", "i8", 8),
    ("argument0", "i8", 8),
    ("argument1", "i8", 8),
    ("argument2", "i8", 8),
    ("argument3", "i8", 8),
    ("argument4", "i8", 8),
    ("argument5", "i8", 8),
    ("thread", "u4", 4),
    ("text0", "u4", 4),
    ("text1", "u4", 4),
    ("process", "u4", 4),
    ("call", "u2", 2),
];

/// The last part of the file.
#[derive(Serialize)]
struct Index {
    events: u64,
    columns: Vec<Place>,
    /// Names of calls by their codes; that of 0 is empty.
    calls: Vec<&'static str>,
    /// How many texts; `texts_at` has one number more.
    texts: usize,
    /// How many names of files; `names_at` has one number more.
    names: usize,
    header: Header,
    meta: Vec<Meta>,
    footer: Option<Footer>,
    /// Where the trace is cut short; null where it is whole.
    cut_short_at: Option<u64>,
    /// What is wrong with the trace, one line; the events before that are there.
    wrong: Option<String>,
}

#[derive(Serialize)]
struct Place {
    name: &'static str,
    /// As numpy calls it.
    kind: &'static str,
    at: u64,
}

/// Writes the events of a trace as columns into `out`, an empty file; `replayed`: of the trace of a replay the replayed
/// part. Damage after the header is told in the index, not as an error.
pub fn columns(path: &Path, out: File, replayed: bool) -> Result<(), Failed> {
    let heads = chunks(path)?;
    let mut reader = Reader::open(path)?;
    if !out.metadata()?.is_file() {
        return Err(io::Error::other("standard output is no file: redirect it into one").into());
    }
    out.set_len(0)?;
    let notes = notes(path)?;
    let processes = processes(&notes);
    let window = if replayed { Window::of(path, &processes)? } else { None };
    let process_of = |thread: u32| processes.get(&thread).copied().unwrap_or(0);
    let since = |at_ns: u64| window.as_ref().map_or(at_ns, |window| window.since(at_ns));
    let noted = |note| match &window {
        Some(window) => window.meta(note),
        None => Some(note),
    };
    let mut earliest: HashMap<u32, u64> = HashMap::new();
    for head in &heads {
        let first = earliest.entry(process_of(head.thread)).or_insert(u64::MAX);
        *first = (*first).min(since(head.earliest_ns));
    }
    let mut files = Files::new(&notes.into_iter().filter_map(noted).collect::<Vec<_>>(), &earliest);
    // Of each chunk: when the earliest event of those after it begins.
    let later = heads.iter().rev().scan(u64::MAX, |later, head| {
        let before = *later;
        *later = before.min(since(head.earliest_ns));
        Some(before)
    });
    let mut later: Vec<u64> = later.collect();
    let mut store = Store::new(out, heads.iter().map(|head| u64::from(head.events)).sum());
    let (mut meta, mut footer) = (Vec::new(), None);
    let wrong = loop {
        match reader.next() {
            Ok(Some(Frame::Meta(one))) => meta.extend(noted(one)),
            Ok(Some(Frame::Footer(one))) => footer = Some(one),
            Ok(Some(Frame::Events { thread, events })) => {
                let within = window.as_ref().map(|window| window.events(thread, events));
                let events = within.as_deref().unwrap_or(events);
                files.add(store.rows as usize, process_of(thread), events);
                files.follow(later.pop().unwrap_or(u64::MAX));
                store.add(thread, process_of(thread), events)?;
            }
            Ok(None) => break None,
            Err(error) => break Some(Error::to_string(&error)),
        }
    };
    let cut_short_at = match reader.ending() {
        Some(Ending::CutShort { at }) => Some(at),
        _ => None,
    };
    let mut header = reader.header().clone();
    if let Some(window) = &window {
        header = window.header(header);
        footer = footer.map(|footer| window.footer(footer, &meta));
    }
    let files = files.finish(store.rows as usize);
    store.finish(&files, |events, columns, texts| {
        let calls = std::iter::once("").chain(Call::all().map(Call::name)).collect();
        let names = files.names.len();
        Index { events, columns, calls, texts, names, header, meta, footer, cut_short_at, wrong }
    })?;
    Ok(())
}

/// The process of each thread.
fn processes(notes: &[Meta]) -> HashMap<u32, u32> {
    let threads = notes.iter().filter_map(|note| match note {
        Meta::Thread { thread, process, .. } => Some((*thread, *process)),
        _ => None,
    });
    threads.collect()
}

struct Store {
    out: File,
    /// Where each column begins.
    places: [u64; COLUMNS.len()],
    /// Where they end.
    end: u64,
    room: u64,
    rows: u64,
    bytes: [Vec<u8>; COLUMNS.len()],
    /// Codes of texts, by their bytes, and by where they stand in memory, which is quicker.
    texts: HashMap<Arc<[u8]>, u32>,
    known: HashMap<*const u8, u32>,
    /// So that no two texts stand in one place.
    all: Vec<Arc<[u8]>>,
}

impl Store {
    fn new(out: File, room: u64) -> Store {
        let mut end = PAGE;
        let places = COLUMNS.map(|(_, _, width)| {
            let place = end;
            end += (room * width).next_multiple_of(PAGE);
            place
        });
        let (texts, known) = (HashMap::new(), HashMap::new());
        Store { out, places, end, room, rows: 0, bytes: Default::default(), texts, known, all: Vec::new() }
    }

    fn add(&mut self, thread: u32, process: u32, events: &[Event]) -> io::Result<()> {
        assert!(self.rows + events.len() as u64 <= self.room, "chunks say how many events they have");
        self.bytes.iter_mut().for_each(Vec::clear);
        for event in events {
            let [first, second] =
                [0, 1].map(|at| event.texts.get(at).map_or(0, |text| self.code(&text.bytes)));
            let longs = [event.start_ns, event.duration_ns, event.result as u64];
            for (column, value) in longs.iter().chain(&event.arguments).enumerate() {
                self.bytes[column].extend_from_slice(&value.to_ne_bytes());
            }
            for (column, value) in [thread, first, second, process].iter().enumerate() {
                self.bytes[9 + column].extend_from_slice(&value.to_ne_bytes());
            }
            self.bytes[13].extend_from_slice(&event.call.code().to_ne_bytes());
        }
        for ((bytes, place), (_, _, width)) in self.bytes.iter().zip(self.places).zip(COLUMNS) {
            // What is not written is 0, and takes no room.
            if bytes.iter().any(|byte| *byte != 0) {
                self.out.write_all_at(bytes, place + self.rows * width)?;
            }
        }
        self.rows += events.len() as u64;
        Ok(())
    }

    /// A text's code: 0 is none, n the n-th text.
    fn code(&mut self, text: &Arc<[u8]>) -> u32 {
        // All empty texts may stand in one place.
        let known = if text.is_empty() { None } else { self.known.get(&text.as_ptr()) };
        if let Some(code) = known {
            return *code;
        }
        let next = self.texts.len() as u32 + 1;
        let code = *self.texts.entry(text.clone()).or_insert(next);
        if !text.is_empty() {
            self.known.insert(text.as_ptr(), code);
            self.all.push(text.clone());
        }
        code
    }

    fn finish(
        self,
        files: &FileColumns,
        index: impl FnOnce(u64, Vec<Place>, usize) -> Index,
    ) -> io::Result<()> {
        let mut texts: Vec<_> = self.texts.iter().collect();
        texts.sort_unstable_by_key(|(_, code)| **code);
        let (texts_at, bytes) = joined(texts.iter().map(|(text, _)| &text[..]));
        let (names_at, names) = joined(files.names.iter().map(Vec::as_slice));
        let places = COLUMNS.iter().zip(self.places).map(|((name, kind, _), at)| Place { name, kind, at });
        let mut places: Vec<Place> = places.collect();
        let mut end = self.end;
        for (name, kind, bytes) in [
            ("texts_at", "u8", texts_at),
            ("texts", "u1", bytes),
            ("file", "u4", files.file.iter().flat_map(|value| value.to_ne_bytes()).collect()),
            ("source", "u4", files.source.iter().flat_map(|value| value.to_ne_bytes()).collect()),
            ("opening", "u4", files.opening.iter().flat_map(|value| value.to_ne_bytes()).collect()),
            ("place", "i8", files.place.iter().flat_map(|value| value.to_ne_bytes()).collect()),
            ("appends", "u1", files.appends.clone()),
            ("names_at", "u8", names_at),
            ("names", "u1", names),
        ] {
            self.out.write_all_at(&bytes, end)?;
            places.push(Place { name, kind, at: end });
            end = (end + bytes.len() as u64).next_multiple_of(PAGE);
        }
        let index = index(self.rows, places, texts.len());
        let text = serde_json::to_vec(&index)?;
        self.out.write_all_at(&text, end)?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_ne_bytes());
        head.extend_from_slice(&0_u32.to_ne_bytes());
        head.extend_from_slice(&end.to_ne_bytes());
        head.extend_from_slice(&(text.len() as u64).to_ne_bytes());
        self.out.write_all_at(&head, 0)
    }
}

/// Where each of these ends, after a 0, as bytes; and all of them, one after the other.
fn joined<'a>(all: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<u8>) {
    let (mut ends, mut bytes) = (0_u64.to_ne_bytes().to_vec(), Vec::new());
    for each in all {
        bytes.extend_from_slice(each);
        ends.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
    }
    (ends, bytes)
}
