//! When to sample: at whole multiples of the interval after the start, so that nothing adds up.

/// Instants of the monotonic clock, ns.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    pub start_ns: u64,
    pub every_ns: u64,
}

impl Ticks {
    /// The first instant after `now_ns`. Instants that passed meanwhile are left out: there is no burst to catch up.
    pub fn next(self, now_ns: u64) -> u64 {
        let passed = now_ns.saturating_sub(self.start_ns) / self.every_ns;
        self.start_ns.saturating_add((passed + 1).saturating_mul(self.every_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_next_instant_is_a_multiple_and_within_one_interval(start_ns in 0u64..1 << 60, every_ns in 1u64..1 << 40, late in 0u64..1 << 50) {
            let (ticks, now) = (Ticks { start_ns, every_ns }, start_ns + late);
            let next = ticks.next(now);
            prop_assert_eq!((next - start_ns) % every_ns, 0);
            prop_assert!(next > now && next - now <= every_ns);
        }
    }

    #[test]
    fn instants_that_were_missed_are_left_out() {
        let ticks = Ticks { start_ns: 1000, every_ns: 100 };
        assert_eq!([1000, 1099, 1100, 1730].map(|now| ticks.next(now)), [1100, 1100, 1200, 1800]);
    }
}
