//! What samples took, without a list that grows for days.

/// Parts of each power of two: a median is right to 3 %.
const PARTS: u32 = 16;

/// Durations by size.
#[derive(Debug)]
pub struct Walls {
    counts: Vec<u64>,
    most: Option<u64>,
}

impl Default for Walls {
    fn default() -> Walls {
        Walls { counts: vec![0; (64 * PARTS) as usize], most: None }
    }
}

impl Walls {
    pub fn add(&mut self, ns: u64) {
        self.counts[place(ns)] += 1;
        self.most = self.most.max(Some(ns));
    }

    pub fn most(&self) -> Option<u64> {
        self.most
    }

    pub fn median(&self) -> Option<u64> {
        let half = self.counts.iter().sum::<u64>().div_ceil(2);
        let mut sum = 0;
        let found = self.counts.iter().position(|count| {
            sum += count;
            half > 0 && sum >= half
        });
        found.map(|place| middle(place).min(self.most.unwrap_or(u64::MAX)))
    }
}

/// Up to 15 each number is its own place; above, the four bits behind the first tell the part.
fn place(ns: u64) -> usize {
    let power = ns.checked_ilog2().unwrap_or(0);
    if power < 4 {
        return ns as usize;
    }
    ((power - 3) * PARTS) as usize + (ns >> (power - 4) & 15) as usize
}

fn middle(place: usize) -> u64 {
    let (power, part) = (place as u32 / PARTS, (place as u32 % PARTS) as u64);
    match power {
        0 => part,
        _ => ((16 + part) << (power - 1)) + (1 << (power - 1)) / 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_a_sample_there_is_no_median() {
        assert_eq!((Walls::default().median(), Walls::default().most()), (None, None));
    }

    proptest! {
        #[test]
        fn a_median_is_right_to_three_percent(mut all in proptest::collection::vec(0u64..1 << 50, 1..50)) {
            let mut walls = Walls::default();
            all.iter().for_each(|ns| walls.add(*ns));
            all.sort_unstable();
            let (true_one, found) = (all[all.len().div_ceil(2) - 1] as f64, walls.median().unwrap() as f64);
            prop_assert!((found - true_one).abs() <= 0.032 * true_one, "{} for {}", found, true_one);
            prop_assert_eq!(walls.most(), all.last().copied());
        }
    }

    #[test]
    fn the_longest_of_all_has_a_place() {
        let mut walls = Walls::default();
        walls.add(u64::MAX);
        assert_eq!(walls.most(), Some(u64::MAX));
    }
}
