//! What was done, beside the files that it left: written when it begins, so that nothing half done looks whole.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::{Failed, machine};

pub const FORMAT: &str = "etude-aging";
const NAME: &str = "manifest.json";
/// It is written over itself: on a full file system there is no room for another.
const BYTES: usize = 8192;

pub struct Manifest {
    file: File,
    path: PathBuf,
    members: Map<String, Value>,
}

impl Manifest {
    /// Begin one in a directory that is just made.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(directory: &Path, members: Map<String, Value>) -> Result<Manifest, Failed> {
        let path = directory.join(NAME);
        let file = File::create_new(&path).map_err(|error| machine(path.display(), &error))?;
        let mut manifest = Manifest { file, path, members };
        manifest.set("complete", json!(false));
        manifest.write()?;
        Ok(manifest)
    }

    pub fn set(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// # Errors
    /// It cannot be written; what stood there before may still stand there.
    pub fn write(&self) -> Result<(), Failed> {
        let mut text = serde_json::to_vec_pretty(&self.members).expect("plain data");
        text.resize(text.len().max(BYTES - 1), b' ');
        text.push(b'\n');
        let done = self.file.write_all_at(&text, 0).and_then(|()| self.file.sync_all());
        done.map_err(|error| machine(self.path.display(), &error))
    }
}

/// Whether a directory was left by `age`: it has a manifest of ours.
pub fn is_ours(directory: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let found: Value = serde_json::from_slice(&fs::read(directory.join(NAME))?)?;
        Ok(found["format"] == FORMAT)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_ended_says_so_and_is_known() {
        let directory = std::env::temp_dir().join(format!("etude-manifest-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("made");
        assert!(!is_ours(&directory));
        let members = json!({"format": FORMAT, "seed": 1}).as_object().cloned().expect("an object");
        let mut manifest = Manifest::begin(&directory, members).expect("begun");
        let read = || -> Value {
            serde_json::from_slice(&fs::read(directory.join(NAME)).expect("read")).expect("JSON")
        };
        assert!(is_ours(&directory));
        assert_eq!(read()["complete"], false);
        manifest.set("complete", json!(true));
        manifest.write().expect("written");
        assert_eq!((read()["complete"].clone(), read()["seed"].clone()), (json!(true), json!(1)));
        fs::remove_dir_all(&directory).expect("removed");
    }
}
