//! Names: whoever changes what stands at one waits for all that used it.

use etude_calls::Kind;
use etude_fsmodel::{
    Done, EMPTY, NameChange, directory_of, is_link_target, is_of_directory, moved, name_operation, named,
    resolve,
};
use etude_script::Called;

use super::Order;
use super::descriptors::creates;
use super::waits::{Edge, Point};

impl Order {
    /// Paths: whoever changes what stands at one waits for all that used it.
    pub(super) fn name_space(&mut self, here: Point, process: u32, called: &Called) {
        let done = called.done();
        let changes = called.result >= 0
            && (name_operation(&done) != NameChange::Nothing || called.call.name() == "truncate");
        let creates = called.result >= 0 && creates(called);
        self.where_it_stands(here, process, called);
        for path in self.paths(process, &done) {
            let thing = self.name(&path);
            if changes || creates && !self.files.contains_key(&path) {
                self.makes(here, thing, Edge::Names);
            } else {
                self.uses(here, thing, Edge::Names);
            }
            let mut below = &path[..];
            while let Some(directory) = parent(below) {
                let thing = self.name(directory);
                self.uses(here, thing, Edge::Names);
                below = directory;
            }
        }
    }

    /// A process goes elsewhere after all names that were meant from where it was.
    fn where_it_stands(&mut self, here: Point, process: u32, called: &Called) {
        let place = self.place(process);
        if is_of_directory(called.call) && called.result >= 0 {
            self.makes(here, place, Edge::Names);
        } else if called.call.name() == "getcwd" || is_relative(called) {
            self.uses(here, place, Edge::Names);
        }
    }

    /// Where a process stands, as a thing.
    pub(super) fn place(&mut self, process: u32) -> usize {
        if let Some(place) = self.places_of.get(&process) {
            return *place;
        }
        let place = self.thing(None);
        self.places_of.insert(process, place);
        place
    }

    fn name(&mut self, path: &[u8]) -> usize {
        if let Some(thing) = self.names.get(path) {
            return *thing;
        }
        let thing = self.thing(None);
        self.names.insert(path.to_vec(), thing);
        thing
    }

    /// All paths of a call, from the root on. Links are not followed.
    pub(super) fn paths(&self, process: u32, done: &Done) -> Vec<Vec<u8>> {
        named(done)
            .map(|(index, path)| {
                let base = self.directory(process, directory_of(done, index)).unwrap_or_default();
                resolve(EMPTY, &base, path, false, |_, _| None)
            })
            .collect()
    }

    /// The directory behind a descriptor; without one that of the process.
    pub(super) fn directory(&self, process: u32, descriptor: Option<i32>) -> Option<Vec<u8>> {
        match descriptor {
            None => self.cwd.get(&process).cloned(),
            Some(descriptor) => {
                self.directories.get(&self.slot_of(process, descriptor)?.description).cloned()
            }
        }
    }

    /// A file, or a directory with all that is in it, is called otherwise; so is what is open there.
    pub(super) fn renames(&mut self, from: &[u8], to: &[u8], swaps: bool) {
        // Two names of one file: nothing happens.
        if !swaps && self.files.get(from).is_some_and(|file| self.files.get(to) == Some(file)) {
            return;
        }
        let (there, back) = (self.take(from), self.take(to));
        let put = |at: &[u8], files: Vec<(Vec<u8>, usize)>| {
            let named = |(rest, file): (Vec<u8>, usize)| ([at, &rest].concat(), file);
            files.into_iter().map(named).collect::<Vec<_>>()
        };
        self.files.extend(put(to, there));
        if swaps {
            self.files.extend(put(from, back));
        }
        let renamed = |path: &[u8]| moved(path, from, to).or_else(|| moved(path, to, from).filter(|_| swaps));
        let open =
            self.tables.values().flat_map(|table| table.iter().map(|(_, slot)| slot.behind.description));
        let mut open: Vec<usize> = open.collect();
        open.sort_unstable();
        open.dedup();
        for description in open {
            if let Some(path) = self.directories.get_mut(&description)
                && let Some(now) = renamed(path)
            {
                *path = now;
            }
        }
        for path in self.cwd.values_mut() {
            if let Some(now) = renamed(path) {
                *path = now;
            }
        }
    }

    /// Takes away the names of a file and of all that is below it; they are given without it.
    fn take(&mut self, path: &[u8]) -> Vec<(Vec<u8>, usize)> {
        let below = [path, b"/"].concat();
        let names = self.files.range(below.clone()..).take_while(|(name, _)| name.starts_with(&below));
        let mut names: Vec<Vec<u8>> = names.map(|(name, _)| name.clone()).collect();
        names.push(path.to_vec());
        let taken = names.into_iter().filter_map(|name| Some((self.files.remove(&name)?, name)));
        taken.map(|(file, name)| (name[path.len()..].to_vec(), file)).collect()
    }
}

/// Whether a call names something from where its process stands.
fn is_relative(called: &Called) -> bool {
    let done = called.done();
    done.texts().any(|(index, text)| {
        done.kind(index) == Kind::Path
            && !is_link_target(done.call, index)
            && !text.starts_with(b"/")
            && directory_of(&done, index).is_none()
    })
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    (slash > 0).then(|| &path[..slash])
}
