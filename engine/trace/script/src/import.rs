//! Scripts of requests that other programs have recorded: fio's iolog, blkparse's text, Darshan's DXT.
//!
//! Each format becomes a list of requests; here it is told which format a text has, and what becomes of the requests.

mod blkparse;
mod dxt;
mod iolog;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::model::{Action, Needed, Script, Step, What};
use crate::ops::builder::{HERE, Rhythm, call, close};

/// The most bytes of one request: no call moves more in a replay.
const MOST_BYTES: u64 = 1 << 30;
const RWF_DSYNC: u64 = 2;
/// No line of a format has more words that mean something.
const MOST_WORDS: usize = 32;

/// An operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Open,
    Close,
    Read,
    Write,
    /// A write that is on the disk when it is done (FUA).
    WriteThrough,
    Sync,
    DataSync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    /// When it began, ns.
    at_ns: u64,
    /// None where it is not known.
    duration_ns: Option<u64>,
    /// Who made it, in the order of their first requests.
    lane: u32,
    /// Its place among the files.
    file: usize,
    deed: Deed,
    offset: u64,
    bytes: u64,
}

/// The requests of a text.
#[derive(Debug, Default)]
struct Requests {
    /// Their paths.
    files: Vec<Vec<u8>>,
    all: Vec<Request>,
    /// Requests that no call stands for.
    left_out: u64,
    by_path: HashMap<Vec<u8>, usize>,
    by_lane: HashMap<u64, u32>,
}

impl Requests {
    fn file(&mut self, path: &[u8]) -> usize {
        if let Some(found) = self.by_path.get(path) {
            return *found;
        }
        let number = self.files.len();
        self.files.push(path.to_vec());
        self.by_path.insert(path.to_vec(), number);
        number
    }

    /// The number of a process or a rank.
    fn lane(&mut self, key: u64) -> u32 {
        let next = self.by_lane.len() as u32;
        *self.by_lane.entry(key).or_insert(next)
    }
}

/// A wrong line, from 1, and what is wrong with it.
type Fault = (usize, String);

/// A script of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub script: Script,
    /// The format of the text.
    pub format: &'static str,
    /// Requests that no call stands for, such as discards.
    pub left_out: u64,
}

/// Makes a script of a text in any of the formats. The error, one line, begins with the number of a line where there is
/// one.
pub fn import(text: &[u8]) -> Result<Imported, String> {
    let lines = || text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let (format, read) = if iolog::is_one(text) {
        ("fio iolog", iolog::read(lines()))
    } else if lines().any(dxt::is_event) {
        ("Darshan DXT", dxt::read(lines()))
    } else if lines().any(blkparse::is_event) {
        ("blkparse", blkparse::read(lines()))
    } else {
        let known = "in no known format: expected fio's iolog (2 or 3), the text of blkparse, or of darshan-dxt-parser";
        return Err(known.into());
    };
    let mut requests = read.map_err(|(line, what)| format!("{line}: {what}"))?;
    requests.all.sort_by_key(|request| request.at_ns);
    Ok(Imported { script: script(&requests, format), format, left_out: requests.left_out })
}

