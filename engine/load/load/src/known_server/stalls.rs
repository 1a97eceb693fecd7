//! When a server stands still, and the clock that stands still with it.

/// For `length` of each `every` from `first` on nothing is done. *Working time* goes with the clock otherwise: what takes 5 ms
/// takes 5 ms of working time, whether or not a stall comes between.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stalls {
    first_ns: u64,
    length_ns: u64,
    every_ns: u64,
}

impl Stalls {
    /// `length_ns` is below `every_ns`.
    pub fn new(first_ns: u64, length_ns: u64, every_ns: u64) -> Stalls {
        Stalls { first_ns, length_ns, every_ns }
    }

    /// Never.
    pub fn none() -> Stalls {
        Stalls { first_ns: u64::MAX, length_ns: 0, every_ns: 1 }
    }

    pub fn first_ns(self) -> u64 {
        self.first_ns
    }

    /// Of all time, in the long run.
    pub fn share_of_work(self) -> f64 {
        1.0 - self.length_ns as f64 / self.every_ns as f64
    }

    /// Working time at an instant of the clock.
    pub fn worked_ns(self, clock_ns: u64) -> u64 {
        let Some(since) = clock_ns.checked_sub(self.first_ns) else { return clock_ns };
        let (stalls, rest) = (since / self.every_ns, since % self.every_ns);
        clock_ns - stalls * self.length_ns - rest.min(self.length_ns)
    }

    /// The first instant of the clock with so much working time: what ends as a stall begins ends before it.
    pub fn clock_ns(self, worked_ns: u64) -> u64 {
        let Some(since @ 1..) = worked_ns.checked_sub(self.first_ns) else { return worked_ns };
        let stalls = (since - 1) / (self.every_ns - self.length_ns) + 1;
        worked_ns.saturating_add(stalls.saturating_mul(self.length_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_done_in_a_stall_and_all_goes_on_afterwards() {
        // Stalls from 100 to 130, from 200 to 230 …
        let stalls = Stalls::new(100, 30, 100);
        assert_eq!(
            [0, 99, 100, 115, 130, 131, 200, 210, 230].map(|at| stalls.worked_ns(at)),
            [0, 99, 100, 100, 100, 101, 170, 170, 170]
        );
        assert_eq!([0, 100, 101, 170, 171].map(|at| stalls.clock_ns(at)), [0, 100, 131, 200, 231]);
        assert!((stalls.share_of_work() - 0.7).abs() < 1e-12);
        assert_eq!((Stalls::none().worked_ns(77), Stalls::none().clock_ns(u64::MAX)), (77, u64::MAX));
    }

    proptest! {
        /// By its definition: the clock, tick by tick.
        #[test]
        fn working_time_is_the_time_that_is_in_no_stall(first in 0..50_u64, length in 1..20_u64, more in 1..20_u64) {
            let stalls = Stalls::new(first, length, length + more);
            let mut worked = 0;
            for clock in 0..500 {
                prop_assert_eq!(stalls.worked_ns(clock), worked);
                let still = clock >= first && (clock - first) % (length + more) < length;
                if !still {
                    worked += 1;
                    prop_assert_eq!(stalls.clock_ns(worked), clock + 1);
                }
            }
        }
    }
}
