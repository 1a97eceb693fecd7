//! One sample: all sources read, and what was added since the sample before.

use std::collections::HashMap;

use crate::disks::Disks;
use crate::frequency::Frequency;
use crate::kept::Root;
use crate::keyed::{memory, paging};
use crate::machine::Machine;
use crate::net::Net;
use crate::pressure::Pressure;
use crate::source::{Absent, Column, Kind, Source};
use crate::temperature::Temperature;
use crate::throttle::Throttle;

/// Samples after which devices that came or went unseen are looked for.
const LOOK_AGAIN: u64 = 60;
/// The modes in which processes use CPU time.
const BUSY: [&str; 3] = ["cpu.user", "cpu.nice", "cpu.system"];

/// The sources, and what they said the last time.
pub struct Sampler {
    machine: Machine,
    others: Vec<Box<dyn Source>>,
    columns: Vec<Column>,
    now: Vec<Option<i64>>,
    before: Vec<Option<i64>>,
    values: Vec<Option<f64>>,
    samples: u64,
    cpus_changed: bool,
}

impl Sampler {
    /// Opens all that there is and reads it once, as what the first sample is compared with.
    ///
    /// # Errors
    /// There is no `/proc/stat`.
    pub fn open(root: &Root) -> std::io::Result<Sampler> {
        let mut sampler = Sampler {
            machine: Machine::open(root)?,
            others: vec![
                Box::new(memory(root)),
                Box::new(paging(root)),
                Box::new(Pressure::open(root)),
                Box::new(Throttle::open(root)),
                Box::new(Temperature::open(root)),
                Box::new(Frequency::open(root)),
                Box::new(Disks::open(root)),
                Box::new(Net::open(root)),
            ],
            columns: Vec::new(),
            now: Vec::new(),
            before: Vec::new(),
            values: Vec::new(),
            samples: 0,
            cpus_changed: false,
        };
        sampler.columns = sampler.collect();
        sampler.read();
        Ok(sampler)
    }

    /// Reads all sources; true where the columns are others than before.
    pub fn read(&mut self) -> bool {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
        self.samples += 1;
        self.cpus_changed = self.machine.read(false, &mut self.now);
        let look_again = self.cpus_changed || self.samples.is_multiple_of(LOOK_AGAIN);
        let mut changed = self.cpus_changed;
        for source in &mut self.others {
            changed |= source.read(look_again, &mut self.now);
        }
        if changed {
            let columns = self.collect();
            let mut known: HashMap<&str, Option<i64>> = HashMap::new();
            known.extend(
                self.columns.iter().map(|column| column.name.as_str()).zip(self.before.iter().copied()),
            );
            let before = columns.iter().map(|column| known.get(column.name.as_str()).copied().flatten());
            self.before = before.collect();
            self.columns = columns;
        }
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.extend((0..self.columns.len()).map(|at| self.value(at)));
        self.values = values;
        changed
    }

    /// In the order of the values.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn absent(&self) -> Absent {
        let sources =
            std::iter::once(&self.machine as &dyn Source).chain(self.others.iter().map(AsRef::as_ref));
        sources.flat_map(Source::absent).collect()
    }

    /// The values of the last reading, in their units.
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }

    pub fn cpus(&self) -> &[u32] {
        self.machine.cpus()
    }

    /// Whether CPUs came or went with the last reading.
    pub fn cpus_changed(&self) -> bool {
        self.cpus_changed
    }

    /// Processes and threads that were started since boot.
    pub fn forks(&self) -> Option<i64> {
        self.now[self.place("forks")?]
    }

    /// CPU time that programs used in this interval, s.
    pub fn busy_s(&self) -> Option<f64> {
        BUSY.iter().map(|name| self.values[self.place(name)?]).sum()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    fn collect(&self) -> Vec<Column> {
        let mut columns = self.machine.columns();
        columns.extend(self.others.iter().flat_map(|source| source.columns()));
        columns
    }

    /// A counter that went backwards, of a device that is another one now, says nothing of the interval.
    fn value(&self, at: usize) -> Option<f64> {
        let column = &self.columns[at];
        let now = self.now.get(at).copied().flatten()?;
        let value = match column.kind {
            Kind::Level => now,
            Kind::Interval => {
                let before = self.before.get(at).copied().flatten()?;
                now.checked_sub(before).filter(|added| *added >= 0)?
            }
        };
        Some(value as f64 / column.per)
    }
}