/// One thread for each lane, all of one process. Files that are opened nowhere are open from the beginning.
fn script(requests: &Requests, format: &str) -> Script {
    let mut open: Vec<Option<i64>> = vec![None; requests.files.len()];
    let mut rhythm = Rhythm::default();
    let mut descriptors = Descriptors::default();
    let flags = flags(requests);
    let opens = |file: usize, descriptor: i64| {
        call("openat", &[HERE, 0, flags[file]], &[&requests.files[file]], descriptor)
    };
    let opened = requests.all.iter().filter(|request| request.deed == Deed::Open);
    let opened: HashSet<usize> = opened.map(|request| request.file).collect();
    for (file, open) in open.iter_mut().enumerate().filter(|(file, _)| !opened.contains(file)) {
        let descriptor = descriptors.next();
        *open = Some(descriptor);
        rhythm.push(0, opens(file, descriptor));
    }
    let lanes = requests.by_lane.len().max(1);
    (1..lanes as u32).for_each(|lane| rhythm.push(0, Action::Start(lane)));
    let mut ends_ns = vec![requests.all.first().map_or(0, |first| first.at_ns); lanes];
    for request in &requests.all {
        let (lane, file) = (request.lane, request.file);
        let end_ns = &mut ends_ns[lane as usize];
        rhythm.skip(lane, request.at_ns.saturating_sub(*end_ns));
        *end_ns = request.at_ns.saturating_add(request.duration_ns.unwrap_or(0)).max(*end_ns);
        if request.deed == Deed::Close {
            if let Some(descriptor) = open[file].take() {
                descriptors.free.push(descriptor);
                rhythm.push(lane, close(descriptor as i32));
            }
            continue;
        }
        let descriptor = *open[file].get_or_insert_with(|| {
            let descriptor = descriptors.next();
            rhythm.push(lane, opens(file, descriptor));
            descriptor
        });
        let (descriptor, offset, bytes) = (descriptor as u64, request.offset, request.bytes);
        let mut action = match request.deed {
            Deed::Read => call("pread64", &[descriptor, 0, bytes, offset], &[], bytes as i64),
            Deed::Write => call("pwrite64", &[descriptor, 0, bytes, offset], &[], bytes as i64),
            Deed::WriteThrough => {
                call("pwritev2", &[descriptor, 0, 1, offset, 0, RWF_DSYNC], &[], bytes as i64)
            }
            Deed::Sync => call("fsync", &[descriptor], &[], 0),
            Deed::DataSync => call("fdatasync", &[descriptor], &[], 0),
            Deed::Open | Deed::Close => continue,
        };
        if let Action::Call(called) = &mut action {
            called.duration_ns = request.duration_ns;
        }
        rhythm.push(lane, action);
    }
    let steps: Vec<Step> = rhythm.finish();
    Script {
        notes: vec![format!("imported: {format}")],
        needed: needed(requests),
        steps,
        ..Script::default()
    }
}

/// Descriptors from 3 on; those that were closed are given again.
#[derive(Default)]
struct Descriptors {
    free: Vec<i64>,
    many: i64,
}

impl Descriptors {
    fn next(&mut self) -> i64 {
        self.free.pop().unwrap_or_else(|| {
            self.many += 1;
            self.many + 2
        })
    }
}

/// How each file is opened: O_RDONLY, O_WRONLY or O_RDWR.
fn flags(requests: &Requests) -> Vec<u64> {
    let mut seen = vec![(false, false); requests.files.len()];
    for request in &requests.all {
        seen[request.file].0 |= request.deed == Deed::Read;
        seen[request.file].1 |= matches!(request.deed, Deed::Write | Deed::WriteThrough);
    }
    let flag = |(reads, writes)| if writes { 1 + u64::from(reads) } else { 0 };
    seen.into_iter().map(flag).collect()
}

/// Files as long as what is read of them.
fn needed(requests: &Requests) -> Vec<Needed> {
    let mut lengths = vec![0; requests.files.len()];
    for request in requests.all.iter().filter(|request| request.deed == Deed::Read) {
        lengths[request.file] = (request.offset + request.bytes).max(lengths[request.file]);
    }
    let file = |bytes| What::File { bytes, allocated: None, seen: false };
    let paths = requests.files.iter().map(|path| path.as_slice().into());
    paths.zip(lengths).map(|(path, bytes)| Needed { path, what: file(bytes) }).collect()
}

/// A path within the replay's root; None where nothing of it is left, or it is longer than a path may be.
fn within(path: &[u8]) -> Option<Vec<u8>> {
    if path.len() > libc::PATH_MAX as usize {
        return None;
    }
    let parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"." | b".."));
    let path = parts.collect::<Vec<_>>().join(&b'/');
    (!path.is_empty() && !path.contains(&0)).then_some(path)
}

fn number(word: &[u8]) -> Option<u64> {
    if !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Whether a request can be made: its end is a place in a file.
fn possible(offset: u64, bytes: u64) -> bool {
    bytes <= MOST_BYTES && offset < (1 << 63) - MOST_BYTES
}

/// Those that a line of any format here has; a line may be as long as its file.
fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(MOST_WORDS).collect()
}
