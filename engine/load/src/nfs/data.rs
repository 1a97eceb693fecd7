//! What is written: bytes that nothing makes smaller, drawn once.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// No write is longer: also what servers are asked for at most in one read.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// Writes begin at different places, so that blocks of a file are no copies of each other.
const PLACES: usize = 4096;
const STEP: usize = 8;

pub(crate) struct Data {
    bytes: Vec<u8>,
    at: usize,
}

impl Data {
    pub fn new(seed: u64) -> Data {
        let mut bytes = vec![0; MOST_BYTES + PLACES * STEP];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
        Data { bytes, at: 0 }
    }

    /// So many, up to [`MOST_BYTES`].
    pub fn next(&mut self, bytes: usize) -> &[u8] {
        self.at = (self.at + 1) % PLACES;
        let from = self.at * STEP;
        &self.bytes[from..from + bytes.min(MOST_BYTES)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_as_long_as_asked_and_no_copy() {
        let mut data = Data::new(1);
        let one = data.next(8192).to_vec();
        assert_eq!((one.len(), data.next(usize::MAX).len()), (8192, MOST_BYTES));
        assert_ne!(one, data.next(8192));
        let counts = one.iter().fold([0_u32; 256], |mut counts, byte| {
            counts[usize::from(*byte)] += 1;
            counts
        });
        assert!(counts.iter().all(|count| *count < 80), "bytes are not alike");
    }
}
