//! A machine laid out as files, for tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::kept::Root;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory with `proc` and `sys` in it; it goes with this.
pub struct Tree(PathBuf);

impl Tree {
    pub fn new(files: &[(&str, &str)]) -> Tree {
        let name = format!("etude-monitor-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let tree = Tree(std::env::temp_dir().join(name));
        tree.put("proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nprocesses 1\n");
        for (path, text) in files {
            tree.put(path, text);
        }
        tree
    }

    /// Writes a file in place: who has it open reads the new text.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let path = self.0.join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    pub fn root(&self) -> Root {
        Root::new(&self.0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
