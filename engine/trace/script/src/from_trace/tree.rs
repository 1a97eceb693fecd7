//! Which files there are, as far as a trace tells: by path, and what the calls say of how long each was at first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use etude_fsmodel::{SLASH, resolve};
use etude_trace::Found;

pub(crate) type Path = Arc<[u8]>;

/// The kernel's addition to the name of a directory that is gone, where a process was in it from the beginning.
const DELETED: &[u8] = b" (deleted)";

/// Number of a file, whatever it is called at a time.
pub(crate) type Node = usize;

/// True if a file was there before the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Before,
    /// It was opened with O_CREAT, and nothing told yet which it is.
    Perhaps,
    Created,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unknown,
    File,
    Directory,
    Link(Path),
    /// A device, a named pipe, a socket.
    Special,
}

/// What is known of a file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// What it was called when it was first seen.
    pub first: Path,
    pub origin: Origin,
    pub kind: Kind,
    /// Its names were read.
    pub listed: bool,
    pub changed: bool,
    /// Its length at first, where a call told.
    exact: Option<u64>,
    /// Reads found so many bytes that were there at first.
    pub read: u64,
    /// So many are in mappings.
    pub mapped: u64,
    /// Writes went so far: what is before that may be theirs.
    high: u64,
    /// It was cut, or written at an end that is not known: nothing tells any more how long it was.
    cut: bool,
}

impl File {
    fn new(first: Path, origin: Origin, kind: Kind) -> File {
        let (exact, read, mapped, high) = (None, 0, 0, 0);
        File { first, origin, kind, listed: false, changed: false, exact, read, mapped, high, cut: false }
    }

    /// How long it was at first, where that was seen. `last`: how long it is at the end.
    pub fn length(&self, last: Option<u64>) -> Option<u64> {
        let last = last.filter(|last| !self.changed || !self.cut && *last > self.high);
        self.exact.or_else(|| last.map(|last| last.max(self.read)))
    }

    /// `got` bytes from `from` on; `asked` is how many were wanted, if that is known.
    pub fn reads(&mut self, from: u64, asked: Option<u64>, got: u64) {
        if self.cut {
            return;
        }
        let end = from.saturating_add(got);
        if got > 0 && end > self.high {
            self.read = self.read.max(end);
            self.was_there();
            if self.exact.is_some_and(|exact| exact < end) {
                self.exact = None;
            }
        }
        let at_end = asked.is_some_and(|asked| got < asked) && got > 0 && end > self.high;
        let behind = got == 0 && asked != Some(0) && from == self.read && from >= self.high;
        if at_end && end >= self.read || behind && (!self.changed || from > self.high) {
            self.exact = Some(end);
        }
    }

    /// Somebody was told how long it is.
    pub fn ends(&mut self, at: u64) {
        if !self.cut && (at > self.high || !self.changed) {
            self.exact = Some(at.max(self.read));
            if at > 0 {
                self.was_there();
            }
        }
    }

    pub fn writes(&mut self, from: u64, bytes: u64) {
        self.changed |= bytes > 0;
        self.high = self.high.max(from.saturating_add(bytes));
    }

    /// Where the next byte goes that is written to its end.
    pub fn appends(&mut self, bytes: u64) -> u64 {
        match (self.exact, self.origin) {
            (Some(exact), _) if !self.cut => self.writes(exact.max(self.high), bytes),
            (_, Origin::Created) => self.writes(self.high, bytes),
            _ => (self.changed, self.cut) = (true, true),
        }
        self.high
    }

    pub fn cut(&mut self) {
        (self.changed, self.cut) = (true, true);
    }

    fn was_there(&mut self) {
        if self.origin == Origin::Perhaps {
            self.origin = Origin::Before;
        }
    }
}

/// The names of files, and the files.
#[derive(Default)]
pub(crate) struct Tree {
    /// None: there is nothing at that path.
    names: BTreeMap<Path, Option<Node>>,
    pub files: Vec<File>,
    /// What the recorder found at the end.
    pub found: HashMap<Path, Found>,
    /// True if there are links at all: else no path has to be looked at component by component.
    linked: bool,
    /// Paths as they were given (behind their directory), and what they mean: true, if the last link is followed.
    known: HashMap<(Path, Path, bool), Path>,
    /// Directories that the trace gave other names: both.
    pub renamed: Vec<Path>,
    /// Where the trace made something.
    pub made: HashSet<Path>,
    /// What the recorder found, by directory.
    listed: HashMap<Path, Vec<Path>>,
}

impl Tree {
    pub fn new(found: Vec<Found>) -> Tree {
        let linked = found.iter().any(|found| found.target.is_some());
        let found: HashMap<Path, Found> =
            found.into_iter().map(|found| (found.path.as_bytes().into(), found)).collect();
        let mut listed: HashMap<Path, Vec<Path>> = HashMap::new();
        for path in found.keys() {
            listed.entry(parent(path).unwrap_or(b"/").into()).or_default().push(path.clone());
        }
        Tree { found, linked, listed, ..Tree::default() }
    }

