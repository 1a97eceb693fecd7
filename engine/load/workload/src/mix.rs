//! How often which operation: weights of the kinds.

use std::fmt;
use std::str::FromStr;

use crate::kind::Kind;
use crate::parse::{nearest, number};
use crate::random::Random;

/// A weight for each kind, in the order of their index; they need not sum to anything.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Mix([f64; Kind::ALL.len()]);

impl Mix {
    pub fn weight(&self, kind: Kind) -> f64 {
        self.0[kind.index()]
    }

    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Another weight for the kind of that name.
    pub fn set(&mut self, name: &str, weight: &str) -> Result<(), String> {
        let name = name.trim();
        let names = || Kind::ALL.map(Kind::name);
        let kind = Kind::named(name).ok_or_else(|| {
            format!("{name:?} is no operation; the nearest is {}", nearest(name, names().into_iter()))
        })?;
        let weight: f64 = number(weight).map_err(|why| format!("{name}: {why}"))?;
        if !(0.0..=1e9).contains(&weight) {
            return Err(format!("{name}: expected a weight of 0 to 1e9"));
        }
        self.0[kind.index()] = weight;
        Ok(())
    }

    /// Those with a weight, as name and weight.
    fn used(&self) -> impl Iterator<Item = (&'static str, f64)> {
        Kind::ALL
            .into_iter()
            .zip(self.0)
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(kind, weight)| (kind.name(), weight))
    }

    /// As a table of TOML.
    pub fn table(&self) -> String {
        let members: Vec<String> = self.used().map(|(name, weight)| format!("{name} = {weight}")).collect();
        format!("{{ {} }}", members.join(", "))
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let mut mix = Mix::default();
        let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
        for member in inner.split(',').filter(|member| !member.trim().is_empty()) {
            let (name, weight) =
                member.split_once('=').ok_or_else(|| "expected OPERATION=WEIGHT,...".to_owned())?;
            mix.set(name, weight)?;
        }
        Ok(mix)
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<String> = self.used().map(|(name, weight)| format!("{name}={weight}")).collect();
        write!(out, "{}", members.join(","))
    }
}

/// Draws kinds by their weights.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    /// Up to which point of 0..1 a draw is of which kind; the most frequent first, since they are looked through.
    up_to: Vec<(f64, Kind)>,
    random: Random,
}

impl Kinds {
    pub fn new(mix: &Mix, random: Random) -> Kinds {
        let mut kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| mix.weight(*kind) > 0.0).collect();
        kinds.sort_by(|one, other| mix.weight(*other).total_cmp(&mix.weight(*one)));
        let mut sum = 0.0;
        let up_to = kinds.into_iter().map(|kind| {
            sum += mix.weight(kind);
            (sum / mix.total(), kind)
        });
        Kinds { up_to: up_to.collect(), random }
    }

    pub fn draw(&mut self) -> Kind {
        let point = self.random.unit();
        let found = self.up_to.iter().find(|(up_to, _)| point < *up_to).or(self.up_to.last());
        found.map_or(Kind::Getattr, |(_, kind)| *kind)
    }
}
