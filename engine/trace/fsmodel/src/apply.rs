//! The effect of a call on the model.

use etude_calls::{Kind, Outcome};

use crate::changes::{
    DescriptorChange, NameChange, descriptor_change, is_of_descriptors, is_of_directory, name_change,
};
use crate::flags::{O_CREAT, O_DIRECTORY, O_TRUNC, SETTABLE, is_nameless};
use crate::model::{Description, Effect, End, Model};
use crate::names::{NodeId, NodeKind, unknown_file};
use crate::rows::{Done, Opens};

const EMPTY_FILE: NodeKind = NodeKind::File { bytes: 0, allocated: 0, seen: true };

impl Model {
    /// Takes a call of a process.
    pub fn call(&mut self, process: u32, done: &Done) -> Effect {
        let mut effect = Effect::default();
        self.meet(process, done, &mut effect);
        self.requests.step(process, done, &mut effect.requests);
        let paths = self.paths(process, done);
        for (_, path) in &paths {
            if let Some(node) = self.names.find(path) {
                effect.nodes.push(node);
            }
        }
        effect.of_descriptors =
            done.call.row().outcome == Outcome::Descriptor || is_of_descriptors(done.call);
        effect.of_place = is_of_directory(done.call);
        let path = |at: usize| paths.get(at).map(|(_, path)| &path[..]);
        if !done.failed() {
            self.names_change(process, done, (path(0), path(1)), &mut effect);
        }
        self.descriptors_change(process, done, path(0), &mut effect);
        if !done.failed() {
            self.data_change(process, done, path(0), &mut effect);
            self.memory_changes(process, done, &mut effect);
        }
        effect.nodes.sort_unstable();
        effect.nodes.dedup();
        effect.descriptions.sort_unstable();
        effect.descriptions.dedup();
        for node in &effect.nodes {
            let node = self.names.node_mut(*node);
            node.used = true;
            node.listed |= matches!(done.call.name(), "getdents" | "getdents64");
        }
        effect.paths = paths.into_iter().map(|(_, path)| path).collect();
        effect
    }

    /// The descriptions of its descriptors.
    fn meet(&mut self, process: u32, done: &Done, effect: &mut Effect) {
        for index in 0..done.call.used(done.arguments) {
            let descriptor = done.arguments[index] as i32;
            match done.kind(index) {
                Kind::Fd | Kind::DirFd if descriptor >= 0 => {}
                _ => continue,
            }
            match self.description(process, descriptor) {
                Some(description) => {
                    effect.descriptions.push(description);
                    effect.nodes.extend(self.opened[description as usize].node);
                }
                // What dup3 makes is not open before.
                None if index == 1 && matches!(done.call.name(), "dup2" | "dup3") => {}
                None => effect.closed = Some(descriptor),
            }
        }
    }

    fn names_change(
        &mut self,
        process: u32,
        done: &Done,
        (first, second): (Option<&[u8]>, Option<&[u8]>),
        effect: &mut Effect,
    ) {
        let Some(path) = first else { return };
        match name_change(done) {
            NameChange::Nothing => return,
            NameChange::MakesDirectory => {
                effect.nodes.push(self.names.add(path.to_vec(), NodeKind::Directory, true));
            }
            NameChange::MakesNode { .. } => {
                effect.nodes.push(self.names.add(path.to_vec(), EMPTY_FILE, true))
            }
            NameChange::MakesLink => {
                let to = done.text(0).unwrap_or_default().into();
                effect.nodes.push(self.names.add(path.to_vec(), NodeKind::Link(to), true));
            }
            NameChange::Removes { .. } => drop(self.names.remove(path)),
            NameChange::LinksDescriptor(descriptor) => {
                let Some(node) = self.node_behind(process, descriptor) else { return };
                effect.nodes.push(node);
                self.names.name_too(node, path.to_vec());
            }
            change @ (NameChange::Renames { .. } | NameChange::Links) => {
                let Some(to) = second else { return };
                let node = self.found_or(path, unknown_file());
                effect.nodes.push(node);
                match change {
                    NameChange::Links => self.names.name_too(node, to.to_vec()),
                    NameChange::Renames { swaps: true } => self.names.exchange(path, to),
                    // Two names of one file: nothing happens.
                    _ if Some(node) == self.names.find(to) => {}
                    _ => self.names.rename(path, to),
                }
            }
        }
        effect.of_names = true;
    }

    /// The file of a name; an unknown one was there before.
    fn found_or(&mut self, path: &[u8], kind: NodeKind) -> NodeId {
        self.names.find(path).unwrap_or_else(|| self.names.add(path.to_vec(), kind, false))
    }

