//! Names: whoever changes what stands at one waits for all that used it.

use etude_calls::{Call, Kind};
use etude_script::Called;

use super::descriptors::creates;
use super::{Order, Point};

impl Order {
    /// Paths: whoever changes what stands at one waits for all that used it.
    pub(super) fn name_space(&mut self, here: Point, process: u32, called: &Called) {
        let name = called.call.name();
        let changes = called.result >= 0 && changes_names(name);
        let creates = called.result >= 0 && creates(called);
        for path in self.paths(process, called) {
            let thing = self.name(&path);
            if changes || creates && !self.files.contains_key(&path) {
                self.makes(here, thing);
            } else {
                self.uses(here, thing);
            }
            let mut below = &path[..];
            while let Some(directory) = parent(below) {
                let thing = self.name(directory);
                self.uses(here, thing);
                below = directory;
            }
        }
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
        const AT_FDCWD: i64 = -100;
        if fd == AT_FDCWD {
            return self.cwd.get(&process).cloned();
        }
        let slot = self.slots.get(&(process, fd))?;
        self.directories.get(&slot.description).cloned()
    }
}

fn is_content(call: Call, index: usize) -> bool {
    matches!((call.name(), index), ("symlink" | "symlinkat", 0))
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
