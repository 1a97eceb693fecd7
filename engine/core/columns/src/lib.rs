//! `etude-engine columns`: results files as columns (docs/reference/formats.md, "Columns").
//!
//! Files are cut into chunks at line ends. Each worker takes the next chunk, parses it by itself, then waits for its
//! turn: rows, texts and metrics have the order of the lines, whichever worker was quicker.
//!
//! Read `line.rs` for one line, `store.rs` for what becomes of many.

mod chunks;
mod file;
mod line;
mod metrics;
mod rows;
mod scan;
mod store;
mod texts;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use chunks::{Chunk, Source, Span};
use file::{Out, WrongLine};
use line::Lines;
use scan::Scan;
use store::{Parsed, Store, Translation};

/// Bytes of a chunk: what is parsed of them fits into a processor's caches.
const CHUNK: u64 = 1 << 20;
/// No measurement is shorter.
const SHORTEST: u64 = 200;

/// How to read.
pub struct Reading {
    /// Metrics to keep; None for all.
    pub metrics: Option<HashSet<String>>,
    /// Bytes of a chunk; None for as many as are best.
    pub chunk: Option<u64>,
    /// None for one a processor.
    pub threads: Option<usize>,
}

/// Writes the measurements of the files that `list` names into `out`, an empty file.
///
/// What is wrong with a results file is written there; an error is one of `list` or `out`.
pub fn columns(reading: &Reading, list: &mut impl Read, out: File) -> io::Result<()> {
    let sources = sources(list)?;
    match chunks::cut(&sources, reading.chunk.unwrap_or(CHUNK).max(1)) {
        Ok((chunks, bytes)) => {
            let store = Store::new(&sources, Out::new(out, bytes / SHORTEST + 1)?);
            parse_all(reading, &sources, &chunks, &store);
            store.finish(None)
        }
        Err((file, error)) => {
            let (errno, reason) = (error.raw_os_error(), error.to_string());
            let wrong = WrongLine { file, line: 0, at: 0, reason, errno };
            Store::new(&sources, Out::new(out, 0)?).finish(Some(wrong))
        }
    }
}

/// Files as they are listed: `WORKERS PATH` each, ended by a zero byte; `-` for workers that are not known.
fn sources(list: &mut impl Read) -> io::Result<Vec<Source>> {
    let mut text = Vec::new();
    list.read_to_end(&mut text)?;
    let Some(text) = text.strip_suffix(b"\0") else { return Ok(Vec::new()) };
    let source = |entry: &[u8]| {
        let blank = entry.iter().position(|&byte| byte == b' ')?;
        let workers = match &entry[..blank] {
            b"-" => None,
            number => Some(std::str::from_utf8(number).ok()?.parse().ok()?),
        };
        let path = std::ffi::OsString::from_vec(entry[blank + 1..].to_vec()).into();
        Some(Source { path, workers })
    };
    let sources: Option<Vec<_>> = text.split(|&byte| byte == 0).map(source).collect();
    sources.ok_or_else(|| io::Error::other("standard input: expected WORKERS PATH, each with a zero byte"))
}

fn parse_all(reading: &Reading, sources: &[Source], chunks: &[Chunk], store: &Store) {
    let next = AtomicUsize::new(0);
    let many = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut lines = Lines::new(reading.metrics.clone());
        let (mut known, mut buffer, mut bytes) = (Translation::default(), Vec::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(number) else { return };
            let parsed = match chunks::read(chunk, &sources[chunk.file], &mut buffer) {
                Ok(span) => parse(&buffer, &span, &mut lines),
                Err(error) => Parsed::Unreadable(error),
            };
            match store.take(number, chunk, parsed, &lines, &mut known) {
                Some(turn) => store.write(&turn, &lines, &known, &mut bytes),
                None => return,
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..reading.threads.unwrap_or(many).min(chunks.len()) {
            scope.spawn(work);
        }
        work();
    });
}

/// Parses the lines of a span.
fn parse(buffer: &[u8], span: &Span, lines: &mut Lines) -> Parsed {
    lines.clear();
    let text = &buffer[span.begin..span.end];
    let good = std::str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
    let mut at = 0;
    while at < text.len() {
        let line = lines.rows.count as u64 + 1;
        let mut scan = Scan::new(text, at);
        let result = lines.read(&mut scan);
        let result = if scan.at() > good { Err("it is no UTF-8") } else { result };
        if let Err(reason) = result {
            let at = span.offset + (span.begin + at) as u64;
            return Parsed::Wrong { line, at, reason: reason.to_owned() };
        }
        at = scan.at();
    }
    lines.metrics.fill(lines.rows.count);
    Parsed::Rows { torn: span.torn }
}
