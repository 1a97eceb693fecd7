//! What processes have open.

use std::collections::{BTreeMap, VecDeque};

use super::{NodeId, ROOT, World};

/// The number of something that was opened: descriptors that were copied have the same.
pub type Description = u32;

const O_CLOEXEC: u64 = 0o2000000;

/// Something that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// None for what has no file: a pipe, a socket.
    pub node: Option<NodeId>,
    /// Of which pipe, or pair of sockets, it is an end.
    pub pipe: Option<End>,
    /// As they were given to open, with what fcntl changed.
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

/// What threads of a process share.
#[derive(Clone, Debug)]
pub struct Process {
    /// The oldest first: where two threads close and open, a descriptor can be given anew by a call that began before
    /// the close did.
    pub descriptors: BTreeMap<i32, VecDeque<Slot>>,
    pub place: NodeId,
    /// Where files are in memory: begin, length.
    pub mappings: BTreeMap<u64, (u64, Option<Description>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub description: Description,
    pub closes_at_exec: bool,
}

impl Default for Process {
    fn default() -> Process {
        Process { descriptors: BTreeMap::new(), place: ROOT, mappings: BTreeMap::new() }
    }
}

impl Process {
    pub fn exec(&mut self) {
        for slots in self.descriptors.values_mut() {
            slots.retain(|slot| !slot.closes_at_exec);
        }
        self.descriptors.retain(|_, slots| !slots.is_empty());
        self.mappings.clear();
    }

    pub fn slot(&self, descriptor: i32) -> Option<Slot> {
        self.descriptors.get(&descriptor)?.back().copied()
    }

    pub fn open(&mut self, descriptor: i32, description: Description, closes_at_exec: bool) {
        let slot = Slot { description, closes_at_exec };
        self.descriptors.entry(descriptor).or_default().push_back(slot);
    }

    pub fn close(&mut self, descriptor: i32) -> Option<Slot> {
        let slots = self.descriptors.get_mut(&descriptor)?;
        let slot = slots.pop_front();
        if slots.is_empty() {
            self.descriptors.remove(&descriptor);
        }
        slot
    }

    /// What lies in memory there.
    pub fn mapping(&self, address: u64) -> Option<(u64, Option<Description>)> {
        let (begin, (length, description)) = self.mappings.range(..=address).next_back()?;
        (address - begin < *length).then_some((*begin, *description))
    }
}

impl World {
    pub fn description(&self, process: u32, descriptor: i32) -> Option<Description> {
        Some(self.processes.get(&process)?.slot(descriptor)?.description)
    }

    /// Something new behind a descriptor.
    pub fn open(&mut self, process: u32, descriptor: i32, node: Option<NodeId>, flags: u64) -> Description {
        let description = self.opened.len() as Description;
        self.opened.push(Opened { node, pipe: None, flags, position: 0 });
        self.process(process).open(descriptor, description, flags & O_CLOEXEC != 0);
        description
    }
}
