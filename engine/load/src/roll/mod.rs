//! A recorded program's I/O as a load: its roll is played again and again, on its own schedule at a multiple of its speed.
//!
//! `places.rs` makes the directories in which it is played, `course.rs` starts one pass after the other and tells of windows.
//! What plays are processes of the replay (`etude_replay::Pass`): this one only counts.

mod course;
mod places;
mod told;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use etude_replay::{Changes, Roll, Score};
use etude_terminal::complain;

use self::course::Course;
use self::places::{Files, Places};
use crate::command::{self, Wrong};
use crate::options::Format;
use crate::plan::Plan;
use crate::summary::LeftOut;

/// What is to be played, where, and how fast.
#[derive(Debug, Clone)]
pub(crate) struct RollAsked {
    pub roll: PathBuf,
    pub directory: PathBuf,
    pub pace: Pace,
    /// Directories of the roll outside of which calls are left out; empty: none are.
    pub only: Vec<Vec<u8>>,
    /// Each pass has copies of all files.
    pub own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Requests per second.
    Rate(f64),
    /// 2: twice as fast as the original.
    Multiple(f64),
}

/// A shorter pass would be mostly the making of its processes.
const SHORTEST_NS: u64 = 1_000_000;

/// A roll that can be a load.
pub(crate) struct Piece {
    pub name: String,
    pub roll: Arc<Roll>,
    pub score: Score,
    /// Of the original, s.
    pub run_s: f64,
    pub natural_rate: f64,
    pub multiple: f64,
    pub left_out: Option<LeftOut>,
}

/// Plays it and tells of windows on standard output.
///
/// # Errors
/// The roll is wrong (3), it cannot be played so fast (2), or not here (5).
pub(crate) fn offer(asked: &RollAsked, plan: &Plan, signals: &OwnedFd, format: Format) -> Result<(), Wrong> {
    let piece = piece(asked)?;
    let plan = &whole_passes(plan, piece.score.length_ns);
    let passes = plan.warm_up_ns.saturating_add(plan.duration_ns).div_ceil(piece.score.length_ns);
    let many = if piece.score.changes == Changes::Nothing { 1 } else { passes };
    let mut places = Places::make(asked, &piece, many, signals)?;
    if piece.score.length_ns > plan.duration_ns {
        let (pass_s, run_s) = (piece.score.length_ns as f64 / 1e9, plan.duration_ns as f64 / 1e9);
        complain!(
            "etude load: a pass of the roll lasts {pass_s:.1} s: {run_s} s are only a part, which may have another rate"
        );
    }
    let names = piece.score.names.clone();
    let done =
        command::told(names, plan, format, |lines| Course::new(&piece, plan, &places, signals, lines).run());
    // What nobody has changed is there for the next run.
    let cleared = if piece.score.changes == Changes::Nothing { Ok(()) } else { places.clear() };
    done.and(cleared)
}

/// With windows of whole passes, at least as long as was asked for, and as many of them as fit: a program does not ask at
/// one rate all the time, and only a whole pass has the one that was asked for.
fn whole_passes(plan: &Plan, pass_ns: u64) -> Plan {
    if pass_ns > plan.duration_ns {
        return plan.clone();
    }
    let most = plan.duration_ns / pass_ns;
    let passes = plan.window_ns.div_ceil(pass_ns).clamp(1, most);
    let window_ns = passes * pass_ns;
    Plan { window_ns, duration_ns: plan.duration_ns / window_ns * window_ns, ..plan.clone() }
}

fn piece(asked: &RollAsked) -> Result<Piece, Wrong> {
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
    let run_s = natural.length_ns as f64 / 1e9;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Process;
    use crate::plan::{Load, Wait};

    #[test]
    fn windows_are_whole_passes_and_no_run_is_longer_than_asked() {
        let plan = |duration_ns, window_ns| Plan {
            load: Load::Open { rate: 1.0, process: Process::Constant },
            wait: Wait::Hybrid,
            seed: 0,
            warm_up_ns: 0,
            duration_ns,
            window_ns,
            outstanding: 1,
            timeout_ns: 1,
            drain_ns: 1,
        };
        let rounded = |duration, window, pass| {
            let plan = whole_passes(&plan(duration, window), pass);
            (plan.duration_ns, plan.window_ns)
        };
        assert_eq!(rounded(1000, 100, 30), (960, 120));
        assert_eq!(rounded(1000, 100, 300), (900, 300));
        assert_eq!(rounded(1000, 2000, 300), (900, 900));
        assert_eq!(rounded(1000, 100, 1000), (1000, 1000));
        assert_eq!(rounded(1000, 100, 1001), (1000, 100), "less than a pass: as it was asked");
    }
}
