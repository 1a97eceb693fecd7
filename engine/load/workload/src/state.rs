//! Which files are there while the stream goes on.

use std::collections::{HashMap, VecDeque};

use crate::fileset::FileSet;

/// Which files are there, and how long.
#[derive(Debug, Clone)]
pub(crate) struct State {
    absent: Vec<u64>,
    pub lengths: Vec<u64>,
    /// Where the next append goes, of files that have reached the limit.
    pub around: HashMap<usize, u64>,
    /// Those of them that are still to be emptied, in the order in which they reached it.
    pub grown: VecDeque<usize>,
}

impl State {
    pub fn new(set: &FileSet) -> State {
        let mut state = State {
            absent: vec![0; set.files().div_ceil(64)],
            lengths: set.sizes().to_vec(),
            around: HashMap::new(),
            grown: VecDeque::new(),
        };
        (0..set.files()).filter(|file| !set.present(*file)).for_each(|file| state.leave(file));
        state
    }

    pub fn there(&self, file: usize) -> bool {
        self.absent[file / 64] >> (file % 64) & 1 == 0
    }

    pub fn leave(&mut self, file: usize) {
        self.absent[file / 64] |= 1 << (file % 64);
        self.lengths[file] = 0;
        self.around.remove(&file);
    }

    pub fn come(&mut self, file: usize, length: u64) {
        self.absent[file / 64] &= !(1 << (file % 64));
        self.lengths[file] = length;
    }
}
