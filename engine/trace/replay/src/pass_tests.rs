use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etude_script::{Action, Script};
use proptest::prelude::*;

use super::*;
use crate::schedule::{Changes, Score};
use crate::tests::{O_RDWR_CREAT, Place, called, compiled, open, script};

const MILLI: u64 = 1_000_000;

fn compute(ms: u64) -> Action {
    Action::Compute(ms * MILLI)
}

fn write() -> Action {
    called("pwrite64", &[3, 0, 10, 0], 10, None)
}

/// A process, its thread and its child, each with calls 10 ms apart.
fn three() -> Script {
    let mut steps =
        vec![(0, open("a", O_RDWR_CREAT, 3)), (0, Action::Start(1)), (0, compute(5)), (0, Action::Fork(2))];
    for _ in 0..10 {
        for thread in 0..3 {
            steps.extend([(thread, compute(10)), (thread, write())]);
        }
    }
    script(steps)
}

fn roll_of(script: &Script) -> Arc<Roll> {
    Roll::read(compiled(script)).unwrap().into()
}

fn now() -> u64 {
    now_ns() as u64
}

fn offered(begin_ns: u64, from_ns: u64, until_ns: u64) -> Offered {
    Offered { speed: 1.0, begin_ns, from_ns, until_ns }
}

/// Plays it to its end, or for ten seconds.
fn through(mut pass: Pass) -> Played {
    for _ in 0..2000 {
        if pass.ended().unwrap() == Ended::Whole {
            return pass.played();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it does not end")
}

/// A process that another test forks meanwhile would hold what this one listens to.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_pass_makes_the_calls_that_are_due_while_it_counts_and_no_others() {
    let (_turn, place, roll) = (turn(), Place::new(), roll_of(&three()));
    let score = Score::of(&roll, 1.0).unwrap();
    assert_eq!((score.requests, score.changes), (31, Changes::Files));
    assert_eq!(score.names, ["openat", "pwrite64"]);
    for (from, until) in [(0, 1000), (0, 42), (35, 1000), (27, 63), (1000, 2000)] {
        let begin = now() + 50 * MILLI;
        let pass = Pass::start(&roll, &place.0, offered(begin, begin + from * MILLI, begin + until * MILLI))
            .unwrap();
        let played = through(pass);
        let due = score.due_before(until * MILLI).saturating_sub(score.due_before(from * MILLI));
        assert_eq!((played.begun, played.ended(), played.unplayed), (due, due, 0), "{from} {until}");
        assert_eq!(played.lateness.count(), due);
    }
}

#[test]
fn a_response_counts_from_when_a_call_was_due() {
    let (_turn, place) = (turn(), Place::new());
    let roll = roll_of(&three());
    // It begins 300 ms after it should: all calls are late, and each response is at least as long.
    let begin = now() - 300 * MILLI;
    let played = through(Pass::start(&roll, &place.0, offered(begin, begin, u64::MAX)).unwrap());
    let of = &played.by["pwrite64"];
    assert!(of.responses.quantile(0.01).unwrap() > 150 * MILLI, "{of:?}");
    assert_eq!((of.failed, of.responses.count()), (0, 30));
    // Calls that wait for those before them are no fault of the player.
    assert!(of.ns / 30 > 150 * MILLI);
}

#[test]
fn another_result_is_a_failure_that_has_the_name_of_its_error() {
    let (_turn, place) = (turn(), Place::new());
    let other = script(vec![(0, open("not-there", 0, 3)), (0, called("pread64", &[3, 0, 10, 0], 10, None))]);
    let begin = now();
    let played = through(Pass::start(&roll_of(&other), &place.0, offered(begin, 0, u64::MAX)).unwrap());
    assert_eq!(played.errors, BTreeMap::from([(libc::ENOENT as u16, 1)]));
    assert_eq!((played.by["openat"].failed, played.by["openat"].responses.count()), (1, 0));
    // What was not opened cannot be read, and so was not asked for.
    assert_eq!((played.begun, played.unplayed), (1, 1));
}

#[test]
fn what_is_left_ends_at_once_and_what_is_stopped_makes_no_call_more() {
    let (_turn, place, roll) = (turn(), Place::new(), roll_of(&three()));
    let begin = now() + 3_600_000 * MILLI;
    let mut pass = Pass::start(&roll, &place.0, offered(begin, 0, u64::MAX)).unwrap();
    pass.leave();
    assert_eq!(through(pass).begun, 0);
    let pass = Pass::start(&roll, &place.0, offered(begin, 0, u64::MAX)).unwrap();
    pass.stop(now());
    assert_eq!(through(pass).begun, 0);
}

#[test]
fn a_pass_that_cannot_be_played_says_why() {
    let (_turn, place, roll) = (turn(), Place::new(), roll_of(&three()));
    let Err(Refused(line, code)) = Pass::start(&roll, &place.0.join("nowhere"), offered(0, 0, 1)) else {
        panic!()
    };
    assert!(code == 5 && line.contains("nowhere"), "{line}");
}

#[test]
fn a_roll_that_only_reads_changes_nothing() {
    let changes = |steps: Vec<(u32, Action)>| Score::of(&roll_of(&script(steps)), 1.0).unwrap().changes;
    let reads = vec![
        (0, open("a", 0, 3)),
        (0, called("fstat", &[3], 0, None)),
        (0, called("read", &[3, 0, 10], 10, None)),
        (0, called("unlink", &[0], -2, Some((0, b"gone")))),
        (0, called("close", &[3], 0, None)),
    ];
    assert_eq!(changes(reads), Changes::Nothing);
    assert_eq!(changes(vec![(0, open("a", O_RDWR_CREAT, 3))]), Changes::Files);
    assert_eq!(changes(vec![(0, called("unlink", &[0], 0, Some((0, b"a"))))]), Changes::Files);
}

proptest! {
    #[test]
    fn passes_follow_each_other_without_a_gap(
        gaps in prop::collection::vec((0..2_u32, 0..50_000_u64), 1..40), speed in 0.2..20.0, at in 0_u64..20
    ) {
        let mut steps = vec![(0, open("a", O_RDWR_CREAT, 3)), (0, Action::Start(1))];
        for (thread, ns) in gaps {
            steps.extend([(thread, Action::Compute(ns)), (thread, write())]);
        }
        let roll = roll_of(&script(steps));
        let score = Score::of(&roll, speed).unwrap();
        let length = score.length_ns;
        // The last is due at the end at the latest.
        prop_assert_eq!(score.due_before(length + 1), score.requests);
        for passes in [1, 2, 7] {
            let ns = at * length / 10 + 1;
            let (one, more) = (score.due_before_again(ns), score.due_before_again(ns + passes * length));
            prop_assert_eq!(more, one + passes * score.requests);
        }
    }
}