    /// An absolute path without links, `.` and `..` in its directories; also in its last component if they are followed.
    pub fn resolve(&mut self, base: &Path, text: &Path, follow: bool) -> Path {
        let base: Path = if text.first() == Some(&b'/') { Path::from(&b"/"[..]) } else { base.clone() };
        let key = (base, text.clone(), follow);
        if let Some(path) = self.known.get(&key) {
            return path.clone();
        }
        let (path, passed) = self.walk(&key.0, text, follow);
        // Links that only lead on are needed as well.
        for link in passed {
            self.exists(&link.into(), Kind::Unknown);
        }
        let path: Path = path.into();
        self.known.insert(key, path.clone());
        path
    }

    /// Where a path leads, and the links that its last component is: those in its directories are not named in a script.
    fn walk(&self, base: &[u8], text: &[u8], follow: bool) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut passed = Vec::new();
        let path = resolve(SLASH, base, text, follow, |at, last| {
            let target = if self.linked { self.link_at(at) } else { None }?;
            if last {
                passed.push(at.to_vec());
            }
            Some(target)
        });
        (path, passed)
    }

    /// The path that stands in a link, with links in its directories followed: a script makes only links that calls name.
    pub fn link_target(&self, base: &[u8], text: &[u8]) -> Path {
        let base = if text.first() == Some(&b'/') { b"/" } else { base };
        self.walk(base, text, false).0.into()
    }

    /// What the recorder found in a directory, and no call names.
    pub fn in_directory(&self, directory: &Path) -> impl Iterator<Item = (&Path, &Found)> {
        let paths = self.listed.get(directory).into_iter().flatten();
        paths.filter(|path| !self.names.contains_key(*path)).filter_map(|path| self.found.get_key_value(path))
    }

    /// A link of which the recorder found where it leads; else of which that is not known.
    pub fn found_link(&self, path: &Path) -> Kind {
        let target = self.found.get(path).and_then(|found| found.target.as_ref());
        Kind::Link(target.map_or_else(|| Path::from(&b""[..]), |target| target.as_bytes().into()))
    }

    /// A file without a name.
    pub fn nameless(&mut self) -> Node {
        self.files.push(File::new(Path::from(&b""[..]), Origin::Created, Kind::File));
        self.files.len() - 1
    }

    fn link_at(&self, path: &[u8]) -> Option<Path> {
        match self.names.get(path) {
            Some(Some(node)) => match &self.files[*node].kind {
                Kind::Link(target) if !target.is_empty() => Some(target.clone()),
                _ => None,
            },
            Some(None) => None,
            None => {
                let found = self.found.get(path)?;
                found.target.as_ref().map(|target| target.as_bytes().into())
            }
        }
    }

    /// What is called so now, if that is known.
    pub fn at(&self, path: &[u8]) -> Option<Node> {
        self.names.get(path).copied().flatten()
    }

    /// True if two paths are names of one file, as far as that is known.
    pub fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        self.at(one).is_some_and(|node| self.at(other) == Some(node))
    }

    /// True if it is gone, though a process may still be in it.
    pub fn is_removed(&self, directory: &[u8]) -> bool {
        match self.names.get(directory) {
            Some(node) => node.is_none(),
            None => directory.ends_with(DELETED),
        }
    }

    /// True if nothing is there, as far as calls tell: it was looked for, or its directory is new.
    pub fn is_free(&self, path: &Path) -> bool {
        let is_new = |node: Node| {
            let file = &self.files[node];
            file.origin == Origin::Created && file.kind == Kind::Directory
        };
        match self.names.get(path) {
            Some(node) => node.is_none(),
            None => parent(path).and_then(|directory| self.at(directory)).is_some_and(is_new),
        }
    }

    /// A call found something there.
    pub fn exists(&mut self, path: &Path, kind: Kind) -> Node {
        if let Some(node) = self.at(path) {
            let file = &mut self.files[node];
            if file.kind == Kind::Unknown {
                file.kind = kind;
            }
            return node;
        }
        let found = self.found.get(path).map(|found| match (&*found.kind, &found.target) {
            (_, Some(target)) => Kind::Link(target.as_bytes().into()),
            ("directory", None) => Kind::Directory,
            ("file", None) => Kind::File,
            _ => Kind::Special,
        });
        let kind = match kind {
            Kind::Unknown => found.unwrap_or(Kind::Unknown),
            kind => kind,
        };
        self.add(path, Origin::Before, kind)
    }

    /// A call found nothing there.
    pub fn missing(&mut self, path: &Path) {
        self.names.entry(path.clone()).or_insert(None);
    }

    /// A call made something there.
    pub fn creates(&mut self, path: &Path, kind: Kind) -> Node {
        if matches!(kind, Kind::Link(_)) {
            (self.linked, self.known) = (true, HashMap::new());
        }
        self.add(path, Origin::Created, kind)
    }

    /// A file was opened with O_CREAT: there may have been one.
    pub fn opens(&mut self, path: &Path, empties: bool) -> Node {
        match self.names.get(path) {
            Some(Some(node)) => *node,
            Some(None) => self.creates(path, Kind::File),
            None if empties => self.creates(path, Kind::File),
            None => self.add(path, Origin::Perhaps, Kind::File),
        }
    }

    pub fn removes(&mut self, path: &Path) {
        self.forget_links();
        self.names.insert(path.clone(), None);
    }

    pub fn links(&mut self, from: &Path, to: &Path) {
        let node = self.exists(from, Kind::Unknown);
        self.names_too(node, to);
    }

    /// A file gets one more name, or its first.
    pub fn names_too(&mut self, node: Node, to: &Path) {
        let first = &mut self.files[node].first;
        if first.is_empty() {
            *first = to.clone();
        }
        self.made.insert(to.clone());
        self.names.insert(to.clone(), Some(node));
    }

    /// A file, or a directory with all that is in it, is called otherwise.
    pub fn renames(&mut self, from: &Path, to: &Path, swaps: bool) {
        self.forget_links();
        let (node, other) = (self.exists(from, Kind::Unknown), self.at(to));
        if self.files[node].kind == Kind::Directory {
            self.renamed.extend([from.clone(), to.clone()]);
        }
        let moved: Vec<(Path, Option<Node>)> = self.below(from);
        let back: Vec<(Path, Option<Node>)> = if swaps { self.below(to) } else { Vec::new() };
        for (path, _) in moved.iter().chain(&back) {
            self.names.insert(path.clone(), None);
        }
        self.names.insert(from.clone(), if swaps { other } else { None });
        self.names.insert(to.clone(), Some(node));
        self.made.insert(to.clone());
        for (there, here, paths) in [(from, to, moved), (to, from, back)] {
            for (path, node) in paths {
                let path = [&here[..], &path[there.len()..]].concat();
                self.names.insert(path.into(), node);
            }
        }
    }

    /// All that is called now: paths and files.
    pub fn now(&self) -> impl Iterator<Item = (&Path, Node)> {
        self.names.iter().filter_map(|(path, node)| Some((path, (*node)?)))
    }

    /// All paths that something was, or was looked for, at.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.names.keys()
    }

    fn below(&self, directory: &Path) -> Vec<(Path, Option<Node>)> {
        let prefix: Path = [directory, &b"/"[..]].concat().into();
        let all = self.names.range(prefix.clone()..);
        all.take_while(|(path, _)| path.starts_with(&prefix)).map(|(p, n)| (p.clone(), *n)).collect()
    }

    fn forget_links(&mut self) {
        if self.linked {
            self.known.clear();
        }
    }

    fn add(&mut self, path: &Path, origin: Origin, kind: Kind) -> Node {
        if origin != Origin::Before {
            self.made.insert(path.clone());
        }
        self.files.push(File::new(path.clone(), origin, kind));
        self.names.insert(path.clone(), Some(self.files.len() - 1));
        self.files.len() - 1
    }
}

