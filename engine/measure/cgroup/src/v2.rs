//! Control groups of version 2: one hierarchy for all controllers.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::place::V2Place;
use crate::{Group, empty, kill_each, make, move_into, remove};

/// One group.
pub(crate) struct V2 {
    directory: PathBuf,
    /// The group in which the engine was before.
    own: PathBuf,
    /// Controllers that we enabled for the children of `own`, to be disabled again.
    enabled: Vec<String>,
    cpu: Result<File, String>,
    peak: Result<File, String>,
    io: Result<File, String>,
    was_reset: Result<(), String>,
}

impl V2 {
    /// Makes and enters the group `name` below the engine's own group, or beside it where only there more is counted.
    pub fn enter(place: &V2Place, name: &str) -> Result<V2, String> {
        let below = place.own.join(name);
        let beside = place.own.parent().filter(|_| place.beside).map(|parent| parent.join(name));
        let enabled = enable(&place.own, &place.controllers);
        let missing =
            |directory: &Path| place.controllers.iter().any(|name| name != "cpu" && !has(directory, name));
        let mut last = String::new();
        for directory in [Some(below), beside].into_iter().flatten() {
            let is_last = directory.parent() != Some(&place.own) || !place.beside;
            match enter_one(&directory) {
                Ok(()) if is_last || !missing(&directory) => return Ok(V2::open(place, directory, enabled)),
                Ok(()) => leave_one(&directory, &place.own),
                Err(error) => {
                    remove(&directory);
                    last = error;
                }
            }
        }
        disable(&place.own, &enabled);
        Err(last)
    }

    fn open(place: &V2Place, directory: PathBuf, enabled: Vec<String>) -> V2 {
        let read = |name: &str| {
            let error = |error| format!("{name}: {error}; its controller is not enabled for this group");
            File::open(directory.join(name)).map_err(error)
        };
        let peak = OpenOptions::new().read(true).write(true).open(directory.join("memory.peak"));
        let peak = peak.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                "memory.peak: not enabled for this group, or Linux before 5.19".to_owned()
            }
            _ => format!("memory.peak cannot be reset (Linux before 6.12?): {error}"),
        });
        let (cpu, io) = (read("cpu.stat"), read("io.stat"));
        let was_reset = Err("not started".to_owned());
        V2 { own: place.own.clone(), enabled, cpu, peak, io, was_reset, directory }
    }
}

fn has(directory: &Path, controller: &str) -> bool {
    let list = fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
    list.split_whitespace().any(|name| name == controller)
}

/// Enables what is not enabled yet for the children of `own`; refusals (it holds processes) are expected.
fn enable(own: &Path, controllers: &[String]) -> Vec<String> {
    let already = fs::read_to_string(own.join("cgroup.subtree_control")).unwrap_or_default();
    let is_missing =
        |name: &&String| name.as_str() != "cpu" && !already.split_whitespace().any(|known| known == *name);
    let try_one = |name: &&String| fs::write(own.join("cgroup.subtree_control"), format!("+{name}")).is_ok();
    controllers.iter().filter(is_missing).filter(try_one).cloned().collect()
}

fn disable(own: &Path, controllers: &[String]) {
    for name in controllers {
        // Another group may use it by now; then it stays.
        let _ = fs::write(own.join("cgroup.subtree_control"), format!("-{name}"));
    }
}

fn enter_one(directory: &Path) -> Result<(), String> {
    make(directory)?;
    kill_all(directory);
    move_into(directory)
}

fn leave_one(directory: &Path, own: &Path) {
    // Whatever fails here has no better place to be reported than the group that stays behind.
    let _ = fs::write(own.join("cgroup.procs"), "0");
    kill_all(directory);
    remove(directory);
}

/// Kills all in a group that the engine is not in: at once from Linux 5.14 on, before one by one.
fn kill_all(directory: &Path) {
    empty(directory, |pids| {
        if fs::write(directory.join("cgroup.kill"), "1").is_err() {
            kill_each(pids);
        }
    });
}

fn text(file: &Result<File, String>) -> Result<String, String> {
    let file = file.as_ref().map_err(Clone::clone)?;
    let mut text = vec![0; 4096];
    let mut length = 0;
    loop {
        match file.read_at(&mut text[length..], length as u64).map_err(|error| error.to_string())? {
            0 => break,
            more => length += more,
        }
        if length == text.len() {
            text.resize(2 * length, 0);
        }
    }
    text.truncate(length);
    String::from_utf8(text).map_err(|_| "cgroup: not text".to_owned())
}

/// `usage_usec` of a `cpu.stat`, as ns.
fn usage_ns(stat: &str) -> Result<u64, String> {
    let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse::<u64>().ok());
    usage.map(|us| us * 1000).ok_or_else(|| "cpu.stat: no usage_usec".to_owned())
}

/// The sum of one key over all devices of an `io.stat`.
fn io_sum(stat: &str, key: &str) -> u64 {
    let value = |field: &str| field.strip_prefix(key)?.strip_prefix('=')?.parse::<u64>().ok();
    stat.split_whitespace().filter_map(value).sum()
}

impl Group for V2 {
    fn cpu_ns(&self) -> Result<u64, String> {
        usage_ns(&text(&self.cpu)?)
    }

    fn reset_peak(&mut self) {
        self.was_reset = self.peak.as_ref().map_err(Clone::clone).and_then(|file| {
            let reset = file.write_at(b"reset\n", 0);
            reset
                .map(drop)
                .map_err(|error| format!("memory.peak cannot be reset (Linux before 6.12?): {error}"))
        });
    }

    fn peak_memory_bytes(&self) -> Result<u64, String> {
        self.was_reset.clone()?;
        text(&self.peak)?.trim().parse().map_err(|_| "memory.peak: no number".to_owned())
    }

    fn moved_bytes(&self) -> (Result<u64, String>, Result<u64, String>) {
        let stat = text(&self.io);
        let sum = |key| stat.as_ref().map(|stat| io_sum(stat, key)).map_err(Clone::clone);
        (sum("rbytes"), sum("wbytes"))
    }

    fn join(&mut self) -> Result<(), String> {
        move_into(&self.directory)
    }

    fn leave(&mut self) {
        leave_one(&self.directory, &self.own);
        disable(&self.own, &std::mem::take(&mut self.enabled));
    }
}

#[cfg(test)]
mod tests {
    use super::{io_sum, usage_ns};

    #[test]
    fn recorded_files_are_read() {
        let cpu = "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\nnr_periods 0\n";
        assert_eq!(usage_ns(cpu), Ok(1_234_567_000));
        assert!(usage_ns("user_usec 1\n").is_err());
        let io = "8:0 rbytes=4096 wbytes=1000 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=1 wbytes=24 rios=1 wios=1\n7:0 \n";
        assert_eq!((io_sum(io, "rbytes"), io_sum(io, "wbytes")), (4097, 1024));
        assert_eq!(io_sum("", "rbytes"), 0);
    }
}
