//! What is drawn: service times and the gaps between requests. The same seed draws the same, on every machine.

use std::fmt;
use std::str::FromStr;

use etude_clock::SECOND;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Bernoulli, Distribution, Exp1, Gamma, LogNormal};

/// How service times vary around their mean; each law has a mean of 1 here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Law {
    Constant,
    Exponential,
    /// The sum of so many exponentials: their coefficient of variation is 1/√k.
    Erlang(u32),
    /// By its coefficient of variation.
    Lognormal(f64),
    /// One of two exponentials with balanced means (half of all work is of either), by its coefficient of variation, above 1.
    Hyperexponential(f64),
}

pub(crate) const LAWS: &str = "constant, exponential, erlang:K, lognormal:CV or hyperexponential:CV";

impl FromStr for Law {
    type Err = String;

    fn from_str(text: &str) -> Result<Law, String> {
        let wrong = || format!("{text:?}: expected {LAWS}");
        let (name, shape) = text.split_once(':').map_or((text, None), |(name, shape)| (name, Some(shape)));
        let variation = |least: f64| {
            let found: f64 = shape?.parse().ok()?;
            (found.is_finite() && found > least && found <= 10.0).then_some(found)
        };
        match (name, shape) {
            ("constant", None) => Ok(Law::Constant),
            ("exponential", None) => Ok(Law::Exponential),
            ("erlang", Some(shape)) => {
                let phases = shape.parse().ok().filter(|phases| (1..=1000).contains(phases));
                phases.map(Law::Erlang).ok_or_else(|| format!("{text:?}: K is a whole number, 1 to 1000"))
            }
            ("lognormal", Some(_)) => variation(0.0)
                .map(Law::Lognormal)
                .ok_or_else(|| format!("{text:?}: CV is above 0, and at most 10")),
            ("hyperexponential", Some(_)) => variation(1.0)
                .map(Law::Hyperexponential)
                .ok_or_else(|| format!("{text:?}: CV is above 1, and at most 10")),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Constant => write!(out, "constant"),
            Law::Exponential => write!(out, "exponential"),
            Law::Erlang(phases) => write!(out, "erlang:{phases}"),
            Law::Lognormal(variation) => write!(out, "lognormal:{variation}"),
            Law::Hyperexponential(variation) => write!(out, "hyperexponential:{variation}"),
        }
    }
}

/// The service times of one server.
pub(crate) struct Services {
    law: Law,
    mean_ns: f64,
    random: Xoshiro256PlusPlus,
}

impl Services {
    pub fn new(law: Law, mean_s: f64, seed: u64) -> Services {
        Services { law, mean_ns: mean_s * SECOND as f64, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The next, ns.
    pub fn draw(&mut self) -> u64 {
        (self.mean_ns * self.of_mean_one()).round() as u64
    }

    fn of_mean_one(&mut self) -> f64 {
        match self.law {
            Law::Constant => 1.0,
            Law::Exponential => Exp1.sample(&mut self.random),
            Law::Erlang(phases) => {
                let shape = f64::from(phases);
                Gamma::new(shape, 1.0 / shape).expect("a good shape").sample(&mut self.random)
            }
            Law::Lognormal(variation) => {
                let variance = (1.0 + variation * variation).ln();
                let law = LogNormal::new(-variance / 2.0, variance.sqrt()).expect("a good deviation");
                law.sample(&mut self.random)
            }
            Law::Hyperexponential(variation) => {
                let square = variation * variation;
                let often = f64::midpoint(1.0, ((square - 1.0) / (square + 1.0)).sqrt());
                let short = Bernoulli::new(often).expect("a share").sample(&mut self.random);
                let share = if short { often } else { 1.0 - often };
                let unit: f64 = Exp1.sample(&mut self.random);
                unit / (2.0 * share)
            }
        }
    }
}

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
pub(crate) enum Process {
    /// Gaps are exponential and independent.
    Poisson,
    /// Gaps are all the same.
    Constant,
}

/// When requests are due, in ns from the beginning; without an end.
pub(crate) struct Arrivals {
    process: Process,
    gap_ns: f64,
    made: u64,
    at_ns: f64,
    random: Xoshiro256PlusPlus,
}

impl Arrivals {
    pub fn new(process: Process, rate: f64, seed: u64) -> Arrivals {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Arrivals { process, gap_ns: SECOND as f64 / rate, made: 0, at_ns: 0.0, random }
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let at = match self.process {
            Process::Poisson => {
                let unit: f64 = Exp1.sample(&mut self.random);
                self.at_ns += unit * self.gap_ns;
                self.at_ns
            }
            // Not summed up: thousands of roundings would be a drift.
            Process::Constant => self.made as f64 * self.gap_ns,
        };
        self.made += 1;
        Some(at.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(drawn: impl Iterator<Item = f64>) -> (f64, f64) {
        let drawn: Vec<f64> = drawn.collect();
        let count = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / count;
        let variance = drawn.iter().map(|each| (each - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn laws_have_the_mean_and_variation_that_they_are_named_by() {
        for (text, variation) in [
            ("constant", 0.0),
            ("exponential", 1.0),
            ("erlang:4", 0.5),
            ("lognormal:1.5", 1.5),
            ("hyperexponential:2", 2.0),
        ] {
            let mut services = Services::new(text.parse().unwrap(), 0.010, 7);
            let (mean, found) = moments((0..400_000).map(|_| services.draw() as f64));
            assert!((mean / 1e7 - 1.0).abs() < 0.012, "{text}: mean {mean}");
            assert!((found - variation).abs() <= 0.05 * variation, "{text}: variation {found}");
        }
    }

    #[test]
    fn a_law_is_read_as_it_is_written() {
        for text in ["constant", "exponential", "erlang:3", "lognormal:0.5", "hyperexponential:1.5"] {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "normal",
            "constant:1",
            "erlang",
            "erlang:0",
            "erlang:1.5",
            "lognormal:0",
            "lognormal:x",
            "lognormal:inf",
            "lognormal:11",
            "hyperexponential:1",
        ] {
            assert!(text.parse::<Law>().is_err_and(|why| !why.contains('\n')), "{text}");
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_independent_exponential_gaps() {
        let times: Vec<u64> = Arrivals::new(Process::Poisson, 1000.0, 3).take(200_000).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let (mean, variation) = moments(gaps.iter().copied());
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
        assert!((variation - 1.0).abs() < 0.01, "{variation}");
        // The index of dispersion of counts: of a Poisson process 1 whatever the stretch.
        let mut counts = vec![0.0; 1000];
        for count in times.iter().map(|at| (at / 100_000_000) as usize).filter(|stretch| *stretch < 1000) {
            counts[count] += 1.0;
        }
        let (mean, variation) = moments(counts.into_iter());
        assert!((variation * variation * mean - 1.0).abs() < 0.15, "{variation}");
    }

    #[test]
    fn constant_arrivals_begin_at_once_and_do_not_drift() {
        let times: Vec<u64> = Arrivals::new(Process::Constant, 3.0, 0).take(3_000_001).collect();
        assert_eq!((times[0], times[1], times[3_000_000]), (0, 333_333_333, 1_000_000 * SECOND));
    }

    #[test]
    fn a_seed_draws_the_same_again() {
        let drawn = |seed| {
            let mut services = Services::new(Law::Lognormal(1.0), 0.01, seed);
            (0..5).map(|_| services.draw()).collect::<Vec<u64>>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
