//! What has to be there before the first call.

use std::collections::{BTreeMap, HashMap};

use etude_trace::Found;

use crate::from_trace::calls::LONGEST;
use crate::from_trace::report::Report;
use crate::from_trace::tree::{File, Kind, Node, Origin, Path, Tree, parent};
use crate::model::{Needed, What};
use crate::names::Names;

/// Everything that was there, as far as the trace and the recorder's list tell. In order of paths: directories stand
/// before what is in them.
pub(crate) fn needed(tree: &Tree, names: &mut Names, report: &mut Report) -> Vec<Needed> {
    let mut all = All { needed: BTreeMap::new(), names, blind: 0, perhaps: 0, least: 0, long: 0 };
    let now: HashMap<Node, &Path> = tree.now().map(|(path, node)| (node, path)).collect();
    let inner: std::collections::HashSet<&[u8]> = tree.now().filter_map(|(path, _)| parent(path)).collect();
    for (node, file) in tree.files.iter().enumerate() {
        let found = now.get(&node).and_then(|path| tree.found.get(*path));
        let holds = file.listed || inner.contains(&*file.first);
        match file.origin {
            Origin::Before => all.file(tree, file, found, holds),
            Origin::Perhaps => all.perhaps += 1,
            Origin::Created => {}
        }
        if file.listed && file.origin == Origin::Before {
            all.children(tree, file);
        }
    }
    all.hard_links(tree);
    all.directories(tree);
    all.tell(report);
    all.needed.into_iter().map(|(path, what)| Needed { path, what }).collect()
}

struct All<'a, 'b> {
    needed: BTreeMap<Path, What>,
    names: &'a mut Names<'b>,
    /// Links of which nobody knows where they lead.
    blind: u64,
    perhaps: u64,
    least: u64,
    /// Files whose paths are longer than any can be.
    long: u64,
}

impl All<'_, '_> {
    fn file(&mut self, tree: &Tree, file: &File, found: Option<&Found>, holds: bool) {
        if &*file.first == b"/" || file.first == self.names.cwd {
            return;
        }
        let kind = match (&file.kind, found) {
            (Kind::Unknown, Some(found)) if found.kind == "directory" => Kind::Directory,
            (Kind::Unknown, _) if holds => Kind::Directory,
            (kind, _) => kind.clone(),
        };
        let name = self.names.name(&file.first);
        let what = match kind {
            Kind::Directory => What::Directory,
            Kind::Link(target) if target.is_empty() => {
                self.blind += 1;
                return;
            }
            Kind::Link(target) => What::Link(self.target(tree, &file.first, &target)),
            Kind::Special => return,
            Kind::File | Kind::Unknown => {
                let last = found.filter(|found| found.kind == "file");
                let seen = file.length(last.map(|found| found.bytes));
                let sparse = last.filter(|last| !file.changed && last.allocated < last.bytes);
                self.least += u64::from(seen.is_none());
                What::File {
                    bytes: seen.unwrap_or(file.read.max(file.mapped)),
                    allocated: sparse.map(|last| last.allocated),
                    seen: seen.is_some(),
                }
            }
        };
        self.add(name, what);
    }

    fn add(&mut self, name: Path, what: What) {
        if name.len() > LONGEST {
            self.long += 1;
        } else if &*name != b"." {
            self.needed.insert(name, what);
        }
    }

    fn target(&mut self, tree: &Tree, link: &Path, target: &[u8]) -> Path {
        let target = tree.link_target(parent(link).unwrap_or(b"/"), target);
        self.names.target(link, &target)
    }

    /// What the recorder found in a directory whose names were read, and that no call names.
    fn children(&mut self, tree: &Tree, directory: &File) {
        for (path, found) in tree.in_directory(&directory.first) {
            let name = self.names.name(path);
            match &found.target {
                Some(target) => {
                    let target = self.target(tree, path, target.as_bytes());
                    self.add(name, What::Link(target));
                }
                None if found.kind == "directory" => self.add(name, What::Directory),
                None if found.kind == "file" => {
                    let allocated = Some(found.allocated).filter(|allocated| *allocated < found.bytes);
                    self.add(name, What::File { bytes: found.bytes, allocated, seen: true });
                }
                None => {}
            }
        }
    }

    fn hard_links(&mut self, tree: &Tree) {
        let mut links: Vec<(&Path, &Found)> =
            tree.found.iter().filter(|(_, found)| found.same_as.is_some()).collect();
        links.sort_unstable_by_key(|(path, _)| *path);
        for (path, found) in links {
            let other: Path = found.same_as.as_deref().unwrap_or_default().as_bytes().into();
            let (name, other) = (self.names.name(path), self.names.name(&other));
            let both =
                [&name, &other].iter().all(|name| matches!(self.needed.get(*name), Some(What::File { .. })));
            if both && name != other {
                self.needed.insert(name, What::HardLink(other));
            }
        }
    }

    /// The directories of all that is needed, and of all that the trace makes where it makes none.
    fn directories(&mut self, tree: &Tree) {
        let made: Vec<Path> = tree.made.iter().cloned().collect();
        let made: std::collections::HashSet<Path> = made.iter().map(|path| self.names.name(path)).collect();
        let all: Vec<Path> = self.needed.keys().chain(&made).cloned().collect();
        for path in all {
            let mut at = above(&path);
            while let Some(directory) = at.filter(|directory| !directory.is_empty()) {
                if !made.contains(directory) {
                    let what = self.needed.entry(directory.into()).or_insert(What::Directory);
                    if matches!(what, What::File { .. }) {
                        *what = What::Directory;
                    }
                }
                at = above(directory);
            }
        }
    }

    fn tell(&self, report: &mut Report) {
        let mut tell = |many: u64, what: &str| {
            if many > 0 {
                report.unknown.push(format!("{many} {what}"));
            }
        };
        tell(self.least, "files may have been longer than the calls need");
        tell(self.perhaps, "files that were opened with O_CREAT may have been there before");
        tell(self.long, "files whose paths have more than 4095 bytes are not made");
        tell(self.blind, "links whose targets are not recorded are not made");
    }
}

fn above(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at])
}
