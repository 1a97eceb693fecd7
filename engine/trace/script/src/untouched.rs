//! Files that steps only read: one copy of them does for any number of replays.

use std::collections::HashSet;

use crate::model::{Needed, Script, Step, What};
use crate::world::{NodeId, World, key};

/// Follows steps, and which of the needed files they may change.
pub struct Untouched {
    world: World,
    /// Needed files by where they stand at the beginning.
    files: Vec<(Vec<u8>, Option<NodeId>)>,
    touched: HashSet<NodeId>,
    /// Also by name: of threads that do not wait for each other, the order of renames is not known.
    touched_names: HashSet<Vec<u8>>,
}

impl Untouched {
    pub fn new(needed: &[Needed]) -> Untouched {
        let world = World::new(&Script { needed: needed.to_vec(), ..Script::default() });
        let is_file = |each: &&Needed| matches!(each.what, What::File { .. });
        let files = needed.iter().filter(is_file).map(|each| key(&each.path));
        let files = files.map(|path| (path.clone(), world.names.find(&path))).collect();
        Untouched { world, files, touched: HashSet::new(), touched_names: HashSet::new() }
    }

    /// Takes the next step; `touches`: it may change, move, remove or lock what it meets.
    pub fn step(&mut self, step: &Step, touches: bool) {
        let effect = self.world.step(step);
        if touches {
            self.touched.extend(effect.nodes);
            self.touched_names.extend(effect.paths);
        }
    }

    /// Paths, from the root, of needed files that no step has touched.
    pub fn files(self) -> HashSet<Vec<u8>> {
        let Untouched { files, touched, touched_names, .. } = self;
        let untouched = files.into_iter().filter(|(path, node)| {
            node.is_some_and(|node| !touched.contains(&node)) && !touched_names.contains(path)
        });
        untouched.map(|(path, _)| path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Action;

    fn untouched(text: &str, touches: &[&str]) -> Vec<String> {
        let script = crate::parse("test", text.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}")).script;
        let mut files = Untouched::new(&script.needed);
        for step in &script.steps {
            let name = if let Action::Call(called) = &step.action { called.call.name() } else { "" };
            files.step(step, touches.contains(&name));
        }
        let mut found: Vec<_> =
            files.files().into_iter().map(|path| String::from_utf8(path).unwrap()).collect();
        found.sort();
        found
    }

    #[test]
    fn a_file_is_known_by_all_its_names_and_descriptors() {
        let text = "etude script 1\nfile \"d/a\" 9\nfile \"d/b\" 9\nfile \"d/c\" 9\nfile \"d/e\" 9\nlink \"l\" to \"d\"\n\
                    name \"other\" of \"d/b\"\n\
                    openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 3\nopenat(3, \"a\", O_RDONLY) = 4\n\
                    dup(4) = 5\nfchmod(5, 0600) = 0\nunlink(\"other\") = 0\nrename(\"l/c\", \"x\") = 0\n";
        assert_eq!(untouched(text, &["fchmod", "unlink", "rename"]), ["d/e"]);
        assert_eq!(untouched(text, &["fchmod"]), ["d/b", "d/c", "d/e"]);
        assert_eq!(untouched(text, &["unlink"]), ["d/a", "d/c", "d/e"]);
    }

    #[test]
    fn a_file_in_a_directory_that_is_renamed_is_the_same_file() {
        let text = "etude script 1\nfile \"d/a\" 9\nfile \"d/b\" 9\nrename(\"d\", \"e\") = 0\n\
                    truncate(\"e/a\", 0) = 0\n";
        assert_eq!(untouched(text, &["rename", "truncate"]), ["d/b"]);
    }

    #[test]
    fn a_call_that_failed_touches_what_it_was_asked_for() {
        let text = "etude script 1\nfile \"a\" 9\nfile \"b\" 9\ntruncate(\"a\", 0) = -1 EACCES\n\
                    truncate(\"none\", 0) = -1 ENOENT\n";
        assert_eq!(untouched(text, &["truncate"]), ["b"]);
    }
}
