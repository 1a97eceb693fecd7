//! The tree of files, by path.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::model::{Needed, What};

pub type NodeId = u32;

/// The directory of the replay.
pub const ROOT: NodeId = 0;

/// What a name stands for.
#[derive(Clone, Debug)]
pub struct Node {
    pub kept: Kept,
    /// From the root, without a slash before; the root's is empty.
    pub names: Vec<Vec<u8>>,
    /// Whether a step made it.
    pub made: bool,
    /// Whether a line of the script asks for it, not only for something below it.
    pub asked: bool,
    /// Whether a step met it.
    pub used: bool,
    /// Whether a step read which names are in it.
    pub listed: bool,
    /// How far it was read.
    pub reached: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    File { bytes: u64, allocated: u64, seen: bool },
    Directory,
    Link(Arc<[u8]>),
}

/// All names.
pub struct Names {
    nodes: Vec<Node>,
    by_path: BTreeMap<Vec<u8>, NodeId>,
    /// How many links there have been: without any, no path has to be looked through for them.
    links: usize,
}

impl Names {
    pub fn new(needed: &[Needed]) -> Names {
        let mut names = Names { nodes: Vec::new(), by_path: BTreeMap::new(), links: 0 };
        names.add(Vec::new(), Kept::Directory, false);
        for each in needed {
            let path = key(&each.path);
            let kept = match &each.what {
                What::File { bytes, allocated, seen } => Kept::File {
                    bytes: *bytes,
                    allocated: allocated.unwrap_or(*bytes).min(*bytes),
                    seen: *seen,
                },
                What::Directory => Kept::Directory,
                What::Link(to) => Kept::Link(to.clone()),
                What::HardLink(_) => continue,
            };
            let node = names.add(path, kept, false);
            names.nodes[node as usize].asked = true;
        }
        for each in needed {
            if let What::HardLink(of) = &each.what {
                let node = names.find(&key(of)).unwrap_or_else(|| names.add(key(of), unknown_file(), false));
                names.name_too(node, key(&each.path));
            }
        }
        names
    }

    /// A new node with a name, and the directories above it. What had the name has it no longer.
    pub fn add(&mut self, path: Vec<u8>, kept: Kept, made: bool) -> NodeId {
        let node = self.nodes.len() as NodeId;
        self.links += usize::from(matches!(kept, Kept::Link(_)));
        let fresh =
            Node { kept, names: Vec::new(), made, asked: false, used: false, listed: false, reached: 0 };
        self.nodes.push(fresh);
        self.name_too(node, path);
        node
    }

    /// A new node that has no name.
    pub fn add_nameless(&mut self) -> NodeId {
        let node = self.nodes.len() as NodeId;
        let node_of = |kept| Node {
            kept,
            names: Vec::new(),
            made: true,
            asked: false,
            used: true,
            listed: false,
            reached: 0,
        };
        self.nodes.push(node_of(Kept::File { bytes: 0, allocated: 0, seen: true }));
        node
    }

    /// Gives a node one more name.
    pub fn name_too(&mut self, node: NodeId, path: Vec<u8>) {
        let mut end = path.len();
        while let Some(slash) = path[..end].iter().rposition(|byte| *byte == b'/') {
            end = slash;
            if self.by_path.contains_key(&path[..end]) {
                break;
            }
            self.add(path[..end].to_vec(), Kept::Directory, false);
        }
        self.remove(&path);
        self.nodes[node as usize].names.push(path.clone());
        self.by_path.insert(path, node);
    }

    /// Takes a name away; what it stood for.
    pub fn remove(&mut self, path: &[u8]) -> Option<NodeId> {
        let node = self.by_path.remove(path)?;
        self.nodes[node as usize].names.retain(|name| name != path);
        Some(node)
    }

