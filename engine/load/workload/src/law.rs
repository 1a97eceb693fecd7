//! Laws of sizes in bytes: drawn, and exactly known.

use std::fmt;
use std::str::FromStr;

use crate::parse::number;
use crate::random::Random;

/// How many bytes; at least 1 always.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Law {
    Fixed(u64),
    /// Whole numbers from the first to the second, both included.
    Uniform(u64, u64),
    /// Median, and standard deviation of the logarithm.
    Lognormal(f64, f64),
    /// A body that is log-normal, and a tail after Pareto.
    Tailed(Tailed),
    /// Sizes with their weights.
    Table(Vec<(u64, f64)>),
}

/// Below `cut` a log-normal law, from it on Pareto's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tailed {
    pub median: f64,
    pub sigma: f64,
    /// Which share of all is in the tail.
    pub tail: f64,
    pub cut: f64,
    pub alpha: f64,
}

pub(crate) const LAWS: &str = "fixed:BYTES, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, tailed:MEDIAN:SIGMA:TAIL:CUT:ALPHA or table:BYTES=WEIGHT,...";

/// Nothing is larger: 2^50 bytes, a PiB. Sums of such sizes fit in 64 bits as long as files are fewer than 2^13; sums saturate.
pub(crate) const LARGEST: u64 = 1 << 50;

impl Law {
    /// One size, not above `most`: larger ones are drawn anew, so that the law is the one below `most`, and not heaped up there.
    pub fn draw(&self, random: &mut Random, most: u64) -> u64 {
        for _ in 0..10_000 {
            let size = self.once(random);
            if size <= most {
                return size;
            }
        }
        // Whoever made the law was told that this may not be: `check` asks for a hundredth of it below `most`.
        most.max(1)
    }

    fn once(&self, random: &mut Random) -> u64 {
        match self {
            Law::Fixed(bytes) => *bytes,
            Law::Uniform(low, high) => low + random.below(high - low + 1),
            Law::Lognormal(median, sigma) => whole(median * libm::exp(sigma * random.normal())),
            Law::Tailed(tailed) => whole(tailed.draw(random)),
            Law::Table(rows) => {
                let total: f64 = rows.iter().map(|row| row.1).sum();
                let mut point = random.unit() * total;
                let found = rows.iter().find(|row| {
                    point -= row.1;
                    point < 0.0
                });
                found.or(rows.last()).map_or(1, |row| row.0)
            }
        }
    }

    /// Which share of sizes is at most that many bytes.
    pub fn share_up_to(&self, bytes: u64) -> f64 {
        let at = bytes as f64;
        match self {
            Law::Fixed(size) => f64::from(u8::from(bytes >= *size)),
            Law::Uniform(low, high) if bytes < *low || high < low => 0.0,
            Law::Uniform(low, high) => (bytes.min(*high) - low + 1) as f64 / (high - low + 1) as f64,
            Law::Lognormal(median, sigma) => lognormal_share(at, *median, *sigma),
            Law::Tailed(tailed) => tailed.share_up_to(at),
            Law::Table(rows) => {
                let total: f64 = rows.iter().map(|row| row.1).sum();
                rows.iter().filter(|row| row.0 <= bytes).map(|row| row.1).sum::<f64>() / total
            }
        }
    }

    /// The mean, where larger ones than `most` are drawn anew: the sum of what lies above each size.
    #[cfg(test)]
    pub fn mean(&self, most: u64) -> f64 {
        let all = self.share_up_to(most);
        (0..most).map(|bytes| 1.0 - self.share_up_to(bytes) / all).sum()
    }

    fn check(&self) -> Result<(), String> {
        let size = |bytes: f64| (1.0..=LARGEST as f64).contains(&bytes);
        let spread = |sigma: f64| (0.0..=10.0).contains(&sigma);
        let good = match self {
            Law::Fixed(bytes) => size(*bytes as f64),
            Law::Uniform(low, high) => size(*low as f64) && size(*high as f64) && low <= high,
            Law::Lognormal(median, sigma) => size(*median) && spread(*sigma),
            Law::Tailed(tailed) => {
                size(tailed.median)
                    && spread(tailed.sigma)
                    && size(tailed.cut)
                    && (0.0..=1.0).contains(&tailed.tail)
                    && (0.05..=100.0).contains(&tailed.alpha)
                    && lognormal_share(tailed.cut, tailed.median, tailed.sigma) >= 0.01
            }
            Law::Table(rows) => {
                rows.iter().all(|row| size(row.0 as f64) && (0.0..=1e9).contains(&row.1))
                    && rows.iter().any(|row| row.1 > 0.0)
            }
        };
        let why = "sizes are 1 to 2^50 bytes and rise, SIGMA is 0 to 10, TAIL 0 to 1, ALPHA 0.05 to 100, weights are not below 0 \
                   nor all 0, and CUT leaves a hundredth of the body";
        if good { Ok(()) } else { Err(why.to_owned()) }
    }
}

impl Tailed {
    fn draw(&self, random: &mut Random) -> f64 {
        if random.happens(self.tail) {
            return self.cut * libm::exp(-libm::log(1.0 - random.unit()) / self.alpha);
        }
        for _ in 0..10_000 {
            let size = self.median * libm::exp(self.sigma * random.normal());
            if size <= self.cut {
                return size;
            }
        }
        self.cut
    }

    fn share_up_to(&self, at: f64) -> f64 {
        if at <= self.cut {
            let body = lognormal_share(self.cut, self.median, self.sigma);
            return (1.0 - self.tail) * lognormal_share(at, self.median, self.sigma) / body;
        }
        1.0 - self.tail * libm::exp(self.alpha * libm::log(self.cut / at))
    }
}

