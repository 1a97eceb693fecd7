//! When a device is steady: the rule of SNIA's Solid State Storage Performance Test Specification (PTS 2.0.2, "steady
//! state"): over the last rounds the largest and the smallest value lie no further apart than 20 % of their mean, and the
//! least-squares line through them rises or falls by no more than 10 % of it.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Rounds that are looked at.
    pub window: usize,
    /// Shares of the mean.
    pub most_range: f64,
    pub most_slope: f64,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule { window: 5, most_range: 0.2, most_slope: 0.1 }
    }
}

/// How the last rounds lie, as shares of their mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seen {
    pub mean: f64,
    /// Largest less smallest.
    pub range: f64,
    /// What the line rises (or falls, below 0) by from the first of them to the last.
    pub slope: f64,
}

/// What the last rounds show; None before there are enough, or where nothing was written in any.
pub fn seen(series: &[f64], rule: &Rule) -> Option<Seen> {
    let last = series.get(series.len().checked_sub(rule.window.max(2))?..)?;
    let count = last.len() as f64;
    let mean = last.iter().sum::<f64>() / count;
    if !(mean > 0.0 && mean.is_finite()) {
        return None;
    }
    let (low, high) = last.iter().fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(*y), high.max(*y)));
    let middle = (count - 1.0) / 2.0;
    let places = || (0..last.len()).map(|place| place as f64 - middle);
    let slope =
        places().zip(last).map(|(x, y)| x * (y - mean)).sum::<f64>() / places().map(|x| x * x).sum::<f64>();
    Some(Seen { mean, range: (high - low) / mean, slope: slope * (count - 1.0) / mean })
}

pub fn is_steady(series: &[f64], rule: &Rule) -> bool {
    seen(series, rule)
        .is_some_and(|seen| seen.range <= rule.most_range && seen.slope.abs() <= rule.most_slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_device_that_has_just_fallen_off_its_cache_is_not_steady() {
        let falls = [500.0, 500.0, 480.0, 250.0, 200.0, 190.0];
        assert!(!is_steady(&falls, &Rule::default()));
        let rests = [500.0, 500.0, 200.0, 195.0, 190.0, 200.0, 205.0];
        assert!(is_steady(&rests, &Rule::default()));
        assert!(!is_steady(&rests[..6], &Rule::default()));
    }

    #[test]
    fn a_slow_slide_within_the_range_is_not_steady() {
        let slides = [110.0, 105.0, 100.0, 95.0, 92.0];
        let seen = seen(&slides, &Rule::default()).expect("five");
        assert!(seen.range <= 0.2 && seen.slope < -0.1, "{seen:?}");
        assert!(!is_steady(&slides, &Rule::default()));
    }

    #[test]
    fn fewer_rounds_than_the_window_say_nothing() {
        assert_eq!(seen(&[1.0; 4], &Rule::default()), None);
        assert_eq!(seen(&[0.0; 5], &Rule::default()), None);
    }

    proptest! {
        #[test]
        fn the_unit_does_not_matter(series in proptest::collection::vec(1.0f64..1e3, 5..40), unit in 1e-3f64..1e9) {
            let rule = Rule::default();
            let scaled: Vec<f64> = series.iter().map(|y| y * unit).collect();
            let (one, other) = (seen(&series, &rule).expect("five"), seen(&scaled, &rule).expect("five"));
            prop_assert!((one.range - other.range).abs() < 1e-9 && (one.slope - other.slope).abs() < 1e-9);
            prop_assert!(one.slope.abs() <= one.range * 2.0);
        }

        #[test]
        fn only_the_window_counts(before in proptest::collection::vec(1.0f64..1e3, 0..9), rest in 1.0f64..1e3) {
            let series: Vec<f64> = before.into_iter().chain([rest; 5]).collect();
            prop_assert!(is_steady(&series, &Rule::default()));
        }
    }
}
