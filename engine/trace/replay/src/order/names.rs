//! Names: whoever changes what stands at one waits for all that used it.

use etude_calls::{Call, Kind};
use etude_script::Called;

use super::Order;
use super::descriptors::creates;
use super::edges::Edge;
use super::waits::Point;

impl Order {
    /// Paths: whoever changes what stands at one waits for all that used it.
    pub(super) fn name_space(&mut self, here: Point, process: u32, called: &Called) {
        let name = called.call.name();
        let changes = called.result >= 0 && changes_names(name);
        let creates = called.result >= 0 && creates(called);
        self.where_it_stands(here, process, called);
        for path in self.paths(process, called) {
            let thing = self.name(&path);
            if changes || creates && !self.files.contains_key(&path) {
                self.makes(here, thing, Edge::Names);
            } else {
                self.uses(here, thing, Edge::Names);
            }
            let mut below = &path[..];
            while let Some(directory) = parent(below) {
                let thing = self.name(directory);
                self.uses(here, thing, Edge::Names);
                below = directory;
            }
        }
    }

    /// A process goes elsewhere after all names that were meant from where it was.
    fn where_it_stands(&mut self, here: Point, process: u32, called: &Called) {
        let place = self.place(process);
        if matches!(called.call.name(), "chdir" | "fchdir") && called.result >= 0 {
            self.makes(here, place, Edge::Names);
        } else if called.call.name() == "getcwd" || is_relative(called) {
            self.uses(here, place, Edge::Names);
        }
    }

    /// Where a process stands, as a thing.
    pub(super) fn place(&mut self, process: u32) -> usize {
        if let Some(place) = self.places_of.get(&process) {
            return *place;
        }
        let place = self.thing(None);
        self.places_of.insert(process, place);
        place
    }

    fn name(&mut self, path: &[u8]) -> usize {
        if let Some(thing) = self.names.get(path) {
            return *thing;
        }
        let thing = self.thing(None);
        self.names.insert(path.to_vec(), thing);
        thing
    }

    /// All paths of a call, from the root on.
    pub(super) fn paths(&self, process: u32, called: &Called) -> Vec<Vec<u8>> {
        let mut paths = Vec::new();
        for text in &called.texts {
            let index = usize::from(text.argument);
            if called.call.kind(&called.arguments, index) != Kind::Path || is_content(called.call, index) {
                continue;
            }
            let before = index.checked_sub(1).map(|before| called.call.kind(&called.arguments, before));
            let base = match before {
                Some(Kind::DirFd) => self.directory(process, called.arguments[index - 1] as i64),
                _ => self.cwd.get(&process).cloned(),
            };
            if !text.bytes.is_empty() {
                paths.push(joined(base.as_deref().unwrap_or(b""), &text.bytes));
            }
        }
        paths
    }

    pub(super) fn directory(&self, process: u32, fd: i64) -> Option<Vec<u8>> {
        if fd == HERE {
            return self.cwd.get(&process).cloned();
        }
        let slot = self.slots.get(&(process, fd))?;
        self.directories.get(&slot.description).cloned()
    }
}

/// AT_FDCWD.
const HERE: i64 = -100;

fn is_content(call: Call, index: usize) -> bool {
    matches!((call.name(), index), ("symlink" | "symlinkat", 0))
}

/// Whether a call names something from where its process stands.
fn is_relative(called: &Called) -> bool {
    called.texts.iter().any(|text| {
        let index = usize::from(text.argument);
        let beside =
            index.checked_sub(1).filter(|before| called.call.kind(&called.arguments, *before) == Kind::DirFd);
        called.call.kind(&called.arguments, index) == Kind::Path
            && !is_content(called.call, index)
            && !text.bytes.starts_with(b"/")
            && beside.is_none_or(|before| called.arguments[before] as i64 == HERE)
    })
}

fn changes_names(name: &str) -> bool {
    const CHANGING: [&str; 15] = [
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "unlink",
        "unlinkat",
        "symlink",
        "symlinkat",
        "mkdir",
        "mkdirat",
        "rmdir",
        "mknod",
        "mknodat",
        "truncate",
    ];
    CHANGING.contains(&name)
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    (slash > 0).then(|| &path[..slash])
}

/// A path from the root on: `.` and `..` taken out, without a slash in front.
fn joined(base: &[u8], path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let base = if path.first() == Some(&b'/') { &b""[..] } else { base };
    for part in base.split(|byte| *byte == b'/').chain(path.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join(&b'/')
}
