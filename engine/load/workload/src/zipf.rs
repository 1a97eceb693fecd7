//! Zipf's law over ranks: rank k is drawn with a probability in proportion to k^-α.

use crate::random::Random;

/// Draws ranks exactly, in constant time and without a table: rejection-inversion for monotone discrete laws (Hörmann
/// and Derflinger 1996, ACM TOMACS 6(3), 169-184).
///
/// With h(x) = x^-α and H an integral of h, a point of H(½ .. n+½) is drawn, turned back into an x, and x rounded to a rank
/// k. h is convex, so the stretch of rank k, from H(k-½) to H(k+½), is at least h(k) long; only where the point lies in the
/// last h(k) of it is the rank taken. All accepted stretches are then exactly h(k) long. That of rank 1 is cut to h(1) at
/// once, which makes rejections rare.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    alpha: f64,
    ranks: f64,
    /// Where the points begin: H(1½) - h(1).
    from: f64,
    /// And end: H(n+½).
    to: f64,
    /// x that lie at most so far below their rank are accepted without computing H. The margin is smallest at rank 2.
    sure: f64,
}

impl Zipf {
    /// Over that many ranks, at least one; α above 0.
    pub fn new(alpha: f64, ranks: u64) -> Zipf {
        let mut zipf = Zipf { alpha, ranks: ranks.max(1) as f64, from: 0.0, to: 0.0, sure: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(zipf.ranks + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank, from 0.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let point = self.to + random.unit() * (self.from - self.to);
            let x = self.inverse(point);
            let rank = (x + 0.5).floor().clamp(1.0, self.ranks);
            if rank - x <= self.sure || point >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.alpha * libm::log(x))
    }

    /// (x^(1-α) - 1) / (1-α), and its limit ln x at α = 1: written so that nothing cancels near it.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.alpha) * log;
        if power.abs() < 1e-9 { log } else { libm::expm1(power) / (1.0 - self.alpha) }
    }

    fn inverse(&self, y: f64) -> f64 {
        let rest = 1.0 - self.alpha;
        let power = (rest * y).max(-1.0);
        if power.abs() < 1e-9 { libm::exp(y) } else { libm::exp(libm::log1p(power) / rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use crate::testing::{chi_square, chi_square_limit};

    /// Frequencies of the first ranks one by one and of the rest in stretches, against the exact probabilities.
    #[test]
    fn ranks_have_exactly_the_frequencies_of_zipf() {
        for (alpha, ranks) in [
            (0.3, 50),
            (0.75, 10_000),
            (1.0, 1000),
            (1.0 + 1e-12, 1000),
            (1.3, 100_000),
            (2.5, 10),
            (5.0, 3),
            (0.9, 2),
            (1.1, 1),
        ] {
            let zipf = Zipf::new(alpha, ranks);
            let mut random = Random::new(5, Purpose::Files, 0);
            let cell = |rank: u64| if rank < 32 { rank as usize } else { 27 + (rank as f64).log2() as usize };
            let mut expected = vec![0.0; 64];
            (0..ranks).for_each(|rank| expected[cell(rank)] += (rank as f64 + 1.0).powf(-alpha));
            let mut counts = vec![0.0; 64];
            (0..200_000).for_each(|_| counts[cell(zipf.draw(&mut random))] += 1.0);
            let (off, freedom) = chi_square(&counts, &expected);
            assert!(off < chi_square_limit(freedom), "α {alpha} of {ranks}: {off} at {freedom}");
        }
    }

    #[test]
    fn a_draw_over_ten_million_ranks_stays_within_them() {
        let zipf = Zipf::new(0.6, 10_000_000);
        let mut random = Random::new(5, Purpose::Files, 0);
        let most = (0..100_000).map(|_| zipf.draw(&mut random)).max();
        assert!(most.is_some_and(|most| (9_000_000..10_000_000).contains(&most)), "{most:?}");
    }
}
