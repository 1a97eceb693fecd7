//! What tests of distributions share.

/// The statistic of Pearson's test and its degrees of freedom: counts against weights in proportion to what is expected.
/// Cells of less than five expected are put together with the next.
pub(crate) fn chi_square(counts: &[f64], weights: &[f64]) -> (f64, usize) {
    let scale = counts.iter().sum::<f64>() / weights.iter().sum::<f64>();
    let (mut statistic, mut cells) = (0.0, 0);
    let (mut count, mut expected) = (0.0, 0.0);
    for (found, weight) in counts.iter().zip(weights) {
        assert!(*weight > 0.0 || *found == 0.0, "found what has no weight");
        count += found;
        expected += weight * scale;
        if expected >= 5.0 {
            statistic += (count - expected) * (count - expected) / expected;
            cells += 1;
            (count, expected) = (0.0, 0.0);
        }
    }
    (statistic, cells.max(1) - 1)
}

/// Above this the statistic is with a probability of 1e-7 (Wilson and Hilferty's approximation, with a reserve).
pub(crate) fn chi_square_limit(freedom: usize) -> f64 {
    let freedom = freedom.max(1) as f64;
    let ninth = 2.0 / (9.0 * freedom);
    freedom * (1.0 - ninth + 5.4 * ninth.sqrt()).powi(3)
}

/// Above this the statistic of Kolmogorov and Smirnov is with a probability below 1e-7, for that many values
/// (Massart 1990: 2 exp(-2 n d²)).
pub(crate) fn kolmogorov_limit(values: usize) -> f64 {
    (2e7f64.ln() / (2.0 * values as f64)).sqrt()
}
