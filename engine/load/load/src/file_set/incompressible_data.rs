//! What is written: bytes that no file system can compress, and does not find twice.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// So long a piece may begin anywhere in the first half.
const HALF: usize = 1 << 20;

/// The most that one call moves: what asks for more is moved by several.
pub(crate) const MOST: usize = HALF;

/// Random bytes, from which each write takes a piece at another place.
pub(crate) struct Data(Vec<u8>);

impl Data {
    pub fn new(seed: u64) -> Data {
        let mut bytes = vec![0; 2 * HALF];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
        Data(bytes)
    }

    /// So many bytes, [`MOST`] at most; another `turn` gives others.
    pub fn piece(&self, turn: u64, bytes: usize) -> &[u8] {
        let begin = (turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44) as usize;
        &self.0[begin..begin + bytes.min(MOST)]
    }
}

/// One piece after another.
pub(crate) struct Pieces {
    data: Data,
    turn: u64,
}

impl Pieces {
    pub fn new(seed: u64) -> Pieces {
        Pieces { data: Data::new(seed), turn: 0 }
    }

    /// So many bytes, [`MOST`] at most.
    pub fn next(&mut self, bytes: usize) -> &[u8] {
        self.turn += 1;
        self.data.piece(self.turn, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_differ_also_block_by_block() {
        let data = Data::new(1);
        let mut seen = std::collections::HashSet::new();
        for turn in 0..50 {
            for block in data.piece(turn, 64 << 10).chunks(4096) {
                assert!(seen.insert(block.to_vec()), "turn {turn}");
            }
        }
        assert_eq!(data.piece(u64::MAX, 8 * MOST).len(), MOST);
    }

    #[test]
    fn what_is_written_is_as_long_as_asked_and_no_copy() {
        let mut pieces = Pieces::new(1);
        let one = pieces.next(8192).to_vec();
        assert_eq!((one.len(), pieces.next(usize::MAX).len()), (8192, MOST));
        assert_ne!(one, pieces.next(8192));
        let counts = one.iter().fold([0_u32; 256], |mut counts, byte| {
            counts[usize::from(*byte)] += 1;
            counts
        });
        assert!(counts.iter().all(|count| *count < 80), "bytes are not alike");
    }
}
