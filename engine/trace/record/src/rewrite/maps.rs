//! What is mapped where in a process.

use std::fs::File;
use std::io::{self, Read};

use crate::rewrite::remote::Pid;

/// A mapping, or the room between two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    pub low: u64,
    pub high: u64,
    pub executable: bool,
    pub writable: bool,
    pub readable: bool,
    /// Device (major, minor) and inode of the file; zeros for anonymous memory.
    pub file: (u32, u32, u64),
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Path, or a name in brackets; empty for anonymous memory.
    pub name: String,
}

/// The mappings of a process, in rising order.
pub fn mappings(pid: Pid) -> io::Result<Vec<Mapping>> {
    let mut file = File::open(format!("/proc/{pid}/maps"))?;
    let (mut bytes, mut length) = (vec![0; 16384], 0);
    // The kernel gives whole lines, at most a page of them at a time. This one is the last, where there is one.
    while !bytes[..length].ends_with(b" 00000000 00:00 0                  [vsyscall]\n") {
        if bytes.len() - length < 8192 {
            bytes.resize(2 * bytes.len(), 0);
        }
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => length += read?,
        }
    }
    let text = String::from_utf8_lossy(&bytes[..length]);
    Ok(text.lines().filter_map(mapping).collect())
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (low, high) = words.next()?.split_once('-')?;
    let rights = words.next()?.as_bytes();
    let offset = words.next()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?;
    let name = words.next().unwrap_or("").trim_start();
    Some(Mapping {
        low: u64::from_str_radix(low, 16).ok()?,
        high: u64::from_str_radix(high, 16).ok()?,
        executable: rights.get(2) == Some(&b'x'),
        writable: rights.get(1) == Some(&b'w'),
        readable: rights.first() == Some(&b'r'),
        file: (
            u32::from_str_radix(major, 16).ok()?,
            u32::from_str_radix(minor, 16).ok()?,
            inode.parse().ok()?,
        ),
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_mappings_of_this_process_name_its_own_file() {
        let own = std::process::id() as Pid;
        let found = mappings(own).unwrap();
        let program = std::fs::metadata("/proc/self/exe").unwrap();
        let code = found.iter().find(|m| m.executable && m.file.2 == program.ino()).unwrap();
        assert!(code.readable && !code.writable && code.name.starts_with('/'));
        assert!(found.windows(2).all(|two| two[0].high <= two[1].low));
        let stack = found.iter().find(|m| m.name == "[stack]").unwrap();
        assert_eq!((stack.writable, stack.file), (true, (0, 0, 0)));
        let whole = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert_eq!(found.len(), whole.lines().count());
    }
}
