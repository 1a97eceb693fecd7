//! The objects of a file set, in the order of both populators, and the room that the missing ones need.

use etude_workload::{FileSet, Object};

use crate::file_set::gate::Numbers;

/// A file set, with what comes and goes.
pub(crate) struct Population {
    pub set: FileSet,
    pub numbers: Numbers,
}

impl Population {
    pub fn new(set: FileSet) -> Population {
        let numbers = Numbers::of(&set);
        Population { set, numbers }
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

    /// True if it exists before the first request.
    pub fn at_first(&self, object: Object) -> bool {
        match object {
            Object::Directory(index) => index < self.set.directories(),
            Object::File(index) => self.set.file(index).present,
            Object::Link(index) => index < self.set.links(),
        }
    }

    /// Relative to the set's root.
    pub fn path(&self, object: Object) -> String {
        match object {
            Object::Directory(index) => self.set.path_of_directory(index),
            Object::File(index) => self.set.path_of_file(index),
            Object::Link(index) => self.set.path_of_link(index),
        }
    }

    /// All that exists before the first request: directories after their parents, then files, then links.
    pub fn all_at_first(&self) -> impl Iterator<Item = Object> {
        self.numbers.all().filter(|object| self.at_first(*object))
    }

    /// Objects in each directory before the first request; the root is in none.
    pub fn contents(&self) -> Vec<Vec<Object>> {
        let mut found = vec![Vec::new(); self.set.directories()];
        for object in self.all_at_first().filter(|object| *object != Object::Directory(0)) {
            if let Some(inside) = found.get_mut(self.place(object).0) {
                inside.push(object);
            }
        }
        found
    }
}

/// Free space and inodes; None: it does not report them, or makes inodes on demand (btrfs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub bytes: Option<u64>,
    pub nodes: Option<u64>,
    pub block: u64,
}

/// Space and inodes that the missing part of a file set takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Need {
    pub bytes: u64,
    pub nodes: u64,
}

impl Need {
    /// Adds an object, of which so many bytes exist; None: it does not.
    pub fn add(&mut self, population: &Population, object: Object, existing: Option<u64>, block: u64) {
        self.nodes += u64::from(existing.is_none());
        self.bytes += match object {
            Object::File(file) => {
                let bytes = population.set.file(file).bytes.next_multiple_of(block);
                bytes.saturating_sub(existing.unwrap_or(0))
            }
            _ if existing.is_none() => block,
            _ => 0,
        };
    }

    /// # Errors
    /// There is not enough, in one line.
    pub fn check(&self, room: &Room) -> Result<(), String> {
        if let Some(free) = room.bytes.filter(|free| self.bytes > *free) {
            let (needed, free) = (mebibytes(self.bytes), mebibytes(free));
            return Err(format!("{needed} are missing for the file set, and {free} are free"));
        }
        if let Some(free) = room.nodes.filter(|free| self.nodes > *free) {
            return Err(format!("{} inodes are missing for the file set, and {free} are free", self.nodes));
        }
        Ok(())
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
}

#[cfg(test)]
mod tests {
    use etude_workload::Workload;

    use super::*;

    #[test]
    fn a_need_that_does_not_fit_is_one_line_with_both_amounts() {
        let room = Room { bytes: Some(10 << 20), nodes: Some(5), block: 4096 };
        let refused = |bytes, nodes, room: &Room| Need { bytes, nodes }.check(room);
        assert_eq!(refused(10 << 20, 5, &room), Ok(()));
        let line = refused((10 << 20) + 1, 5, &room).unwrap_err();
        assert!(line.contains("10.0 MiB are free") && !line.contains('\n'), "{line}");
        assert!(refused(0, 6, &room).unwrap_err().contains("6 inodes are missing"));
        assert_eq!(refused(1 << 60, 1 << 40, &Room { bytes: None, nodes: None, block: 4096 }), Ok(()));
    }

    #[test]
    fn all_that_exists_at_first_is_in_one_directory_behind_its_parent_and_needs_room_once() {
        let set = FileSet::new(&Workload::preset("postmark").unwrap(), 1.0, 3).unwrap();
        let population = Population::new(set);
        let contents = population.contents();
        let mut inside: Vec<Object> = contents.concat();
        inside.sort_by_key(|object| population.numbers.number(*object));
        assert_eq!(inside, population.all_at_first().skip(1).collect::<Vec<_>>());
        for (directory, objects) in contents.iter().enumerate() {
            assert!(objects.iter().all(|object| population.place(*object).0 == directory));
            let below = |object: &&Object| matches!(object, Object::Directory(index) if *index <= directory);
            assert_eq!(objects.iter().find(below), None);
        }
        let (mut all, mut none) = (Need::default(), Need::default());
        for object in inside.iter().copied() {
            all.add(&population, object, None, 4096);
            none.add(&population, object, Some(1 << 40), 4096);
        }
        assert_eq!((all.nodes, none), (inside.len() as u64, Need::default()));
        let bytes = |object: &Object| match object {
            Object::File(file) => population.set.file(*file).bytes.div_ceil(4096) * 4096,
            _ => 4096,
        };
        assert_eq!(all.bytes, inside.iter().map(bytes).sum::<u64>());
    }
}
