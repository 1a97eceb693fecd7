//! Which of n things is meant: laws of popularity, as knobs and as what draws.

use std::fmt;
use std::str::FromStr;

use crate::parse::number;
use crate::permutation::Permutation;
use crate::random::{Purpose, Random};
use crate::zipf::Zipf;

/// How popular things are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Popularity {
    /// All alike.
    Uniform,
    /// This share of them alike, the others not at all: a working set.
    Share(f64),
    /// The k-th most popular in proportion to k^-α.
    Zipf(f64),
}

/// How popular directories are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DirectoryPopularity {
    /// As the files in them: that of a file is taken.
    Files,
    Own(Popularity),
}

/// How files are spread over directories whose number is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spread {
    Even,
    /// The k-th directory gets files in proportion to k^-α.
    Zipf(f64),
}

fn zipf(alpha: &str) -> Result<f64, String> {
    let alpha = number(alpha)?;
    let fits = (0.01..=20.0).contains(&alpha);
    if fits { Ok(alpha) } else { Err("expected an ALPHA of 0.01 to 20".to_owned()) }
}

impl FromStr for Popularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Popularity, String> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Popularity::Uniform),
            Some(("zipf", alpha)) => zipf(alpha).map(Popularity::Zipf),
            Some(("share", share)) => {
                let share = number(share)?;
                let fits = share > 0.0 && share <= 1.0;
                if fits {
                    Ok(Popularity::Share(share))
                } else {
                    Err("expected a SHARE above 0, at most 1".to_owned())
                }
            }
            _ => Err("expected uniform, share:SHARE or zipf:ALPHA".to_owned()),
        }
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => write!(out, "uniform"),
            Popularity::Share(share) => write!(out, "share:{share}"),
            Popularity::Zipf(alpha) => write!(out, "zipf:{alpha}"),
        }
    }
}

impl FromStr for DirectoryPopularity {
    type Err = String;

    fn from_str(text: &str) -> Result<DirectoryPopularity, String> {
        if text == "files" {
            return Ok(DirectoryPopularity::Files);
        }
        let own: Result<Popularity, String> = text.parse();
        own.map(DirectoryPopularity::Own).map_err(|why| why.replace("uniform,", "files, uniform,"))
    }
}

impl fmt::Display for DirectoryPopularity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryPopularity::Files => write!(out, "files"),
            DirectoryPopularity::Own(own) => own.fmt(out),
        }
    }
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Spread, String> {
        match text.split_once(':') {
            None if text == "even" => Ok(Spread::Even),
            Some(("zipf", alpha)) => zipf(alpha).map(Spread::Zipf),
            _ => Err("expected even or zipf:ALPHA".to_owned()),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Even => write!(out, "even"),
            Spread::Zipf(alpha) => write!(out, "zipf:{alpha}"),
        }
    }
}

#[derive(Debug, Clone)]
enum Ranks {
    Alike(u64),
    Zipf(Zipf),
}

/// Draws which of `count` things is meant. Ranks are given to things by a permutation, so that popular ones do not lie
/// side by side.
#[derive(Debug, Clone)]
pub(crate) struct Chooser {
    count: u64,
    ranks: Ranks,
    order: Permutation,
    /// After so many choices all ranks move by one; 0: never.
    turnover: u64,
    choices: u64,
    moved: u64,
    random: Random,
}

impl Chooser {
    pub fn new(
        popularity: Popularity,
        count: usize,
        turnover: u64,
        seed: u64,
        order: Purpose,
        draws: Purpose,
    ) -> Chooser {
        let count = count as u64;
        let ranks = match popularity {
            Popularity::Uniform => Ranks::Alike(count),
            Popularity::Share(share) => {
                Ranks::Alike(((count as f64 * share).ceil() as u64).clamp(1, count.max(1)))
            }
            Popularity::Zipf(alpha) => Ranks::Zipf(Zipf::new(alpha, count)),
        };
        let order = Permutation::new(count, seed, order);
        Chooser { count, ranks, order, turnover, choices: 0, moved: 0, random: Random::new(seed, draws, 0) }
    }