pub(crate) fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// The directory of an absolute path; None of the root.
pub(crate) fn parent(path: &[u8]) -> Option<&[u8]> {
    let at = path.iter().rposition(|byte| *byte == b'/')?;
    (path.len() > 1).then(|| &path[..at.max(1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.as_bytes().into()
    }

    #[test]
    fn lengths_follow_from_short_reads_and_ends_before_the_first_write() {
        let file = || File::new(path("/f"), Origin::Before, Kind::File);
        let mut one = file();
        one.reads(0, Some(4096), 4096);
        assert_eq!((one.length(None), one.read), (None, 4096));
        one.reads(4096, Some(4096), 10);
        assert_eq!(one.length(None), Some(4106));
        let mut two = file();
        two.reads(0, Some(100), 100);
        two.reads(100, Some(100), 0);
        assert_eq!(two.length(None), Some(100));
        let mut three = file();
        three.reads(0, Some(100), 100);
        three.writes(50, 200);
        three.reads(100, Some(100), 100);
        three.reads(200, Some(100), 50);
        three.reads(250, Some(100), 0);
        assert_eq!((three.length(None), three.read), (None, 100));
        assert_eq!(three.length(Some(250)), None);
        assert_eq!(three.length(Some(1000)), Some(1000));
        three.cut();
        three.ends(5000);
        assert_eq!(three.length(Some(1000)), None);
        let mut empty = file();
        empty.reads(0, Some(100), 0);
        assert_eq!(empty.length(None), Some(0));
    }

    #[test]
    fn what_is_in_a_renamed_directory_moves_with_it() {
        let mut tree = Tree::default();
        let directory = tree.exists(&path("/d"), Kind::Directory);
        let inside = tree.exists(&path("/d/f"), Kind::File);
        tree.renames(&path("/d"), &path("/e"), false);
        assert_eq!((tree.at(b"/e"), tree.at(b"/e/f")), (Some(directory), Some(inside)));
        assert_eq!((tree.at(b"/d"), tree.at(b"/d/f")), (None, None));
    }
}
