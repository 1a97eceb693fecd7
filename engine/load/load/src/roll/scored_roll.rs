//! A roll that can be a load: read, checked and scored at the speed that was asked for.

use std::sync::Arc;

use etude_clock::seconds;
use etude_options::Failed;
use etude_replay::{Roll, Score};
use etude_script::{Needed, What};

use crate::options::{Pace, RollAsked};
use crate::report::summary::LeftOut;

/// A shorter pass would be mostly the making of its processes.
const SHORTEST_NS: u64 = 1_000_000;

/// A roll that can be a load.
pub(crate) struct Piece {
    pub name: String,
    pub roll: Arc<Roll>,
    pub score: Score,
    /// Length of the original, s.
    pub run_s: f64,
    pub natural_rate: f64,
    pub multiple: f64,
    pub left_out: Option<LeftOut>,
}

/// Files, and their lengths together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub many: u64,
    pub bytes: u64,
}

impl Files {
    /// The files that a roll needs whose paths are `which`.
    pub fn of(needed: &[Needed], which: impl Fn(&[u8]) -> bool) -> Files {
        let mut files = Files::default();
        for each in needed {
            if let What::File { bytes, .. } = each.what
                && which(&each.path)
            {
                files.many += 1;
                files.bytes = files.bytes.saturating_add(bytes);
            }
        }
        files
    }
}

/// Reads the roll that is to be played.
///
/// # Errors
/// The roll is wrong (3), or it cannot be played so fast (2).
pub(super) fn piece(asked: &RollAsked) -> Result<Piece, Failed> {
    let shown = asked.roll.display().to_string();
    let input = |what: String| (format!("{shown}: {what}"), 3);
    let mut roll = Roll::open(&asked.roll).map_err(input)?;
    if !roll.head.original.timed {
        let what =
            "its script does not say how long calls took, so that its schedule is not known: record it anew";
        return Err(input(what.to_owned()));
    }
    let mut natural = Score::of(&roll, 1.0).map_err(input)?;
    let mut left_out = None;
    if !asked.only.is_empty() {
        let refused = |(what, code): (String, u8)| {
            (if code == 2 { format!("--only {what}") } else { format!("{shown}: {what}") }, code)
        };
        let part = etude_replay::only_below(&roll, &asked.only).map_err(refused)?;
        let score = Score::of(&part, 1.0).map_err(input)?;
        let less = |all: u64, part: u64| all.saturating_sub(part);
        let (all, kept) = (Files::of(&roll.needed, |_| true), Files::of(&part.needed, |_| true));
        let (files, bytes) = (less(all.many, kept.many), less(all.bytes, kept.bytes));
        left_out = Some(LeftOut { calls: less(natural.requests, score.requests), files, bytes });
        (roll, natural) = (part, score);
    }
    if natural.requests == 0 || natural.length_ns == 0 {
        return Err(input("has no calls that could be a load: record a program that uses files".to_owned()));
    }
    let run_s = seconds(natural.length_ns);
    let natural_rate = natural.requests as f64 / run_s;
    let multiple = match asked.pace {
        Pace::Rate(rate) => rate / natural_rate,
        Pace::Multiple(multiple) => multiple,
    };
    let score = Score::of(&roll, multiple).map_err(input)?;
    if score.length_ns < SHORTEST_NS {
        let ms = natural.length_ns as f64 / 1e6;
        let what = format!("{shown}: lasts {ms:.3} ms, {multiple:.4} times as fast less than 1 ms");
        return Err((format!("{what}: lower the load, or record for longer"), 2));
    }
    let name =
        asked.roll.file_stem().map_or_else(|| "roll".into(), |stem| stem.to_string_lossy().into_owned());
    Ok(Piece { name, roll: Arc::new(roll), score, run_s, natural_rate, multiple, left_out })
}
