//! `/sys/devices/system/cpu/cpuN/thermal_throttle`: how often CPUs were slowed down because they were hot.

use crate::frequency::{cpus, path};
use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};

/// Counters, and the CPUs that share them.
const COUNTERS: [(&str, &str); 2] = [
    ("thermal_throttle/core_throttle_count", "topology/thread_siblings_list"),
    ("thermal_throttle/package_throttle_count", "topology/core_siblings_list"),
];

/// The source: one file of each core and one of each package, since their CPUs all count the same events.
pub struct Throttle {
    root: Root,
    files: Vec<Kept>,
}

impl Throttle {
    pub fn open(root: &Root) -> Throttle {
        let mut source = Throttle { root: root.clone(), files: Vec::new() };
        source.look();
        source
    }

    fn look(&mut self) {
        let mut seen = Vec::new();
        self.files.clear();
        for cpu in cpus(&self.root) {
            for (counter, siblings) in COUNTERS {
                let sharing =
                    self.root.text(&path(cpu, siblings)).unwrap_or_else(|| cpu.to_string().into_bytes());
                let key = (counter, sharing);
                if !seen.contains(&key)
                    && let Ok(file) = Kept::open(&self.root, &path(cpu, counter))
                {
                    seen.push(key);
                    self.files.push(file);
                }
            }
        }
    }
}

impl Source for Throttle {
    fn columns(&self) -> Vec<Column> {
        let some = !self.files.is_empty();
        some.then(|| Column::interval("throttle.count", "", 1.0)).into_iter().collect()
    }

    fn absent(&self) -> Absent {
        let why =
            "the kernel does not count it here: there is no thermal_throttle, which is for Intel's CPUs";
        let none = self.files.is_empty();
        none.then(|| ("throttle".to_owned(), why.to_owned())).into_iter().collect()
    }

    fn read(&mut self, look_again: bool, values: &mut Vec<Option<i64>>) -> bool {
        let before = self.files.is_empty();
        if look_again {
            self.look();
        }
        if !self.files.is_empty() {
            values.push(self.files.iter().try_fold(0i64, |sum, file| sum.checked_add(file.number()?)));
        }
        before != self.files.is_empty()
    }
}
