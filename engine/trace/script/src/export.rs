//! A script as fio's iolog, version 3: its transfers, by times and places.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use crate::model::{Action, Script};
use crate::times::{times, turns};
use crate::world::{NodeId, World};

/// The longest name that fio reads.
const MOST_NAME: usize = 255;

/// The part of a script that an iolog can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    pub files: u64,
    pub reads: u64,
    pub writes: u64,
    /// fsync and fdatasync.
    pub syncs: u64,
    /// Calls that fio has nothing for, or on files whose names it cannot read.
    pub left_out: u64,
}

/// One line.
struct Entry {
    at_us: u64,
    node: NodeId,
    action: &'static str,
    offset: u64,
    bytes: u64,
}

/// Writes what fio can play of a script. A file is opened before its first transfer and closed behind its last.
pub fn iolog(script: &Script, out: &mut (impl Write + ?Sized)) -> io::Result<Exported> {
    let (mut world, mut done) = (World::new(script), Exported::default());
    let (mut entries, mut names) = (Vec::new(), HashMap::new());
    for (step, at_ns) in script.steps.iter().zip(turns(&times(script))) {
        let effect = world.step(step);
        let Action::Call(called) = &step.action else { continue };
        let before = entries.len();
        let mut entry = |node, action, offset, bytes| {
            let name = names.entry(node).or_insert_with(|| readable(world.names.name(node)));
            if name.is_some() {
                entries.push(Entry { at_us: at_ns / 1000, node, action, offset, bytes });
            }
        };
        for moved in effect.moved.iter().filter(|moved| moved.bytes > 0) {
            entry(moved.node, if moved.writes { "write" } else { "read" }, moved.offset, moved.bytes);
        }
        match (called.call.name(), effect.nodes.first()) {
            ("fsync", Some(node)) if !called.failed() => entry(*node, "sync", 0, 0),
            ("fdatasync", Some(node)) if !called.failed() => entry(*node, "datasync", 0, 0),
            _ => {}
        }
        done.left_out += u64::from(entries.len() == before);
    }
    let last: HashMap<NodeId, usize> =
        entries.iter().enumerate().map(|(at, entry)| (entry.node, at)).collect();
    done.files = last.len() as u64;
    writeln!(out, "fio version 3 iolog")?;
    let mut open = HashSet::new();
    for (at, Entry { at_us, node, action, offset, bytes }) in entries.iter().enumerate() {
        let name = names[node].as_deref().unwrap_or_default();
        let mut line = |rest: &str| {
            write!(out, "{at_us} ")?;
            out.write_all(name)?;
            writeln!(out, " {rest}")
        };
        if open.insert(*node) {
            line("add")?;
            line("open")?;
        }
        line(&format!("{action} {offset} {bytes}"))?;
        if last[node] == at {
            line("close")?;
        }
        let count = match *action {
            "read" => &mut done.reads,
            "write" => &mut done.writes,
            _ => &mut done.syncs,
        };
        *count += 1;
    }
    Ok(done)
}

/// A name, where fio can read it: without blanks, and not too long.
fn readable(name: Option<&[u8]>) -> Option<Vec<u8>> {
    let fits = |name: &&[u8]| {
        (1..=MOST_NAME).contains(&name.len()) && !name.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
    };
    name.filter(fits).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn exported(text: &str) -> (String, Exported) {
        let script = parse("s", format!("etude script 1\n{text}").as_bytes()).unwrap().script;
        let mut out = Vec::new();
        let done = iolog(&script, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), done)
    }

    #[test]
    fn transfers_stand_at_their_places_and_times() {
        let text = "file \"in\" 8192\nopenat(AT_FDCWD, \"in\", O_RDONLY) = 3 <0.000001000>\n\
                    openat(AT_FDCWD, \"d/out\", O_WRONLY|O_CREAT, 0644) = 4 <0.000001000>\nread(3, 4096) = 4096 <0.000008000>\n\
                    compute(0.001)\nread(3, 8192) = 4096\nread(3, 8192) = 0\npwrite64(4, 512, 100) = 512\nfdatasync(4) = 0\n\
                    copy_file_range(3, [0], 4, NULL, 64, 0) = 64\nfsync(3) = -1 EINVAL\n";
        let (log, done) = exported(text);
        let expected = "fio version 3 iolog\n2 in add\n2 in open\n2 in read 0 4096\n1010 in read 4096 4096\n1010 d/out add\n\
                        1010 d/out open\n1010 d/out write 100 512\n1010 d/out datasync 0 0\n1010 in read 0 64\n1010 in close\n\
                        1010 d/out write 0 64\n1010 d/out close\n";
        assert_eq!(log, expected);
        assert_eq!(done, Exported { files: 2, reads: 3, writes: 2, syncs: 1, left_out: 4 });
    }

    #[test]
    fn names_that_fio_cannot_read_are_left_out() {
        let text = "openat(AT_FDCWD, \"a b\", O_RDWR|O_CREAT, 0644) = 3\nwrite(3, 10) = 10\n\
                    openat(AT_FDCWD, \".\", O_TMPFILE|O_RDWR, 0600) = 4\nwrite(4, 10) = 10\n";
        assert_eq!(
            exported(text),
            ("fio version 3 iolog\n".into(), Exported { left_out: 4, ..Exported::default() })
        );
    }
}
