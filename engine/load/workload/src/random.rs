//! Random numbers that a seed fixes on every machine: integers, and floats by nothing but exact operations.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng};

/// What numbers are drawn for. Each purpose has a sequence of its own, so that another number of draws for one changes
/// nothing of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    FileSize = 1,
    FileDirectory,
    FilePresent,
    DirectoryParent,
    LinkTarget,
    FileRanks,
    DirectoryRanks,
    LinkRanks,
    Kinds,
    Files,
    Directories,
    Links,
    Amounts,
    Offsets,
    Access,
    Slots,
    Log,
    Digest,
}

/// A number that looks random from three: the finalizer of SplitMix64 (Steele, Lea and Flood 2014, OOPSLA, figure 15)
/// over each in turn. It is a bijection of each number while the others stay.
pub(crate) fn mix(seed: u64, purpose: Purpose, index: u64) -> u64 {
    finalize(finalize(finalize(seed) ^ (purpose as u64) << 56) ^ index)
}

pub(crate) fn finalize(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// One sequence.
#[derive(Debug, Clone)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// That of the purpose and of the index within it: what file 7 draws depends on no other file.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(mix(seed, purpose, index)))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.random()
    }

    /// Uniform, from 0 up to but not 1, in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// Whether something of that probability happens.
    pub fn happens(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Uniform below a bound above 0, without bias (Lemire 2019, ACM TOMACS 29(1), algorithm 5).
    pub fn below(&mut self, bound: u64) -> u64 {
        let bound = bound.max(1);
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Normal, mean 0 and deviation 1 (the polar method, Marsaglia and Bray 1964).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }
}

/// The upper 53 bits as a fraction.
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_never_reached_and_all_below_are_equally_likely() {
        let mut random = Random::new(1, Purpose::Slots, 0);
        let mut counts = [0f64; 7];
        for _ in 0..700_000 {
            counts[random.below(7) as usize] += 1.0;
        }
        // 6 degrees of freedom: above 38.3 with a probability of 1e-6.
        let off: f64 = counts.iter().map(|count| (count - 1e5) * (count - 1e5) / 1e5).sum();
        assert!(off < 38.3, "{counts:?}");
        assert_eq!((random.below(1), random.below(0)), (0, 0));
    }

    #[test]
    fn sequences_of_other_purposes_and_indices_differ() {
        let first = |seed, purpose, index| Random::new(seed, purpose, index).bits();
        let all = [
            first(1, Purpose::FileSize, 0),
            first(1, Purpose::FileSize, 1),
            first(1, Purpose::Kinds, 0),
            first(2, Purpose::FileSize, 0),
        ];
        assert!((1..4).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    }
}
