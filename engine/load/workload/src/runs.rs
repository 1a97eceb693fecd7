//! Runs: whole files, read or written from their beginning to their end, one request after another.

/// One run: where it is in which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub file: usize,
    pub next: u64,
    pub end: u64,
    /// A write of it has not been durable by itself.
    pub dirty: bool,
}

impl Run {
    pub fn over(file: usize, bytes: u64) -> Run {
        Run { file, next: 0, end: bytes, dirty: false }
    }

    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }
}

/// All runs of one kind that are under way; a place is empty before its first run and after its last request.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    pub places: Vec<Option<Run>>,
}

impl Runs {
    pub fn new(count: u64) -> Runs {
        Runs { places: vec![None; count as usize] }
    }

    pub fn holds(&self, file: usize) -> bool {
        self.places.iter().flatten().any(|run| run.file == file)
    }

    /// Ends those on a file that is there no more.
    pub fn abandon(&mut self, file: usize) {
        for place in &mut self.places {
            if place.is_some_and(|run| run.file == file) {
                *place = None;
            }
        }
    }
}
