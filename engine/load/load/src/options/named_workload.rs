//! The workload that was named, with the knobs that were set, and the files that it needs.

use etude_options::Failed;
use etude_workload::{FileSet, Stream, Workload};

use crate::options::{Source, WorkloadAsked};

pub(crate) struct Chosen {
    pub workload: Workload,
    pub set: FileSet,
    /// Of the file set.
    pub seed: u64,
}

impl Chosen {
    /// # Errors
    /// There is none of that name (2), its file is wrong (3), or knobs contradict each other (2).
    pub fn new(asked: &WorkloadAsked) -> Result<Chosen, Failed> {
        let wrong = |why: String| etude_options::usage("etude load", why);
        let mut workload = match &asked.source {
            Source::Preset(name) => Workload::preset(name).ok_or_else(|| {
                wrong(format!("--preset {name:?}: expected {}", Workload::names().join(", ")))
            })?,
            Source::File(path) => {
                let origin = path.display().to_string();
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| (format!("--workload {origin}: {error}"), 3))?;
                Workload::read(&text, &origin).map_err(|why| (why, 3))?
            }
        };
        for assignment in &asked.set {
            workload.set(assignment).map_err(|why| wrong(format!("--set {why}")))?;
        }
        workload.check().map_err(wrong)?;
        let set = FileSet::new(&workload, asked.sized_for, asked.files_seed).map_err(wrong)?;
        Ok(Chosen { workload, set, seed: asked.files_seed })
    }

    pub fn name(&self) -> String {
        self.workload.name().to_owned()
    }

    pub fn stream(&self, seed: u64) -> Stream {
        Stream::new(&self.workload, &self.set, seed)
    }
}
