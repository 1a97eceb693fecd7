//! Control groups of version 1: a hierarchy for each controller.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{Group, empty, kill_each, make, move_into, remove};

/// One group, in as many hierarchies as can be used.
pub(crate) struct V1 {
    /// The group and the one in which the engine was before.
    directories: Vec<(PathBuf, PathBuf)>,
    cpu: Result<File, String>,
    peak: Result<File, String>,
    was_reset: Result<(), String>,
}

impl V1 {
    /// Makes and enters the group `name` below each of `places`.
    pub fn enter(places: &[(&'static str, PathBuf)], name: &str) -> Result<V1, String> {
        let unknown =
            |controller: &str| Err(format!("no cgroup v1 controller {controller} can be used here"));
        let mut group = V1 {
            directories: Vec::new(),
            cpu: unknown("cpuacct"),
            peak: unknown("memory"),
            was_reset: Err("not started".to_owned()),
        };
        for (controller, own) in places {
            let directory = own.join(name);
            let file = match *controller {
                "cpuacct" => &mut group.cpu,
                _ => &mut group.peak,
            };
            *file = enter_one(&directory).and_then(|()| open(controller, &directory));
            if file.is_ok() {
                group.directories.push((directory, own.clone()));
            } else {
                leave_one(&directory, own);
            }
        }
        if group.directories.is_empty() {
            return Err(group.cpu.err().or(group.peak.err()).unwrap_or_default());
        }
        Ok(group)
    }
}

fn enter_one(directory: &Path) -> Result<(), String> {
    make(directory)?;
    empty(directory, kill_each);
    move_into(directory)
}

fn leave_one(directory: &Path, own: &Path) {
    // Whatever fails here has no better place to be reported than the group that stays behind.
    let _ = fs::write(own.join("cgroup.procs"), "0");
    empty(directory, kill_each);
    remove(directory);
}

fn open(controller: &str, directory: &Path) -> Result<File, String> {
    let (name, writing) = match controller {
        "cpuacct" => ("cpuacct.usage", false),
        _ => ("memory.max_usage_in_bytes", true),
    };
    let path = directory.join(name);
    let file = OpenOptions::new().read(true).write(writing).open(&path);
    file.map_err(|error| format!("{}: {error}", path.display()))
}

fn number(file: &Result<File, String>) -> Result<u64, String> {
    let mut text = [0; 32];
    let length =
        file.as_ref().map_err(Clone::clone)?.read_at(&mut text, 0).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
    text.trim().parse().map_err(|_| format!("cgroup: {text:?} is no number"))
}

impl Group for V1 {
    fn cpu_ns(&self) -> Result<u64, String> {
        number(&self.cpu)
    }

    fn reset_peak(&mut self) {
        let file = self.peak.as_ref().map_err(Clone::clone);
        self.was_reset = file.and_then(|file| {
            let reset = file.write_at(b"0", 0);
            reset.map(drop).map_err(|error| format!("memory.max_usage_in_bytes cannot be reset: {error}"))
        });
    }

    fn peak_memory_bytes(&self) -> Result<u64, String> {
        self.was_reset.clone().and_then(|()| number(&self.peak))
    }

    fn moved_bytes(&self) -> (Result<u64, String>, Result<u64, String>) {
        let unknown = || Err("cgroup v1 miscounts I/O".to_owned());
        (unknown(), unknown())
    }

    fn join(&mut self) -> Result<(), String> {
        self.directories.iter().try_for_each(|(directory, _)| move_into(directory))
    }

    fn leave(&mut self) {
        for (directory, own) in self.directories.drain(..) {
            leave_one(&directory, &own);
        }
    }
}