    /// Gives all that is named `from`, or below it, a name at `to`.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) {
        let moved = self.take(from);
        self.take(to);
        self.put(moved, to);
    }

    pub fn exchange(&mut self, one: &[u8], other: &[u8]) {
        let (first, second) = (self.take(one), self.take(other));
        self.put(first, other);
        self.put(second, one);
    }

    /// Takes away all names at and below a path; they are given without it.
    fn take(&mut self, path: &[u8]) -> Vec<(Vec<u8>, NodeId)> {
        let mut taken: Vec<_> = self.below(path).map(|(name, _)| name.to_vec()).collect();
        taken.push(path.to_vec());
        let without = |name: Vec<u8>, node| (name[path.len()..].to_vec(), node);
        taken.into_iter().filter_map(|name| self.remove(&name).map(|node| without(name, node))).collect()
    }

    fn put(&mut self, taken: Vec<(Vec<u8>, NodeId)>, path: &[u8]) {
        for (rest, node) in taken {
            self.name_too(node, [path, &rest].concat());
        }
    }

    /// All that is below a path.
    pub fn below<'a>(&'a self, path: &[u8]) -> impl Iterator<Item = (&'a [u8], NodeId)> + use<'a> {
        let begin = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        let range = (Bound::Excluded(begin.clone()), Bound::Unbounded);
        let all = self.by_path.range::<Vec<u8>, _>(range);
        all.take_while(move |(name, _)| name.starts_with(&begin)).map(|(name, node)| (&name[..], *node))
    }

    pub fn find(&self, path: &[u8]) -> Option<NodeId> {
        self.by_path.get(path).copied()
    }

    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    pub fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// A name of a node, if it has one.
    pub fn name(&self, node: NodeId) -> Option<&[u8]> {
        self.nodes[node as usize].names.first().map(|name| &name[..])
    }

    /// What a link says, at a path.
    pub fn link(&self, path: &[u8]) -> Option<&Arc<[u8]>> {
        if self.links == 0 {
            return None;
        }
        match &self.node(self.find(path)?).kept {
            Kept::Link(to) => Some(to),
            _ => None,
        }
    }

    /// All names, in their order.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], NodeId)> {
        self.by_path.iter().map(|(path, node)| (&path[..], *node))
    }

    /// What has to be there for a script that begins here. A directory that has names in it is made with them.
    pub fn needed(&self) -> Vec<Needed> {
        let mut needed = Vec::new();
        let mut later = Vec::new();
        for (path, id) in self.all().filter(|(path, _)| !path.is_empty()) {
            let node = self.node(id);
            // Steps that cannot have happened may have given the root other names, or its name to others.
            let first = node.names.iter().find(|name| !name.is_empty()).map_or(path, |name| name);
            let what = match &node.kept {
                _ if first != path => {
                    later.push(Needed { path: path.into(), what: What::HardLink(first.into()) });
                    continue;
                }
                Kept::File { bytes, allocated, seen } => {
                    let allocated = (allocated < bytes).then_some(*allocated);
                    What::File { bytes: *bytes, allocated, seen: *seen }
                }
                Kept::Link(to) => What::Link(to.clone()),
                Kept::Directory if node.asked || self.below(path).next().is_none() => What::Directory,
                Kept::Directory => continue,
            };
            needed.push(Needed { path: path.into(), what });
        }
        needed.extend(later);
        needed
    }
}

pub fn unknown_file() -> Kept {
    Kept::File { bytes: 0, allocated: 0, seen: false }
}

/// A path from the root without `.`, `..` and slashes that say nothing.
pub fn key(path: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(path.len());
    path.split(|byte| *byte == b'/').for_each(|part| append_component(&mut key, part));
    key
}

/// Goes on from a path by one part of another.
pub fn append_component(key: &mut Vec<u8>, part: &[u8]) {
    match part {
        b"" | b"." => {}
        b".." => key.truncate(key.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
        name => {
            if !key.is_empty() {
                key.push(b'/');
            }
            key.extend_from_slice(name);
        }
    }
}
