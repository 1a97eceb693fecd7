//! The tree of files, by path.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::paths::{EMPTY, resolve};

pub type NodeId = u32;

/// The directory at which absolute paths begin.
pub const ROOT: NodeId = 0;

/// What a name stands for.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: NodeKind,
    /// From the root, without a slash before; the root's is empty.
    pub names: Vec<Vec<u8>>,
    /// True if a call made it.
    pub made: bool,
    /// True if it was there at first by itself, not only as a directory of something else.
    pub asked: bool,
    /// True if a call met it.
    pub used: bool,
    /// True if a call read which names are in it.
    pub listed: bool,
    /// How far it was read.
    pub reached: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
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

impl Default for Names {
    /// The root alone.
    fn default() -> Names {
        let mut names = Names { nodes: Vec::new(), by_path: BTreeMap::new(), links: 0 };
        names.add(Vec::new(), NodeKind::Directory, false);
        names
    }
}

impl Names {
    /// A new node with a name, and the directories above it. What had the name has it no longer.
    pub fn add(&mut self, path: Vec<u8>, kind: NodeKind, made: bool) -> NodeId {
        let node = self.nodes.len() as NodeId;
        self.links += usize::from(matches!(kind, NodeKind::Link(_)));
        let fresh =
            Node { kind, names: Vec::new(), made, asked: false, used: false, listed: false, reached: 0 };
        self.nodes.push(fresh);
        self.name_too(node, path);
        node
    }

    /// A new node that has no name.
    pub fn add_nameless(&mut self) -> NodeId {
        let node = self.nodes.len() as NodeId;
        let node_of = |kind| Node {
            kind,
            names: Vec::new(),
            made: true,
            asked: false,
            used: true,
            listed: false,
            reached: 0,
        };
        self.nodes.push(node_of(NodeKind::File { bytes: 0, allocated: 0, seen: true }));
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
            self.add(path[..end].to_vec(), NodeKind::Directory, false);
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
        let mut taken = vec![path.to_vec()];
        taken.extend(self.below(path).map(|(name, _)| name.to_vec()));
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
        match &self.node(self.find(path)?).kind {
            NodeKind::Link(to) => Some(to),
            _ => None,
        }
    }

    /// All names, in their order.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], NodeId)> {
        self.by_path.iter().map(|(path, node)| (&path[..], *node))
    }

    /// The path that a path leads to from a directory.
    pub fn resolve(&self, base: &[u8], path: &[u8], follow: bool) -> Vec<u8> {
        self.resolve_through(base, path, follow, |_| ())
    }

    /// The same, and the links that it goes through.
    pub fn resolve_through(
        &self,
        base: &[u8],
        path: &[u8],
        follow: bool,
        mut through: impl FnMut(&[u8]),
    ) -> Vec<u8> {
        resolve(EMPTY, base, path, follow, |at, _| {
            let to = self.link(at)?;
            through(at);
            Some(to.clone())
        })
    }
}

pub fn unknown_file() -> NodeKind {
    NodeKind::File { bytes: 0, allocated: 0, seen: false }
}
