//! The text of darshan-dxt-parser: transfers of each rank, with their beginnings and ends.

use etude_trace::words::seconds_of;

use super::{Deed, Fault, Request, Requests, number, possible, within, words};

const FILE: &[u8] = b"file_name: ";
/// Modules whose lines are a program's own calls; calls of MPI-IO end in these.
const OWN: [&[u8]; 2] = [b"X_POSIX", b"X_STDIO"];
const MPI: &[u8] = b"X_MPIIO";

pub fn is_event(line: &[u8]) -> bool {
    OWN.iter().chain([&MPI]).any(|module| line.starts_with(module))
}

pub fn read<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Requests, Fault> {
    let (mut requests, mut path) = (Requests::default(), None);
    for (index, line) in lines.enumerate() {
        if line.starts_with(b"# DXT,") {
            let name = line.windows(FILE.len()).position(|part| part == FILE);
            // Streams without a file, such as <STDOUT>, have no name.
            let file = |name: &[u8]| if name.starts_with(b"<") { None } else { within(name) };
            path = name.map_or(path, |at| Some(file(&line[at + FILE.len()..])));
        } else if is_event(line) {
            let path =
                path.as_ref().ok_or((index + 1, "expected a line with file_name: before".to_owned()))?;
            let request = event(line).ok_or_else(|| {
                let what = "expected module, rank, read or write, segment, offset, length, start and end";
                (index + 1, what.to_owned())
            })?;
            match path {
                Some(path) if !line.starts_with(MPI) => {
                    let (file, lane) = (requests.file(path), requests.lane(request.0));
                    requests.all.push(Request { file, lane, ..request.1 });
                }
                _ => requests.left_out += 1,
            }
        }
    }
    Ok(requests)
}

/// Its rank, and all but its file and lane.
fn event(line: &[u8]) -> Option<(u64, Request)> {
    let words = words(line);
    let [_, rank, deed, segment, offset, bytes, start, end, ..] = words[..] else { return None };
    number(segment)?;
    let deed = match deed {
        b"read" => Deed::Read,
        b"write" => Deed::Write,
        _ => return None,
    };
    let (offset, bytes) = (number(offset)?, number(bytes)?);
    let (at_ns, end_ns) = (seconds_of(start)?, seconds_of(end)?);
    let duration_ns = Some(end_ns.saturating_sub(at_ns));
    possible(offset, bytes).then_some(())?;
    Some((number(rank)?, Request { at_ns, duration_ns, lane: 0, file: 0, deed, offset, bytes }))
}
