//! fio's iolog, versions 2 and 3.

use super::{Deed, Fault, Request, Requests, number, possible, within, words};

const VERSIONS: [&[u8]; 2] = [b"fio version 2 iolog", b"fio version 3 iolog"];

pub fn is_one(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').next().is_some_and(|line| VERSIONS.contains(&line.trim_ascii()))
}

/// Version 3 has times in front, µs; version 2 waits of so many µs between its lines.
pub fn read<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Result<Requests, Fault> {
    let timed = lines.next() == Some(VERSIONS[1]);
    let (mut requests, mut at_ns) = (Requests::default(), 0);
    let lane = requests.lane(0);
    for (index, line) in lines.enumerate() {
        let wrong = |what: &str| (index + 2, what.to_owned());
        let mut words = words(line).into_iter();
        if words.len() == 0 {
            continue;
        }
        if timed {
            let us = words.next().and_then(number).and_then(|us| us.checked_mul(1000));
            at_ns = us.ok_or_else(|| wrong("expected a time in µs, a file and an action"))?;
        }
        let file = words.next().and_then(within).ok_or_else(|| wrong("expected the name of a file"))?;
        let action = words.next().ok_or_else(|| wrong("expected an action, such as read"))?;
        let mut value = || words.next().and_then(number);
        let place = (value(), value());
        if action == b"wait" {
            let us =
                place.0.and_then(|us| us.checked_mul(1000)).ok_or_else(|| wrong("expected a time in µs"))?;
            at_ns = at_ns.saturating_add(us);
            continue;
        }
        let (deed, moves) = match action {
            b"add" => {
                requests.file(&file);
                continue;
            }
            b"open" => (Deed::Open, false),
            b"close" => (Deed::Close, false),
            b"read" => (Deed::Read, true),
            b"write" => (Deed::Write, true),
            b"sync" => (Deed::Sync, false),
            b"datasync" => (Deed::DataSync, false),
            b"trim" | b"sync_file_range" => {
                requests.left_out += 1;
                continue;
            }
            _ => return Err(wrong("expected add, open, close, read, write, sync, datasync, trim or wait")),
        };
        let (offset, bytes) = match place {
            _ if !moves => (0, 0),
            (Some(offset), Some(bytes)) if possible(offset, bytes) => (offset, bytes),
            _ => return Err(wrong("expected an offset, and a length of at most 1 GiB, in bytes")),
        };
        let file = requests.file(&file);
        requests.all.push(Request { at_ns, duration_ns: None, lane, file, deed, offset, bytes });
    }
    Ok(requests)
}