    /// One that suits. What does not is drawn anew: the law is then that among those that suit. After 64 draws in vain the
    /// next in rank that suits is taken; none only if none does.
    pub fn choose(&mut self, suits: impl Fn(usize) -> bool) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        self.turn();
        let mut rank = 0;
        for _ in 0..64 {
            rank = self.rank();
            let thing = self.thing(rank);
            if suits(thing) {
                return Some(thing);
            }
        }
        (1..self.count).map(|step| self.thing((rank + step) % self.count)).find(|thing| suits(*thing))
    }

    fn turn(&mut self) {
        self.choices += 1;
        if self.choices == self.turnover {
            self.choices = 0;
            self.moved = (self.moved + 1) % self.count;
        }
    }

    fn rank(&mut self) -> u64 {
        match &self.ranks {
            Ranks::Alike(count) => self.random.below(*count),
            Ranks::Zipf(zipf) => zipf.draw(&mut self.random),
        }
    }

    /// The thing of that rank, from 0.
    pub fn thing(&self, rank: u64) -> usize {
        self.order.of((rank + self.moved) % self.count) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chi_square, chi_square_limit};

    fn counts(chooser: &mut Chooser, draws: usize) -> Vec<f64> {
        let mut counts = vec![0.0; chooser.count as usize];
        (0..draws).for_each(|_| counts[chooser.choose(|_| true).unwrap()] += 1.0);
        counts
    }

    fn chooser(popularity: Popularity, count: usize, turnover: u64) -> Chooser {
        Chooser::new(popularity, count, turnover, 1, Purpose::FileRanks, Purpose::Files)
    }

    #[test]
    fn a_working_set_is_its_share_of_the_things_and_all_of_it_alike() {
        let found = counts(&mut chooser(Popularity::Share(0.1), 995, 0), 100_000);
        let used: Vec<f64> = found.into_iter().filter(|count| *count > 0.0).collect();
        assert_eq!(used.len(), 100);
        let (off, freedom) = chi_square(&used, &[1.0; 100]);
        assert!(off < chi_square_limit(freedom), "{off}");
    }

    #[test]
    fn turnover_moves_the_ranks_by_one_each_time() {
        let mut turned = chooser(Popularity::Zipf(1.0), 100, 10);
        let before: Vec<usize> = (0..100).map(|rank| turned.thing(rank)).collect();
        (0..30).for_each(|_| assert!(turned.choose(|_| true).is_some()));
        let after: Vec<usize> = (0..100).map(|rank| turned.thing(rank)).collect();
        assert_eq!(before[3..], after[..97]);
        assert_eq!(before[..3], after[97..]);
    }

    #[test]
    fn the_only_one_that_suits_is_found_however_unpopular() {
        let mut zipf = chooser(Popularity::Zipf(8.0), 5000, 0);
        let last = zipf.thing(4999);
        assert_eq!(zipf.choose(|thing| thing == last), Some(last));
        assert_eq!(zipf.choose(|_| false), None);
        assert_eq!(chooser(Popularity::Uniform, 0, 0).choose(|_| true), None);
    }

    #[test]
    fn popularities_are_read_as_they_are_written() {
        for text in ["uniform", "share:0.1", "zipf:1.3"] {
            assert_eq!(text.parse::<Popularity>().unwrap().to_string(), text);
            assert_eq!(text.parse::<DirectoryPopularity>().unwrap().to_string(), text);
        }
        for text in ["", "zipf", "zipf:0", "zipf:x", "share:0", "share:1.1", "share:nan", "uniform:1", "even"]
        {
            assert!(
                text.parse::<Popularity>().is_err() && text.parse::<DirectoryPopularity>().is_err(),
                "{text}"
            );
        }
        assert_eq!("zipf:2".parse::<Spread>().unwrap().to_string(), "zipf:2");
        assert!("files".parse::<Spread>().is_err());
    }
}
