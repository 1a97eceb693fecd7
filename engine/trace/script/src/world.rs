//! The effect of a script's steps on names, files and descriptors: the model (`fsmodel`) with the threads of a script.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

pub use etude_fsmodel::{
    Description, Effect, End, Names, NodeId, NodeKind, Process, ROOT, from_positions, is_link_target, key,
};
use etude_fsmodel::{Done, Model, unknown_file};

use crate::model::{Action, Called, Needed, Script, Step, What};

/// All that steps change.
pub struct World {
    model: Model,
    /// The process of each thread; a process is called by its first one.
    pub threads: HashMap<u32, u32>,
}

impl Deref for World {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Model {
        &mut self.model
    }
}

impl World {
    /// As the first step finds it.
    pub fn new(script: &Script) -> World {
        let processes = HashMap::from([(0, Process::default())]);
        let model = Model { names: names_of(&script.needed), processes, ..Model::default() };
        World { model, threads: HashMap::from([(0, 0)]) }
    }

    /// Takes a step.
    pub fn step(&mut self, step: &Step) -> Effect {
        let process = *self.threads.entry(step.thread).or_insert(0);
        match &step.action {
            Action::Start(thread) => {
                self.threads.insert(*thread, process);
            }
            Action::Fork(thread) => {
                self.model.fork(process, *thread);
                self.threads.insert(*thread, *thread);
            }
            Action::Exec => self.model.exec(process),
            Action::Call(called) => return self.model.call(process, &called.done()),
            Action::Compute(_) | Action::Wait(_) => {}
        }
        Effect::default()
    }
}

impl Called {
    /// The call as the model reads it.
    pub fn done(&self) -> Done<'_> {
        let texts = self.texts.iter().map(|text| (text.argument, &text.bytes[..]));
        Done::new(self.call, &self.arguments, self.result, texts)
    }

    /// True if its result is an error.
    pub fn failed(&self) -> bool {
        (-4095..0).contains(&self.result)
    }
}

/// The files that are there before the first step.
pub fn names_of(needed: &[Needed]) -> Names {
    let mut names = Names::default();
    for each in needed {
        let kind = match &each.what {
            What::File { bytes, allocated, seen } => NodeKind::File {
                bytes: *bytes,
                allocated: allocated.unwrap_or(*bytes).min(*bytes),
                seen: *seen,
            },
            What::Directory => NodeKind::Directory,
            What::Link(to) => NodeKind::Link(to.clone()),
            What::HardLink(_) => continue,
        };
        let node = names.add(key(&each.path), kind, false);
        names.node_mut(node).asked = true;
    }
    for each in needed {
        if let What::HardLink(of) = &each.what {
            let node = names.find(&key(of)).unwrap_or_else(|| names.add(key(of), unknown_file(), false));
            names.name_too(node, key(&each.path));
        }
    }
    names
}

/// The files that have to be there for a script that begins with these names.
///
/// A directory that has names in it is made with them.
pub fn needed_of(names: &Names) -> Vec<Needed> {
    let mut needed = Vec::new();
    let mut later = Vec::new();
    for (path, id) in names.all().filter(|(path, _)| !path.is_empty()) {
        let node = names.node(id);
        // Steps that cannot have happened may have given the root other names, or its name to others.
        let first = node.names.iter().find(|name| !name.is_empty()).map_or(path, |name| name);
        let what = match &node.kind {
            _ if first != path => {
                later.push(Needed { path: path.into(), what: What::HardLink(first.into()) });
                continue;
            }
            NodeKind::File { bytes, allocated, seen } => {
                let allocated = (allocated < bytes).then_some(*allocated);
                What::File { bytes: *bytes, allocated, seen: *seen }
            }
            NodeKind::Link(to) => What::Link(to.clone()),
            NodeKind::Directory if node.asked || names.below(path).next().is_none() => What::Directory,
            NodeKind::Directory => continue,
        };
        needed.push(Needed { path: path.into(), what });
    }
    needed.extend(later);
    needed
}
