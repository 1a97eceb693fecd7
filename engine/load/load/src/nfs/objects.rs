//! All files, directories and links of a file set, with the handles by which the server knows them.

use etude_nfs::Handle;
use etude_workload::{FileSet, Object};

use crate::file_set::population::Population;

pub(crate) struct Objects {
    pub population: Population,
    handles: Vec<Option<Handle>>,
}

impl Objects {
    pub fn new(set: FileSet) -> Objects {
        let population = Population::new(set);
        Objects { handles: vec![None; population.numbers.len()], population }
    }

    /// The handle, where it is known.
    pub fn handle(&self, object: Object) -> Option<Handle> {
        *self.handles.get(self.population.numbers.number(object))?
    }

    pub fn know(&mut self, object: Object, handle: Option<Handle>) {
        let number = self.population.numbers.number(object);
        if let Some(known) = self.handles.get_mut(number) {
            *known = handle;
        }
    }
}
