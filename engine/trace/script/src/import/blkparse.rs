//! The text of blkparse: requests to block devices, of which those count that processes queued.

use std::collections::{BTreeSet, HashMap};

use etude_trace::words::seconds_of;

use super::{Deed, Fault, Request, Requests, number, words};

const SECTOR: u64 = 512;
/// Pieces of a device that nothing touches are left out.
const PIECE: u64 = 1 << 20;
/// The kernel makes no larger ones, but discards.
const MOST_SECTORS: u64 = (64 << 20) / SECTOR;

pub fn is_event(line: &[u8]) -> bool {
    device(line).is_some()
}

/// Major and minor number, in front.
fn device(line: &[u8]) -> Option<(u64, u64)> {
    let word = line.split(u8::is_ascii_whitespace).next()?;
    let comma = word.iter().position(|byte| *byte == b',')?;
    let (major, minor) = (&word[..comma], &word[comma + 1..]);
    (!major.is_empty() && !minor.is_empty()).then_some((number(major)?, number(minor)?))
}

pub fn read<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Requests, Fault> {
    let mut requests = Requests::default();
    for (index, line) in lines.enumerate() {
        let Some((major, minor)) = device(line) else { continue };
        let words = words(line);
        let wrong = |what: &str| (index + 1, what.to_owned());
        let [_, _, _, time, pid, action, ..] = words[..] else {
            return Err(wrong("expected device, CPU, number, time, process and action"));
        };
        let at_ns =
            seconds_of(time).ok_or_else(|| wrong("expected a time in seconds, such as 0.000012345"))?;
        let pid = number(pid).ok_or_else(|| wrong("expected the number of a process"))?;
        if action != b"Q" {
            continue;
        }
        let kind = words.get(6).copied().unwrap_or_default();
        let found = transfer(kind, &words[7.min(words.len())..]);
        let (flushes, moved) =
            found.ok_or_else(|| wrong("expected the first sector, + and how many, of at most 64 MiB"))?;
        requests.left_out += u64::from(!flushes && moved.is_none());
        let flush = flushes.then_some((Deed::Sync, 0, 0));
        for (deed, offset, bytes) in flush.into_iter().chain(moved) {
            let file = requests.file(format!("device-{major}-{minor}").as_bytes());
            let lane = requests.lane(pid);
            requests.all.push(Request { at_ns, duration_ns: None, lane, file, deed, offset, bytes });
        }
    }
    close_up(&mut requests.all);
    Ok(requests)
}

/// What is done, at which byte, and to how many.
type Moved = (Deed, u64, u64);

/// Whether a request flushes before anything else, and what it moves; None for a transfer whose place is none.
fn transfer(kind: &[u8], place: &[&[u8]]) -> Option<(bool, Option<Moved>)> {
    let flushes = kind.first() == Some(&b'F');
    let through = kind.iter().skip(1).any(|letter| *letter == b'F');
    let deed = match kind {
        _ if kind.contains(&b'D') => return Some((flushes, None)),
        _ if kind.contains(&b'R') => Deed::Read,
        _ if kind.contains(&b'W') && through => Deed::WriteThrough,
        _ if kind.contains(&b'W') => Deed::Write,
        _ => return Some((flushes, None)),
    };
    match place {
        // An empty write carries a flush: it is nowhere, which is said as 0 or as the highest number there is.
        [_, b"+", sectors, ..] if number(sectors) == Some(0) => Some((flushes, None)),
        [sector, b"+", sectors, ..] => {
            let sectors = number(sectors).filter(|sectors| *sectors <= MOST_SECTORS)?;
            let sector = number(sector).filter(|sector| *sector < 1 << 53)?;
            Some((flushes, Some((deed, sector * SECTOR, sectors * SECTOR))))
        }
        // `FWS [process]`.
        _ => flushes.then_some((true, None)),
    }
}

/// Moves what lies behind pieces that nothing touches to the front: a file is as large as what was touched.
fn close_up(requests: &mut [Request]) {
    let mut touched: HashMap<usize, BTreeSet<u64>> = HashMap::new();
    let moves = |request: &&Request| request.deed != Deed::Sync;
    for request in requests.iter().filter(moves) {
        let end = request.offset + request.bytes;
        touched.entry(request.file).or_default().extend(request.offset / PIECE..end.div_ceil(PIECE));
    }
    let places: HashMap<(usize, u64), u64> = touched
        .into_iter()
        .flat_map(|(file, pieces)| {
            pieces.into_iter().zip(0..).map(move |(piece, place)| ((file, piece), place))
        })
        .collect();
    for request in requests.iter_mut().filter(|request| request.deed != Deed::Sync) {
        request.offset = places[&(request.file, request.offset / PIECE)] * PIECE + request.offset % PIECE;
    }
}
