//! A recorded program's I/O as a load: its roll is played again and again, on its own schedule at a multiple of its speed.
//!
//! `scored_roll.rs` reads the roll, `places.rs` makes the directories in which it is played, `pass_sequence.rs` starts one pass after the
//! other and tells of windows. What plays are processes of the replay (`etude_replay::Pass`): this one only counts.

mod pass_results;
mod pass_sequence;
mod places;
mod scored_roll;

use std::os::fd::OwnedFd;

use etude_clock::seconds;
use etude_options::Failed;
use etude_replay::Changes;
use etude_terminal::complain;

use self::pass_results::summary;
use self::pass_sequence::Course;
use self::places::Places;
use self::scored_roll::piece;
use crate::options::{Format, RollAsked};
use crate::run::plan::Plan;
use crate::run::run;
use crate::run::run_loop::Signals;

/// Plays it and tells of windows on standard output.
///
/// # Errors
/// The roll is wrong (3), it cannot be played so fast (2), or not here (5).
pub(crate) fn offer(asked: &RollAsked, plan: &Plan, signals: OwnedFd, format: Format) -> Result<(), Failed> {
    let piece = piece(asked)?;
    let plan = &whole_passes(plan, piece.score.length_ns);
    let passes = plan.warm_up_ns.saturating_add(plan.duration_ns).div_ceil(piece.score.length_ns);
    let many = if piece.score.changes == Changes::Nothing { 1 } else { passes };
    let mut places = Places::make(asked, &piece, many, &signals)?;
    if piece.score.length_ns > plan.duration_ns {
        let (pass_s, run_s) = (seconds(piece.score.length_ns), seconds(plan.duration_ns));
        complain!(
            "etude load: a pass of the roll lasts {pass_s:.1} s: {run_s} s are only a part, which may have another rate"
        );
    }
    let signals = Signals::new(signals, u32::from(places.interrupted));
    let course = Course::new(&piece, plan, &places);
    let done = run(plan, summary(&piece, plan), signals, course, format);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::distribution::Process;
    use crate::run::plan::{Load, Wait};

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
