//! The history that ages a file system: which files are made, grow and are deleted, and when. Only numbers; `age.rs` does it.
//!
//! Tides: files grow, several in turn and a piece at a time, until the file system is nearly full; then some are deleted;
//! and again, until enough was written. At the top of the last flood what is still free is taken, too, so that all that is
//! free afterwards are holes that files have left. Then somebody tidies up: files are deleted down to the level.
//!
//! Sizes are lognormal (Agrawal, Arpaci-Dusseau and Arpaci-Dusseau, "Generating Realistic Impressions for File-System
//! Benchmarking", FAST 2009, table 2: the body of their hybrid law; its tail of files above 512 MB is cut off). A file's
//! risk of being deleted falls as 1/age: most die young and some live long (Baker et al., SOSP 1991; Vogels, SOSP 1999);
//! but who tidies up takes each file as likely as any other.
//! That a history of creations and deletions at a high level is what ages is from Smith and Seltzer, SIGMETRICS 1997;
//! that it is the usage rather than the level from Conway et al., HotStorage 2019.

use std::collections::HashMap;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, LogNormal};

use crate::BLOCK;

/// An ebb takes this part of what lives at most.
const EBB_PART: u64 = 8;
/// Of ln(bytes).
const MU: f64 = 9.48;
const SIGMA: f64 = 2.46;
/// No file is larger than this share of what may live, so that a level is met closely, …
const LARGEST_PART: u64 = 256;
/// … and none than where the paper's tail begins.
const LARGEST: u64 = 512 << 20;

/// Bytes but for `streams`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    /// What lives at the top of a flood, …
    pub high: u64,
    /// … and at the end.
    pub low: u64,
    /// What is to be written in all.
    pub total: u64,
    /// Mean of a piece.
    pub piece: u64,
    /// Files that grow in turn.
    pub streams: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The file is new where `offset` is 0.
    Append {
        file: u64,
        offset: u64,
        bytes: u64,
    },
    Delete {
        file: u64,
    },
    /// The top of the last flood.
    Brim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tide {
    Flood,
    /// The last one.
    Brim,
    Ebb,
    LastEbb,
}

#[derive(Debug, Clone, Copy)]
struct Growing {
    number: u64,
    offset: u64,
    rest: u64,
}

pub struct History {
    plan: Plan,
    random: Xoshiro256PlusPlus,
    sizes: LogNormal<f64>,
    tide: Tide,
    /// In the order of their births.
    living: Vec<u64>,
    sizes_of: HashMap<u64, u64>,
    streams: Vec<Option<Growing>>,
    lives: u64,
    written: u64,
    born: u64,
    died: u64,
}

impl History {
    pub fn new(plan: Plan) -> History {
        History {
            plan,
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed),
            sizes: LogNormal::new(MU, SIGMA).expect("a good deviation"),
            tide: Tide::Flood,
            living: Vec::new(),
            sizes_of: HashMap::new(),
            streams: vec![None; plan.streams.max(1) as usize],
            lives: 0,
            written: 0,
            born: 0,
            died: 0,
        }
    }

    /// What comes next; None at the end.
    pub fn step(&mut self) -> Option<Step> {
        match self.tide {
            Tide::Flood if self.lives >= self.plan.high => {
                self.tide = if self.written >= self.plan.total { Tide::Brim } else { Tide::Ebb };
                self.step()
            }
            Tide::Flood => Some(self.append()),
            Tide::Brim => {
                self.tide = Tide::LastEbb;
                Some(Step::Brim)
            }
            Tide::Ebb if self.lives <= self.ebbed() || self.living.is_empty() => {
                self.tide = Tide::Flood;
                Some(self.append())
            }
            Tide::LastEbb if self.lives <= self.plan.low || self.living.is_empty() => None,
            Tide::Ebb => {
                // The r-th youngest, with ln r uniform: a density of 1/r.
                let rank = (self.living.len() as f64).powf(self.share()) as usize;
                Some(self.delete(rank))
            }
            Tide::LastEbb => {
                let rank = 1 + self.below(self.living.len() as u64) as usize;
                Some(self.delete(rank))
            }
        }
    }

    /// The file system is full before its time: the piece just asked for was not given. A flood turns.
    pub fn full(&mut self, file: u64, bytes: u64) {
        self.lives -= blocks(bytes);
        self.written -= bytes;
        if let Some(found) = self.sizes_of.get_mut(&file) {
            *found -= bytes;
        }
        for stream in self.streams.iter_mut().filter(|s| s.is_some_and(|s| s.number == file)) {
            *stream = None;
        }
        if self.tide == Tide::Flood {
            self.tide = if self.written >= self.plan.total { Tide::Brim } else { Tide::Ebb };
        }
    }

    /// Go down to another level at the end.
    pub fn settle(&mut self, low: u64) {
        self.plan.low = low.min(self.plan.high);
    }

    /// What lives now, in whole blocks.
    pub fn lives(&self) -> u64 {
        self.lives
    }

    /// Whether files are being deleted.
    pub fn is_ebbing(&self) -> bool {
        matches!(self.tide, Tide::Ebb | Tide::LastEbb)
    }

    /// The flood under way is the last one.
    pub fn enough(&mut self) {
        self.plan.total = self.plan.total.min(self.written);
    }

    /// Written so far, bytes.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Files made and deleted so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.born, self.died)
    }

    /// Number and size of the files that live, in the order of their births.
    pub fn living(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.living.iter().map(|number| (*number, self.sizes_of[number]))
    }

    /// What tells one tree from another: FNV-1a over numbers and sizes, 64 bits.
    pub fn digest(&self) -> u64 {
        let words = self.living().flat_map(|(number, bytes)| [number, bytes]);
        words
            .flat_map(u64::to_le_bytes)
            .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }

    fn append(&mut self) -> Step {
        let place = self.below(self.streams.len() as u64) as usize;
        let mut growing = match self.streams[place] {
            Some(growing) => growing,
            None => self.birth(),
        };
        let most = 2 * self.plan.piece.div_ceil(BLOCK) - 1;
        let bytes = growing.rest.min((1 + self.below(most)) * BLOCK);
        let step = Step::Append { file: growing.number, offset: growing.offset, bytes };
        growing.offset += bytes;
        growing.rest -= bytes;
        self.streams[place] = (growing.rest > 0).then_some(growing);
        self.lives += blocks(bytes);
        self.written += bytes;
        *self.sizes_of.entry(growing.number).or_default() += bytes;
        step
    }

    fn birth(&mut self) -> Growing {
        let largest = (self.plan.high / LARGEST_PART).clamp(BLOCK, LARGEST);
        let rest = (self.sizes.sample(&mut self.random) as u64).clamp(1, largest);
        let number = self.born;
        self.born += 1;
        self.living.push(number);
        self.sizes_of.insert(number, 0);
        Growing { number, offset: 0, rest }
    }

    /// What lives at the end of an ebb.
    fn ebbed(&self) -> u64 {
        self.plan.low.max(self.plan.high - self.plan.high / EBB_PART)
    }

    /// The rank-th youngest dies.
    fn delete(&mut self, rank: usize) -> Step {
        let rank = rank.clamp(1, self.living.len());
        let file = self.living.remove(self.living.len() - rank);
        for stream in self.streams.iter_mut().filter(|s| s.is_some_and(|s| s.number == file)) {
            *stream = None;
        }
        self.lives -= blocks(self.sizes_of.remove(&file).unwrap_or(0));
        self.died += 1;
        Step::Delete { file }
    }

    /// Uniform in [0, 1).
    fn share(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(most)) >> 64) as u64
    }
}

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK) * BLOCK
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
