//! How a total is cut into transfers, and in which order they come.

use etude_micro::exit::{Fail, OSERR};
use etude_quantity::size_text;

/// Transfers of one size that make up a total; the last may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Bytes of each transfer but a shorter last one; the buffer's size.
    pub size: u64,
    /// How many have this size.
    pub whole: u64,
    /// Bytes of a shorter last one; 0 if there is none.
    pub tail: u64,
}

impl Blocks {
    /// Cuts a total, both in bytes and at least 1.
    ///
    /// # Errors
    /// It does not divide, and no shorter last transfer is wanted; the nearest totals that do are named.
    pub fn cut(total: u64, size: u64, tail: bool) -> Result<Blocks, Fail> {
        let blocks = Blocks { size, whole: total / size, tail: total % size };
        if blocks.tail == 0 || tail {
            return Ok(blocks);
        }
        let below = (blocks.whole > 0).then(|| blocks.whole * size);
        let above = (blocks.whole + 1).checked_mul(size);
        let nearest: Vec<_> = [below, above].into_iter().flatten().map(size_text).collect();
        Err(Fail::usage(format!(
            "the total of {total} bytes (-t) is no multiple of the buffer of {size} bytes (-b): give -t {}, or \
             --tail for a shorter last transfer",
            nearest.join(" or -t ")
        )))
    }

    /// How many transfers there are.
    pub fn count(&self) -> u64 {
        self.whole + u64::from(self.tail > 0)
    }

    /// Bytes of all transfers.
    pub fn total(&self) -> u64 {
        self.whole * self.size + self.tail
    }

    /// Bytes of the transfer that begins at an offset.
    pub fn length_at(&self, offset: u64) -> u64 {
        self.size.min(self.total() - offset)
    }

    /// The offset of every transfer once, in an order that the seed alone decides (Fisher and Yates).
    ///
    /// # Errors
    /// There is not enough memory for the table.
    pub fn shuffled(&self, seed: u64) -> Result<Vec<u64>, Fail> {
        let too_many = |_| {
            let line = format!("no memory for an order of {} transfers; raise -b or lower -t", self.count());
            Fail::new(OSERR, line)
        };
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX);
        let mut offsets = Vec::new();
        offsets.try_reserve_exact(count).map_err(too_many)?;
        offsets.extend((0..self.count()).map(|index| index * self.size));
        let mut random = SplitMix(seed);
        for last in (1..offsets.len()).rev() {
            offsets.swap(last, random.below(last as u64 + 1) as usize);
        }
        Ok(offsets)
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): short, and the same on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound. Its bias, the bound over 2^64, is nothing.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_total_that_does_not_divide_names_both_and_the_nearest() {
        let fail = Blocks::cut(10_000, 4096, false).expect_err("it does not divide");
        assert_eq!(
            fail,
            Fail::usage(
                "the total of 10000 bytes (-t) is no multiple of the buffer of 4096 bytes (-b): give -t 8KiB \
                 or -t 12KiB, or --tail for a shorter last transfer"
            )
        );
        let fail = Blocks::cut(1, 4096, false).expect_err("it does not divide");
        assert!(fail.line.contains("give -t 4KiB, or --tail"), "{}", fail.line);
        assert_eq!(Blocks::cut(1, 4096, true), Ok(Blocks { size: 4096, whole: 0, tail: 1 }));
    }

    #[test]
    fn an_order_differs_by_its_seed_and_not_by_the_machine() {
        let blocks = Blocks { size: 1, whole: 8, tail: 0 };
        assert_eq!(blocks.shuffled(1), Ok(vec![0, 3, 7, 1, 2, 6, 5, 4]));
        assert_ne!(blocks.shuffled(1), blocks.shuffled(2));
        // The published first numbers of SplitMix64 from this seed.
        let mut random = SplitMix(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    proptest! {
        #[test]
        fn a_total_is_cut_without_a_rest(total in 1u64..1 << 40, size in 1u64..1 << 32) {
            let blocks = Blocks::cut(total, size, true).expect("a tail is allowed");
            prop_assert_eq!(blocks.total(), total);
            prop_assert_eq!(blocks.count(), total.div_ceil(size));
            prop_assert_eq!(Blocks::cut(total, size, false).is_ok(), total.is_multiple_of(size));
        }

        #[test]
        fn the_nearest_totals_do_divide(total in 1u64..1 << 40, size in 1u64..1 << 32) {
            if let Err(fail) = Blocks::cut(total, size, false) {
                for word in fail.line.split("give ").nth(1).unwrap_or_default().split("-t ").skip(1) {
                    let text = word.split([' ', ',']).next().unwrap_or_default();
                    let near = etude_quantity::size(text).expect("it is a size");
                    prop_assert!(Blocks::cut(near, size, false).is_ok() && near.abs_diff(total) < size);
                }
            }
        }

        #[test]
        fn a_random_order_has_every_transfer_once(total in 1u64..5000, size in 1u64..50, seed: u64) {
            let blocks = Blocks::cut(total, size, true).expect("a tail is allowed");
            let order = blocks.shuffled(seed).expect("it is small");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..blocks.count()).map(|index| index * size).collect::<Vec<_>>());
            prop_assert_eq!(order.iter().map(|offset| blocks.length_at(*offset)).sum::<u64>(), total);
        }
    }

    #[test]
    fn every_transfer_can_come_first() {
        let blocks = Blocks { size: 1, whole: 16, tail: 0 };
        let mut first = [0u32; 16];
        for seed in 0..16_000 {
            first[blocks.shuffled(seed).expect("it is small")[0] as usize] += 1;
        }
        // 1000 are expected of each, with a deviation of 31.
        assert!(first.iter().all(|times| (850..1150).contains(times)), "{first:?}");
    }
}
