//! `/sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq`: the frequency of each CPU.

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};

/// With more CPUs there are three columns of all.
const EACH: usize = 8;
const CPUS: &str = "sys/devices/system/cpu";

/// The CPUs of a machine that are there, by number.
pub fn cpus(root: &Root) -> Vec<u32> {
    let names = root.names(CPUS);
    let number = |name: &String| {
        let digits = name.strip_prefix("cpu")?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    names.iter().filter_map(number).collect()
}

/// A file of one CPU.
pub fn path(cpu: u32, file: &str) -> String {
    format!("{CPUS}/cpu{cpu}/{file}")
}

/// The source.
pub struct Frequency {
    root: Root,
    files: Vec<(u32, Kept)>,
}

impl Frequency {
    pub fn open(root: &Root) -> Frequency {
        let mut source = Frequency { root: root.clone(), files: Vec::new() };
        source.look();
        source
    }

    fn look(&mut self) {
        let open = |cpu: u32| {
            let kept = Kept::open(&self.root, &path(cpu, "cpufreq/scaling_cur_freq")).ok()?;
            kept.number().map(|_| (cpu, kept))
        };
        self.files = cpus(&self.root).into_iter().filter_map(open).collect();
    }
}

impl Source for Frequency {
    fn columns(&self) -> Vec<Column> {
        let column = |name: &str| Column::level(format!("frequency.{name}"), "Hz", 1.0);
        match self.files.len() {
            0 => Vec::new(),
            1..=EACH => self.files.iter().map(|(cpu, _)| column(&cpu.to_string())).collect(),
            _ => ["min", "mean", "max"].map(column).to_vec(),
        }
    }

    fn absent(&self) -> Absent {
        let why = "the kernel does not report it (no cpufreq); usual in virtual machines";
        let none = self.files.is_empty();
        none.then(|| ("frequency".to_owned(), why.to_owned())).into_iter().collect()
    }

    fn read(&mut self, look_again: bool, values: &mut Vec<Option<i64>>) -> bool {
        let mut changed = false;
        if look_again {
            let before = self.columns();
            self.look();
            changed = self.columns() != before;
        }
        let hertz = |(_, file): &(u32, Kept)| file.number()?.checked_mul(1000);
        if self.files.len() <= EACH {
            values.extend(self.files.iter().map(hertz));
            return changed;
        }
        let (mut least, mut most, mut sum, mut count) = (i64::MAX, i64::MIN, 0i64, 0);
        for found in self.files.iter().filter_map(hertz) {
            (least, most) = (least.min(found), most.max(found));
            (sum, count) = (sum.saturating_add(found), count + 1);
        }
        let some = |value| (count > 0).then_some(value);
        values.extend([some(least), some(sum / count.max(1)), some(most)]);
        changed
    }
}
