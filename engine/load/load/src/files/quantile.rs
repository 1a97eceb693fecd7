//! A running estimate of a high quantile that needs one number.

/// Each value above moves the estimate up so far, each below down by a hundredth of it: it rests where one in a hundred is above.
/// In logarithms, so that the first thousand nanoseconds and a second take alike many steps, and an outlier counts as one.
const STEP: f64 = 0.10;
const ABOVE: f64 = 0.01;

/// About 99 % of the latest values were below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantile(f64);

impl Quantile {
    /// `guess` is above 0.
    pub fn new(guess: f64) -> Quantile {
        Quantile(guess)
    }

    pub fn value(self) -> f64 {
        self.0
    }

    pub fn see(&mut self, value: f64) {
        self.0 *= if value > self.0 { 1.0 + STEP } else { 1.0 - STEP * ABOVE };
        self.0 = self.0.clamp(1.0, 1e12);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_where_one_value_in_a_hundred_is_above_and_forgets() {
        let mut quantile = Quantile::new(80_000.0);
        let mut random = 1_u64;
        let mut above = 0;
        for step in 0..400_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = (random >> 40) as f64;
            above += u32::from(step >= 200_000 && value > quantile.value());
            quantile.see(value);
        }
        assert!((1_500..2_500).contains(&above), "{above}");
        (0..20_000).for_each(|_| quantile.see(100.0));
        assert!((90.0..130.0).contains(&quantile.value()), "{}", quantile.value());
    }
}
