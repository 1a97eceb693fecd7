//! Gaps between calls without the time that was not the program's.

use super::*;

#[test]
fn gaps_are_shorter_by_what_was_waiting_for_a_cpu_where_that_is_left_out() {
    let noted = |at_ns, cpu_ns, run_delay_ns| Meta::RunDelay { thread: 0, at_ns, cpu_ns, run_delay_ns };
    let class = Scheduling { policy: Policy::Batch, priority: 0, nice: 0 };
    let metas = [
        one(),
        vec![noted(0, 0, 0), noted(2000, 500, 1500), noted(4000, 2500, 1500)],
        vec![Meta::Scheduling { process: 0, class }],
    ]
    .concat();
    // Three quarters of the first two gaps are waiting, and nothing of the last.
    let trace =
        [(1000, 1000), (2000, 2000), (4000, 4000)].map(|at| (0, event("stat", at, &[0, 0], 0, &[(0, b"x")])));
    let gaps = |script: &Script| -> Vec<u64> {
        let gap = |action: &Action| if let Action::Compute(ns) = action { Some(*ns) } else { None };
        script.steps.iter().filter_map(|step| gap(&step.action)).collect()
    };
    let (script, report) = made(&metas, &trace, &Options::default());
    assert_eq!((gaps(&script), report.run_delay), (vec![1000, 1000, 2000], Some(0.375)));
    assert_eq!((script.scheduling, script.notes.len()), (Some(class), 1));
    let without = Options { without_run_delay: true, ..Options::default() };
    let (script, report) = made(&metas, &trace, &without);
    assert_eq!((gaps(&script), report.run_delay), (vec![250, 250, 2000], Some(0.375)));
    assert_eq!(script.notes.len(), 2);
    let (script, report) = made(&one(), &trace, &without);
    assert_eq!((gaps(&script), report.run_delay), (vec![1000, 1000, 2000], None));
}

#[test]
fn gaps_are_shorter_by_the_time_for_which_the_recorder_held_the_thread() {
    let held = Meta::Held { thread: 0, spans: vec![(3000, 5000), (1100, 300)] };
    let trace =
        [(1000, 1000), (2000, 2000), (4000, 4000)].map(|at| (0, event("stat", at, &[0, 0], 0, &[(0, b"x")])));
    let gaps = |metas: &[Meta]| -> Vec<u64> {
        let gap = |action: &Action| if let Action::Compute(ns) = action { Some(*ns) } else { None };
        made(metas, &trace, &Options::default()).0.steps.iter().filter_map(|step| gap(&step.action)).collect()
    };
    assert_eq!(gaps(&one()), vec![1000, 1000, 2000]);
    assert_eq!(gaps(&[one(), vec![held]].concat()), vec![1000, 700, 1000]);
}