    fn descriptors_change(&mut self, process: u32, done: &Done, path: Option<&[u8]>, effect: &mut Effect) {
        let change = descriptor_change(done);
        if done.call.name() == "fcntl" && !done.failed() {
            effect.of_descriptors = change != DescriptorChange::Nothing;
        }
        match change {
            DescriptorChange::Opens { descriptor, what: Opens::Path, flags } => {
                let node = path.map(|path| self.opens(path, flags, effect));
                effect.nodes.extend(node);
                effect.descriptions.push(self.open(process, descriptor, node, flags));
            }
            DescriptorChange::Opens { descriptor, what, flags } => {
                let description = self.open(process, descriptor, None, flags);
                effect.descriptions.push(description);
                if what == Opens::Accepted {
                    self.joins(done, description, effect);
                }
            }
            DescriptorChange::OpensPair { descriptors: Some(pair), sockets, flags } => {
                for (descriptor, end) in pair.into_iter().zip(End::both(self.streams, sockets)) {
                    let description = self.open(process, descriptor, None, flags);
                    self.opened[description as usize].pipe = Some(end);
                    effect.descriptions.push(description);
                }
                self.streams += 1 + u32::from(sockets);
            }
            DescriptorChange::Connects(descriptor) => {
                if let Some(description) = self.description(process, descriptor) {
                    self.joins(done, description, effect);
                }
            }
            DescriptorChange::SetsFlags { descriptor, flags: set } => {
                if let Some(description) = self.description(process, descriptor) {
                    let flags = &mut self.opened[description as usize].flags;
                    *flags = *flags & !SETTABLE | set & SETTABLE;
                }
            }
            DescriptorChange::EntersPath => {
                if let Some(path) = path {
                    let node = self.found_or(path, NodeKind::Directory);
                    effect.nodes.push(node);
                    self.process(process).place = node;
                }
            }
            DescriptorChange::EntersDescriptor(descriptor) => {
                if let Some(node) = self.node_behind(process, descriptor) {
                    self.process(process).place = node;
                }
            }
            DescriptorChange::Closes(_) => {
                // The oldest: meet() named the youngest.
                if let Some((_, slot)) = self.process(process).table.apply(&change).first() {
                    effect.descriptions = smallvec::smallvec![slot.behind];
                }
            }
            DescriptorChange::ClosesRange { .. } => {
                let closed = self.process(process).table.apply(&change);
                effect.descriptions.extend(closed.iter().map(|(_, slot)| slot.behind));
            }
            DescriptorChange::MarksRange { first, last } => {
                let table = &mut self.process(process).table;
                table.apply(&change);
                effect.descriptions.extend(table.range(first, last).map(|(_, slot)| slot.behind));
            }
            DescriptorChange::Copies { .. } | DescriptorChange::Marks { .. } => {
                self.process(process).table.apply(&change);
            }
            DescriptorChange::OpensPair { descriptors: None, .. } | DescriptorChange::Nothing => {}
        }
    }

    /// One half of a connection between two sockets, which both name.
    fn joins(&mut self, done: &Done, own: Description, effect: &mut Effect) {
        let Some(name) = done.text(1) else { return };
        let end = match self.half_made.remove(name) {
            Some((end, other)) => {
                effect.descriptions.push(other);
                end
            }
            None => {
                let [end, other] = End::both(self.streams, true);
                self.streams += 2;
                self.half_made.insert(name.to_vec(), (other, own));
                end
            }
        };
        self.opened[own as usize].pipe = Some(end);
    }

    /// The file that an open finds, makes or empties.
    fn opens(&mut self, path: &[u8], flags: u64, effect: &mut Effect) -> NodeId {
        if is_nameless(flags) {
            return self.names.add_nameless();
        }
        let node = self.names.find(path).unwrap_or_else(|| {
            let made = flags & O_CREAT != 0;
            effect.of_names |= made;
            let kind = match made {
                _ if flags & O_DIRECTORY != 0 => NodeKind::Directory,
                true => EMPTY_FILE,
                false => unknown_file(),
            };
            self.names.add(path.to_vec(), kind, made)
        });
        if flags & O_TRUNC != 0 {
            self.truncate(node, 0);
        }
        node
    }

    fn memory_changes(&mut self, process: u32, done: &Done, effect: &mut Effect) {
        let [address, length, ..] = *done.arguments;
        let name = done.call.name();
        if !matches!(name, "mmap" | "munmap" | "mremap" | "msync" | "mprotect" | "madvise") {
            return;
        }
        if name == "mmap" {
            let descriptor = done.arguments[4] as i32;
            let description = self.description(process, descriptor);
            self.process(process).mappings.insert(done.result as u64, (length, description));
            return;
        }
        let Some((begin, description)) = self.process(process).mapping(address) else { return };
        effect.descriptions.extend(description);
        effect.nodes.extend(description.and_then(|number| self.opened[number as usize].node));
        if begin != address {
            return;
        }
        let mappings = &mut self.process(process).mappings;
        match name {
            "munmap" => drop(mappings.remove(&begin)),
            "mremap" => {
                mappings.remove(&begin);
                mappings.insert(done.result as u64, (done.arguments[2], description));
            }
            _ => {}
        }
    }
}
