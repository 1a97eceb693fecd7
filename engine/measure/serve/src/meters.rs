//! What measures a trial as a whole: control group, perf events, I/O accounting.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use etude_cgroup::{Cgroups, Tree};
use etude_clock::seconds;
use etude_counters::{Counters, Counts};
use etude_launch::{Orphans, sys};
use etude_protocol::{Counting, Launch, Row, Value};

/// The meters of one engine.
pub(crate) struct Meters {
    pub cgroups: Cgroups,
    /// Why the group that was asked for could not be entered; None while none is asked for.
    group: Option<Result<(), String>>,
    counters: Option<Counters>,
    counting: Counting,
    floor: Floor,
    io: Result<File, String>,
    io_before: Result<Storage, String>,
}

/// What the meters showed for one trial.
pub(crate) struct Reading {
    /// Peak resident memory of the launcher, B.
    pub launcher_peak_bytes: Result<u64, String>,
    tree: Option<Tree>,
    counts: Option<Counts>,
    storage: Result<Storage, String>,
}

/// Bytes moved to and from storage, so far or in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Storage {
    read: u64,
    written: u64,
}

impl Meters {
    pub fn new(cgroups: Cgroups) -> io::Result<Meters> {
        let io = File::open("/proc/self/io").map_err(|error| format!("/proc/self/io: {error}"));
        let io_before = Err("not started".to_owned());
        let counting = Counting::Off;
        Ok(Meters { cgroups, group: None, counters: None, counting, floor: Floor::default(), io, io_before })
    }

    /// Sets up what a launch asks for. The error is one of the request.
    pub fn prepare(&mut self, launch: &Launch) -> Result<(), String> {
        self.group = match &launch.cgroup {
            None => None,
            Some(name) => {
                etude_cgroup::check(name)?;
                Some(self.cgroups.enter(name))
            }
        };
        if launch.counters != self.counting {
            self.counting = launch.counters;
            // Open events would be inherited, at a cost, by what nobody wants to be counted.
            self.counters = match launch.counters {
                Counting::Off => None,
                Counting::Auto => Some(Counters::open_with_hardware()),
                Counting::On => Some(Counters::open()),
            };
        }
        Ok(())
    }

    /// Leaves the machine as it was found.
    pub fn leave(&mut self) {
        self.cgroups.leave();
    }

    /// Reads everything before a trial; the CPU time of the group last. `follows`: another has just ended, and nothing
    /// but its lines was written since.
    pub fn start(&mut self, follows: bool) {
        if !follows {
            self.floor.look();
        }
        if let Some(counters) = self.counters.as_mut().filter(|_| !follows) {
            counters.start();
        }
        self.io_before = self.storage();
        if self.group == Some(Ok(())) {
            self.cgroups.start(follows);
        }
    }

    /// Reads everything after a trial; the CPU time of the group first.
    pub fn stop(&mut self) -> Reading {
        let tree = self.group.as_ref().map(|group| match group {
            Ok(()) => self.cgroups.stop(),
            Err(why) => Tree::unknown(why),
        });
        let storage = self.storage_since();
        let counts = self.counters.as_mut().map(Counters::stop);
        Reading { launcher_peak_bytes: self.floor.peak_bytes.clone(), tree, counts, storage }
    }

    fn storage_since(&self) -> Result<Storage, String> {
        let before = self.io_before.clone()?;
        let after = self.storage()?;
        Ok(Storage { read: after.read - before.read, written: after.written - before.written })
    }

    fn storage(&self) -> Result<Storage, String> {
        let file = self.io.as_ref().map_err(Clone::clone)?;
        let mut text = [0; 512];
        let length = file.read_at(&mut text, 0).map_err(|error| format!("/proc/self/io: {error}"))?;
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        let field = |name| {
            let line = text.lines().find_map(|line: &str| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|number| number.parse().ok()).ok_or_else(|| format!("/proc/self/io: no {name}"))
        };
        Ok(Storage { read: field("read_bytes")?, written: field("write_bytes")? })
    }
}

impl Reading {
    /// Adds the metrics of the trial to the row of its first worker.
    pub fn add_to(&self, row: &mut Row, orphans: &Orphans, launches: u32) {
        let per = |value: Value| value.per(launches);
        let metrics = &mut row.metrics;
        metrics.add("orphans", "1", Ok(per(Value::Whole(orphans.count))));
        metrics.add("orphans_user", "s", Ok(per(Value::Real(orphans.usage.user_us as f64 / 1e6))));
        metrics.add("orphans_system", "s", Ok(per(Value::Real(orphans.usage.system_us as f64 / 1e6))));
        let storage = self.storage.as_ref().map_err(Clone::clone);
        metrics.add("storage_read", "B", storage.clone().map(|storage| per(Value::Whole(storage.read))));
        metrics.add("storage_written", "B", storage.map(|storage| per(Value::Whole(storage.written))));
        if let Some(tree) = &self.tree {
            let bytes = |bytes: &Result<u64, String>| bytes.clone().map(|bytes| per(Value::Whole(bytes)));
            metrics.add("tree_cpu", "s", tree.cpu_ns.clone().map(|ns| per(Value::Real(seconds(ns)))));
            metrics.whole("tree_peak_memory", "B", tree.peak_memory_bytes.clone());
            metrics.add("tree_read", "B", bytes(&tree.read_bytes));
            metrics.add("tree_written", "B", bytes(&tree.written_bytes));
        }
        if let Some(counts) = &self.counts {
            for count in &counts.counts {
                let whole = count.unit == "1";
                let value = |value: f64| {
                    per(if whole { Value::Whole(value.round() as u64) } else { Value::Real(value) })
                };
                metrics.add(count.name, count.unit, count.value.clone().map(value));
            }
            row.notes.extend(counts.notes.iter().map(|&note| note.to_owned()));
        }
    }
}

/// The peak of the launcher's own memory, from which the peak memory of what it starts begins.
///
/// Not `ru_maxrss` of the launcher: that remembers who started it.
struct Floor {
    peak_bytes: Result<u64, String>,
    faults: i64,
}

impl Default for Floor {
    fn default() -> Floor {
        Floor { peak_bytes: Err("not started".to_owned()), faults: -1 }
    }
}

impl Floor {
    /// Reads it again if it can have changed: memory does not grow without a page fault.
    fn look(&mut self) {
        let faults = sys::usage_of(libc::RUSAGE_SELF).ru_minflt;
        if faults == self.faults {
            return;
        }
        self.peak_bytes = sys::peak_memory_bytes().ok_or_else(|| "/proc/self/status: no VmHWM".to_owned());
        self.faults = sys::usage_of(libc::RUSAGE_SELF).ru_minflt;
    }
}
