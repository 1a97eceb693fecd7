//! What is mapped where in a process.

use std::io;

use crate::rewrite::remote::Pid;

/// A mapping, or the room between two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub low: u64,
    pub high: u64,
    pub executable: bool,
    pub writable: bool,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Path, or a name in brackets; empty for anonymous memory.
    pub name: String,
}

/// The mappings of a process, in rising order.
pub fn mappings(pid: Pid) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(text.lines().filter_map(mapping).collect())
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (low, high) = words.next()?.split_once('-')?;
    let rights = words.next()?.as_bytes();
    let offset = words.next()?;
    let name = words.nth(2).unwrap_or("").trim_start();
    Some(Mapping {
        low: u64::from_str_radix(low, 16).ok()?,
        high: u64::from_str_radix(high, 16).ok()?,
        executable: rights.get(2) == Some(&b'x'),
        writable: rights.get(1) == Some(&b'w'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        name: name.to_owned(),
    })
}

const PAGE: u64 = 4096;
/// Below the reach of a 32-bit jump, so that the whole piece of code reaches it.
const NEAR: u64 = 1 << 30;
/// Room is left below a stack that grows, and above a heap.
const APART: u64 = 1 << 16;
/// Nothing is mapped below by an ordinary user.
const LOWEST: u64 = 1 << 16;

/// Free room of `size` bytes, below `code` if there is any there (a heap grows above), near enough for a jump.
pub fn room(taken: &[Mapping], code: &Mapping, size: u64) -> Option<u64> {
    let mut tops: Vec<(u64, u64)> = Vec::new(); // from, to
    let mut end = LOWEST;
    for each in taken {
        if each.low > end {
            tops.push((end, each.low));
        }
        end = end.max(each.high);
    }
    let fits = |&(from, to): &(u64, u64)| (to - from >= size + 2 * APART).then_some((from, to));
    let below = tops
        .iter()
        .rev()
        .filter(|(_, to)| *to <= code.low)
        .find_map(fits)
        .map(|(_, to)| (to - size) & !(PAGE - 1));
    let above =
        tops.iter().filter(|(from, _)| *from >= code.high).find_map(fits).map(|(from, _)| from + APART);
    [below, above]
        .into_iter()
        .flatten()
        .find(|at| at.abs_diff(code.low) < NEAR && at.abs_diff(code.high) < NEAR)
}
