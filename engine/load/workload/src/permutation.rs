//! An order of n things that looks random, computed and not stored.

use crate::random::{Purpose, finalize, mix};

/// A bijection of 0..n: a Feistel network of four rounds (Luby and Rackoff 1988) over the least power of two that is not
/// below n, walked until it is back below n (Black and Rogaway 2002, "cycle walking"): less than two walks on average.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    count: u64,
    bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub fn new(count: u64, seed: u64, purpose: Purpose) -> Permutation {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Permutation { count, bits, keys: [0, 1, 2, 3].map(|round| mix(seed, purpose, round)) }
    }

    /// Where `index` is sent; itself when it is not below n.
    pub fn of(&self, index: u64) -> u64 {
        if index >= self.count {
            return index;
        }
        let mut place = self.network(index);
        while place >= self.count {
            place = self.network(place);
        }
        place
    }

    /// Halves may differ by a bit: they change their widths with their places, and have them back after two rounds.
    fn network(&self, number: u64) -> u64 {
        let low = |width: u32| (1u64 << width) - 1;
        let mut right_width = self.bits / 2;
        let (mut left, mut right) = (number >> right_width, number & low(right_width));
        for key in self.keys {
            let left_width = self.bits - right_width;
            (left, right) = (right, left ^ (finalize(right ^ key) & low(left_width)));
            right_width = left_width;
        }
        left << right_width | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_bijection(count: u64, seed: u64) -> bool {
        let permutation = Permutation::new(count, seed, Purpose::FileRanks);
        let mut met = vec![false; count as usize];
        (0..count).for_each(|index| met[permutation.of(index) as usize] = true);
        met.into_iter().all(|met| met)
    }

    #[test]
    fn every_small_count_is_permuted() {
        assert!((0..600).all(|count| is_bijection(count, 1)));
    }

    #[test]
    fn places_do_not_follow_their_index() {
        let permutation = Permutation::new(1000, 1, Purpose::FileRanks);
        let near = (0..999).filter(|at| permutation.of(*at).abs_diff(permutation.of(at + 1)) < 10).count();
        assert!(near < 60, "{near} of 999 neighbours are still near");
        let other = Permutation::new(1000, 2, Purpose::FileRanks);
        assert!((0..1000).filter(|at| permutation.of(*at) == other.of(*at)).count() < 20);
    }

    proptest! {
        #[test]
        fn any_count_and_seed_is_a_bijection(count in 0u64..70_000, seed: u64) {
            prop_assert!(is_bijection(count, seed));
        }
    }
}