fn lognormal_share(at: f64, median: f64, sigma: f64) -> f64 {
    if at <= 0.0 {
        return 0.0;
    }
    if sigma == 0.0 {
        return f64::from(u8::from(at >= whole(median) as f64));
    }
    0.5 * libm::erfc(-libm::log(at / median) / (sigma * std::f64::consts::SQRT_2))
}

/// Rounded up: that at most b bytes come of it is then exactly as likely as that at most b were drawn.
fn whole(size: f64) -> u64 {
    size.ceil().clamp(1.0, LARGEST as f64 * 2.0) as u64
}

impl FromStr for Law {
    type Err = String;

    fn from_str(text: &str) -> Result<Law, String> {
        let wrong = || format!("expected {LAWS}");
        let (name, rest) = text.split_once(':').ok_or_else(wrong)?;
        let law = if name.trim() == "table" {
            let row = |row: &str| {
                let (bytes, weight) = row.split_once('=').ok_or_else(wrong)?;
                Ok((number(bytes)?, number(weight)?))
            };
            Law::Table(rest.split(',').map(row).collect::<Result<_, String>>()?)
        } else {
            let parts: Vec<&str> = rest.split(':').collect();
            match (name.trim(), &parts[..]) {
                ("fixed", [bytes]) => Law::Fixed(number(bytes)?),
                ("uniform", [low, high]) => Law::Uniform(number(low)?, number(high)?),
                ("lognormal", [median, sigma]) => Law::Lognormal(number(median)?, number(sigma)?),
                ("tailed", [median, sigma, tail, cut, alpha]) => Law::Tailed(Tailed {
                    median: number(median)?,
                    sigma: number(sigma)?,
                    tail: number(tail)?,
                    cut: number(cut)?,
                    alpha: number(alpha)?,
                }),
                _ => return Err(wrong()),
            }
        };
        law.check()?;
        Ok(law)
    }
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Fixed(bytes) => write!(out, "fixed:{bytes}"),
            Law::Uniform(low, high) => write!(out, "uniform:{low}:{high}"),
            Law::Lognormal(median, sigma) => write!(out, "lognormal:{median}:{sigma}"),
            Law::Tailed(Tailed { median, sigma, tail, cut, alpha }) => {
                write!(out, "tailed:{median}:{sigma}:{tail}:{cut}:{alpha}")
            }
            Law::Table(rows) => {
                let rows: Vec<String> =
                    rows.iter().map(|(bytes, weight)| format!("{bytes}={weight}")).collect();
                write!(out, "table:{}", rows.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use crate::testing::kolmogorov_limit;

    const DRAWN: usize = 200_000;

    fn drawn(law: &Law, most: u64) -> Vec<u64> {
        let mut random = Random::new(3, Purpose::FileSize, 0);
        let mut sizes: Vec<u64> = (0..DRAWN).map(|_| law.draw(&mut random, most)).collect();
        sizes.sort_unstable();
        sizes
    }

    /// The largest distance between the shares that were drawn and those of the law, at all sizes that were drawn.
    fn distance(law: &Law, most: u64, sizes: &[u64]) -> f64 {
        let all = law.share_up_to(most);
        let (mut worst, mut before) = (0f64, 0);
        for stretch in sizes.chunk_by(|one, other| one == other) {
            let up_to = before + stretch.len();
            for (size, drawn) in [(stretch[0], up_to), (stretch[0] - 1, before)] {
                worst = worst.max((law.share_up_to(size) / all - drawn as f64 / DRAWN as f64).abs());
            }
            before = up_to;
        }
        worst
    }

    #[test]
    fn sizes_follow_their_law() {
        for (text, most) in [
            ("fixed:8192", LARGEST),
            ("uniform:500:9999", LARGEST),
            ("uniform:1:9", 4),
            ("lognormal:4000:1.5", LARGEST),
            ("lognormal:4000:1.5", 3000),
            ("lognormal:4000:0", LARGEST),
            ("tailed:2000:1.2:0.07:30000:1.1", LARGEST),
            ("tailed:2000:1.2:0.3:4000:1.4", 50_000),
            ("tailed:2000:1.2:1:4000:0.5", LARGEST),
            ("table:1024=33,2048=21,4096=13,1048576=1", LARGEST),
        ] {
            let law: Law = text.parse().unwrap();
            let off = distance(&law, most, &drawn(&law, most));
            assert!(off < kolmogorov_limit(DRAWN), "{text} up to {most}: {off}");
        }
    }

    #[test]
    fn a_law_is_read_as_it_is_written() {
        for text in
            ["fixed:1", "uniform:1:2", "lognormal:2.5:0", "tailed:2000:1.2:0.07:30000:1.1", "table:1=0.5,3=2"]
        {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "fixed",
            "fixed:",
            "fixed:0",
            "fixed:-1",
            "fixed:1:2",
            "uniform:3:2",
            "uniform:0:2",
            "lognormal:1:-1",
            "lognormal:nan:1",
            "lognormal:1:inf",
            "tailed:1:1:1:1",
            "tailed:1e6:0.1:0:1:1",
            "table:",
            "table:1=0",
            "table:1=-1,2=2",
            "table:1",
            "zipf:1",
            "fixed:99999999999999999999",
        ] {
            let why = text.parse::<Law>().unwrap_err();
            assert!(!why.contains('\n') && !why.is_empty(), "{text}");
        }
    }
}
