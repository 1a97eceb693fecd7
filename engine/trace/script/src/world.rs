//! What a script's steps do to names, files and descriptors: the state that the next step finds.
//!
//! `names.rs` is the tree of files, `descriptors.rs` what processes have open, `requests.rs` what is under way; `effect.rs`
//! and `data.rs` what a call does to them.

mod data;
mod descriptors;
mod effect;
mod names;
mod paths;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use smallvec::SmallVec;

pub use data::from_positions;
pub use descriptors::{Description, End, Opened, Process};
pub use effect::failed;
pub use names::{Kept, Names, NodeId, ROOT, key};
pub use paths::is_target;
pub use requests::Requests;

use crate::model::{Action, Script, Step};

/// All that steps change.
pub struct World {
    pub names: Names,
    pub opened: Vec<Opened>,
    /// Streams of pipes and pairs of sockets so far.
    pub streams: u32,
    /// Of connections that are half made, by their names: the end that is missing, and the one that is there.
    pub half_made: HashMap<Vec<u8>, (End, Description)>,
    /// By their first threads.
    pub processes: HashMap<u32, Process>,
    /// The process of each thread.
    pub threads: HashMap<u32, u32>,
    pub requests: Requests,
}

/// Bytes that a call moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub node: NodeId,
    pub offset: u64,
    pub bytes: u64,
    pub writes: bool,
}

/// What a step met.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// What stands behind the descriptors that it used, made or closed.
    pub descriptions: SmallVec<[Description; 2]>,
    /// Bytes that it moved from or to files.
    pub moved: SmallVec<[Moved; 2]>,
    /// Files that it met, by name or by descriptor.
    pub nodes: SmallVec<[NodeId; 2]>,
    /// Directories above them, where somebody asked for these.
    pub above: SmallVec<[NodeId; 2]>,
    /// Paths that it named, from the root.
    pub paths: SmallVec<[Vec<u8>; 1]>,
    /// Whether it makes, copies or closes descriptors.
    pub of_descriptors: bool,
    /// Whether it adds or takes away names.
    pub of_names: bool,
    /// Whether it moves where the process stands.
    pub of_place: bool,
    /// Requests that it makes, hands over, or finds done: numbers of their own.
    pub requests: SmallVec<[u32; 1]>,
    /// A descriptor that was not open.
    pub closed: Option<i32>,
}

impl World {
    /// As the first step finds it.
    pub fn new(script: &Script) -> World {
        World {
            names: Names::new(&script.needed),
            opened: Vec::new(),
            streams: 0,
            half_made: HashMap::new(),
            processes: HashMap::from([(0, Process::default())]),
            threads: HashMap::from([(0, 0)]),
            requests: Requests::default(),
        }
    }

    /// Takes a step.
    pub fn step(&mut self, step: &Step) -> Effect {
        let process = *self.threads.entry(step.thread).or_insert(0);
        match &step.action {
            Action::Start(thread) => {
                self.threads.insert(*thread, process);
            }
            Action::Fork(thread) => {
                let copy = self.process(process).clone();
                self.processes.insert(*thread, copy);
                self.threads.insert(*thread, *thread);
            }
            Action::Exec => self.process(process).exec(),
            Action::Call(called) => return self.call(process, called),
            Action::Compute(_) | Action::Wait(_) => {}
        }
        Effect::default()
    }

    pub fn process(&mut self, number: u32) -> &mut Process {
        self.processes.entry(number).or_default()
    }

    /// Where the process stands, from the root; None where that has no name any more.
    pub fn place(&self, process: u32) -> Option<&[u8]> {
        self.names.name(self.processes.get(&process).map_or(ROOT, |process| process.place))
    }
}
