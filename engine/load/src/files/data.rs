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
}
