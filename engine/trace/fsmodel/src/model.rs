//! The state that calls change and find: names and files, what is open, and where processes are.

use std::collections::{BTreeMap, HashMap};

use smallvec::SmallVec;

use crate::changes::follows;
use crate::flags::O_CLOEXEC;
use crate::names::{Names, NodeId, NodeKind, ROOT};
use crate::paths::{directory_of, named};
use crate::requests::Requests;
use crate::rows::Done;
use crate::table::{Reuse, Slot, Table};

/// Number of an open file description: descriptors that were copied have the same.
pub type Description = u32;

/// An open file description.
#[derive(Clone, Debug)]
pub struct Opened {
    /// None for what has no file: a pipe, a socket.
    pub node: Option<NodeId>,
    /// The pipe, or pair of sockets, that it is an end of.
    pub pipe: Option<End>,
    /// Flags of the open, with the changes by fcntl.
    pub flags: u64,
    pub position: u64,
}

/// An end of a pipe, or of a pair of sockets: the streams that are read and written there, by their numbers. Of a pipe they
/// are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub reads: u32,
    pub writes: u32,
}

impl End {
    /// Both ends of what begins with this stream.
    pub fn both(first: u32, sockets: bool) -> [End; 2] {
        let second = first + u32::from(sockets);
        [End { reads: first, writes: second }, End { reads: second, writes: first }]
    }
}

/// State that the threads of a process share.
#[derive(Clone, Debug)]
pub struct Process {
    pub table: Table<Description>,
    /// Its working directory.
    pub place: NodeId,
    /// Mappings of files: begin, length.
    pub mappings: BTreeMap<u64, (u64, Option<Description>)>,
}

impl Default for Process {
    fn default() -> Process {
        Process { table: Table::new(Reuse::Waits), place: ROOT, mappings: BTreeMap::new() }
    }
}

impl Process {
    pub fn slot(&self, descriptor: i32) -> Option<Slot<Description>> {
        self.table.get(descriptor).copied()
    }

    /// The file that is mapped there.
    pub fn mapping(&self, address: u64) -> Option<(u64, Option<Description>)> {
        let (begin, (length, description)) = self.mappings.range(..=address).next_back()?;
        (address - begin < *length).then_some((*begin, *description))
    }
}

/// Bytes that a call moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub node: NodeId,
    pub offset: u64,
    pub bytes: u64,
    pub writes: bool,
}

/// The objects that a call met, and the kinds of its changes.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// Descriptions of the descriptors that it used, made or closed.
    pub descriptions: SmallVec<[Description; 2]>,
    /// Bytes that it moved from or to files.
    pub moved: SmallVec<[Moved; 2]>,
    /// Files that it met, by name or by descriptor.
    pub nodes: SmallVec<[NodeId; 2]>,
    /// Directories above them, where somebody asked for these.
    pub above: SmallVec<[NodeId; 2]>,
    /// Paths that it named, from the root.
    pub paths: SmallVec<[Vec<u8>; 1]>,
    /// True if it makes, copies or closes descriptors.
    pub of_descriptors: bool,
    /// True if it adds or takes away names.
    pub of_names: bool,
    /// True if it moves its process to another directory.
    pub of_place: bool,
    /// Requests that it makes, hands over, or finds done: numbers of their own.
    pub requests: SmallVec<[u32; 1]>,
    /// A descriptor that was not open.
    pub closed: Option<i32>,
}

/// All that calls change.
#[derive(Default)]
pub struct Model {
    pub names: Names,
    pub opened: Vec<Opened>,
    /// Streams of pipes and pairs of sockets so far.
    pub streams: u32,
    /// Half-made connections by name: the end that is missing, and the one that is there.
    pub half_made: HashMap<Vec<u8>, (End, Description)>,
    pub processes: HashMap<u32, Process>,
    pub requests: Requests,
}

impl Model {
    pub fn process(&mut self, number: u32) -> &mut Process {
        self.processes.entry(number).or_default()
    }

    /// A process begins with all that another has.
    pub fn fork(&mut self, from: u32, to: u32) {
        let copy = self.process(from).clone();
        self.processes.insert(to, copy);
    }

    /// A process executes a program.
    pub fn exec(&mut self, process: u32) {
        let process = self.process(process);
        process.table.exec();
        process.mappings.clear();
    }

    /// The working directory of a process, from the root; None where that has no name any more.
    pub fn place(&self, process: u32) -> Option<&[u8]> {
        self.names.name(self.processes.get(&process).map_or(ROOT, |process| process.place))
    }

    pub fn description(&self, process: u32, descriptor: i32) -> Option<Description> {
        Some(self.processes.get(&process)?.slot(descriptor)?.behind)
    }

    /// The file behind a descriptor.
    pub fn node_behind(&self, process: u32, descriptor: i32) -> Option<NodeId> {
        self.opened[self.description(process, descriptor)? as usize].node
    }

    /// Something new behind a descriptor.
    pub fn open(&mut self, process: u32, descriptor: i32, node: Option<NodeId>, flags: u64) -> Description {
        let description = self.opened.len() as Description;
        self.opened.push(Opened { node, pipe: None, flags, position: 0 });
        self.process(process).table.open(descriptor, description, flags & O_CLOEXEC != 0);
        description
    }

    /// How long the file behind a descriptor is, and the position of the descriptor in it; None where the length is not
    /// known.
    pub fn length(&self, process: u32, descriptor: i32) -> Option<(u64, u64)> {
        let opened = &self.opened[self.description(process, descriptor)? as usize];
        let node = self.names.node(opened.node?);
        match node.kind {
            NodeKind::File { bytes, .. } if node.asked || node.made => Some((bytes, opened.position)),
            _ => None,
        }
    }

    /// The paths of a call from the root, with the arguments in which they stand. A path without a text, or below a
    /// directory of which nothing is known, is left out.
    pub fn paths(&self, process: u32, done: &Done) -> Vec<(usize, Vec<u8>)> {
        self.paths_through(process, done, |_| ())
    }

    /// The same, and the links that they go through.
    pub fn paths_through(
        &self,
        process: u32,
        done: &Done,
        mut through: impl FnMut(&[u8]),
    ) -> Vec<(usize, Vec<u8>)> {
        let mut found = Vec::new();
        for (index, text) in named(done) {
            let base = match directory_of(done, index) {
                Some(descriptor) => {
                    self.node_behind(process, descriptor).and_then(|node| self.names.name(node))
                }
                None => self.place(process),
            };
            if let Some(base) = base.or(text.starts_with(b"/").then_some(b"")) {
                let path = self.names.resolve_through(base, text, follows(done, index), &mut through);
                found.push((index, path));
            }
        }
        found
    }
}
