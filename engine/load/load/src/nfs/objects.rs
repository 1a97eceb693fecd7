//! All files, directories and links of a file set, with the handles by which the server knows them.

use etude_nfs::Handle;
use etude_workload::{FileSet, Object};

use crate::gate::Numbers;

pub(crate) struct Objects {
    pub set: FileSet,
    handles: Vec<Option<Handle>>,
    pub numbers: Numbers,
}

impl Objects {
    pub fn new(set: FileSet) -> Objects {
        let numbers = Numbers::of(&set);
        Objects { set, handles: vec![None; numbers.len()], numbers }
    }

    /// The handle, where it is known.
    pub fn handle(&self, object: Object) -> Option<Handle> {
        *self.handles.get(self.numbers.number(object))?
    }

    pub fn know(&mut self, object: Object, handle: Option<Handle>) {
        let number = self.numbers.number(object);
        if let Some(known) = self.handles.get_mut(number) {
            *known = handle;
        }
    }

    /// The directory in which it is, and its name there. The root is in itself.
    pub fn place(&self, object: Object) -> (usize, String) {
        match object {
            Object::Directory(index) => {
                let found = self.set.directory(index);
                found.parent.map_or_else(|| (0, ".".to_owned()), |parent| (parent, found.name))
            }
            Object::File(index) => {
                let found = self.set.file(index);
                (found.directory, found.name)
            }
            Object::Link(index) => {
                let found = self.set.link(index);
                (found.directory, found.name)
            }
        }
    }

    /// Whether it is there before the first request.
    pub fn at_first(&self, object: Object) -> bool {
        match object {
            Object::Directory(index) => index < self.set.directories(),
            Object::File(index) => self.set.file(index).present,
            Object::Link(index) => index < self.set.links(),
        }
    }

    /// For messages: relative to the set's root.
    pub fn path(&self, object: Object) -> String {
        match object {
            Object::Directory(index) => self.set.path_of_directory(index),
            Object::File(index) => self.set.path_of_file(index),
            Object::Link(index) => self.set.path_of_link(index),
        }
    }
}
