//! The paths of all objects of a file set, as the kernel wants them, ready before the load begins.

use std::ffi::CStr;

use etude_workload::{FileSet, Object};

/// One after the other, each ended by a zero.
struct Names {
    text: Vec<u8>,
    begins: Vec<usize>,
}

impl Names {
    fn of(count: usize, path: impl Fn(usize) -> String) -> Names {
        let mut names = Names { text: Vec::new(), begins: Vec::with_capacity(count) };
        for index in 0..count {
            names.begins.push(names.text.len());
            let path = path(index);
            // The root has no path of its own; names never hold a zero.
            names.text.extend_from_slice(if path.is_empty() { b"." } else { path.as_bytes() });
            names.text.push(0);
        }
        names
    }

    fn get(&self, index: usize) -> &CStr {
        let begin = self.begins.get(index).copied().unwrap_or(self.text.len());
        CStr::from_bytes_until_nul(&self.text[begin..]).unwrap_or_default()
    }
}

/// Relative to the file set's root.
pub(crate) struct Paths {
    files: Names,
    directories: Names,
    links: Names,
}

impl Paths {
    pub fn of(set: &FileSet) -> Paths {
        Paths {
            files: Names::of(set.files(), |index| set.path_of_file(index)),
            directories: Names::of(set.directories() + set.spare_directories(), |index| {
                set.path_of_directory(index)
            }),
            links: Names::of(set.links() + set.spare_links(), |index| set.path_of_link(index)),
        }
    }

    /// Empty, which names nothing, for an object that is none of the set's.
    pub fn get(&self, object: Object) -> &CStr {
        match object {
            Object::File(index) => self.files.get(index),
            Object::Directory(index) => self.directories.get(index),
            Object::Link(index) => self.links.get(index),
        }
    }

    pub fn files(&self) -> usize {
        self.files.begins.len()
    }
}
