//! What holds at the barrier whoever arrives, dies or ends, and whenever.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::member::parts;
use super::{Inside, Member, NotPassed};
use crate::outcome::{Status, WorkerOutcome};

const BROKEN_BY_1: &str = "the barrier was broken: worker 1 ended before all had reached it";

fn member(inside: &Inside, worker: usize) -> Member {
    Member::open(&inside.address(worker)).unwrap()
}

/// Worker `worker` arrives; nobody waits, so that all can be done in one thread.
fn arrive(inside: &Inside, worker: usize) -> Result<(Member, u32), NotPassed> {
    let member = member(inside, worker);
    member.arrive().map(|gate| (member, gate))
}

fn look((member, gate): &(Member, u32)) -> Option<Result<u64, NotPassed>> {
    member.look(*gate)
}

fn broken(text: &str) -> NotPassed {
    NotPassed::Broken(text.to_owned())
}

#[test]
fn the_last_to_arrive_releases_all_at_one_instant_to_come() {
    let inside = Inside::new(3, false).unwrap();
    let waiting: Vec<_> = (0..2).map(|worker| arrive(&inside, worker).unwrap()).collect();
    assert!(waiting.iter().all(|waiting| look(waiting).is_none()));
    let before = crate::clock::monotonic_ns();
    let last = arrive(&inside, 2).unwrap();
    let instants: Vec<_> = waiting.iter().chain([&last]).map(|one| look(one).unwrap().unwrap()).collect();
    assert!(instants.iter().all(|&instant| instant == instants[0] && instant > before));
}

#[test]
fn who_was_released_passes_even_if_another_has_ended_since() {
    let inside = Inside::new(2, false).unwrap();
    let sleepy = arrive(&inside, 0).unwrap();
    drop(arrive(&inside, 1).unwrap());
    inside.break_up(Some(1));
    assert!(matches!(look(&sleepy), Some(Ok(_))));
    assert!(!inside.has_sent_away());
}

#[test]
fn an_end_sends_those_away_who_wait_and_who_arrive_later() {
    let inside = Inside::new(3, false).unwrap();
    let waiting = arrive(&inside, 0).unwrap();
    inside.break_up(Some(1));
    inside.break_up(Some(2));
    assert!(!inside.has_sent_away());
    assert_eq!(look(&waiting), Some(Err(broken(BROKEN_BY_1))));
    assert!(inside.has_sent_away());
    assert_eq!(arrive(&inside, 2).err(), Some(broken(BROKEN_BY_1)));
}

#[test]
fn the_bell_rings_for_those_sent_away_only() {
    let rings = |inside: &Inside| {
        let mut polled = [crate::sys::wanted(inside.bell())];
        crate::sys::poll(&mut polled, Some(0)).unwrap() == 1
    };
    let inside = Inside::new(2, false).unwrap();
    drop((arrive(&inside, 0).unwrap(), arrive(&inside, 1).unwrap()));
    inside.break_up(Some(1));
    assert!(!rings(&inside));
    assert!(arrive(&inside, 0).is_err());
    assert!(rings(&inside));
    inside.hush();
    assert!(!rings(&inside));
}

#[test]
fn a_waiter_that_dies_has_not_arrived() {
    let inside = Inside::new(2, false).unwrap();
    drop(arrive(&inside, 0).unwrap());
    let waiting = arrive(&inside, 1).unwrap();
    assert_eq!(look(&waiting), None);
    let again = arrive(&inside, 0).unwrap();
    assert!(matches!((look(&waiting), look(&again)), (Some(Ok(_)), Some(Ok(_)))));
}

#[test]
fn a_worker_counts_once_however_many_of_its_commands_arrive() {
    let inside = Inside::new(2, false).unwrap();
    let first = arrive(&inside, 0).unwrap();
    assert!(matches!(arrive(&inside, 0), Err(NotPassed::Taken(_))));
    assert_eq!(look(&first), None);
}

#[test]
fn a_new_trial_has_a_whole_barrier() {
    let inside = Inside::new(2, false).unwrap();
    let late = arrive(&inside, 0).unwrap();
    inside.break_up(Some(1));
    assert!(look(&late).is_some_and(|passed| passed.is_err()));
    drop(late);
    inside.reset();
    assert!(!inside.has_sent_away());
    let first = arrive(&inside, 1).unwrap();
    assert_eq!(look(&first), None, "nobody of the trial before has arrived");
    let _second = arrive(&inside, 0).unwrap();
    assert!(matches!(look(&first), Some(Ok(_))));
}

#[test]
fn the_reason_names_the_worker_and_how_it_ended() {
    let inside = Inside::new(3, false).unwrap();
    let ended = |status| WorkerOutcome { status: Some(status), ..WorkerOutcome::default() };
    let workers = [ended(Status::Exited(0)), ended(Status::Exited(3)), ended(Status::Signalled(9))];
    inside.break_up(Some(1));
    assert_eq!(inside.reason(&workers), None, "it is no reason as long as nobody is sent away");
    assert!(arrive(&inside, 0).is_err());
    let expected = "worker 1 (exit status 3) ended before all workers had reached the barrier";
    assert_eq!(inside.reason(&workers).as_deref(), Some(expected));
    inside.reset();
    inside.break_up(None);
    let why = broken("the barrier was broken: the trial is being ended");
    assert_eq!(arrive(&inside, 0).err(), Some(why));
    assert_eq!(inside.reason(&workers), None);
    inside.reset();
    inside.break_up(Some(2));
    assert!(arrive(&inside, 0).is_err());
    assert!(inside.reason(&workers).unwrap().starts_with("worker 2 (signal 9) ended"));
}

#[test]
fn an_address_without_a_barrier_is_refused_in_one_line() {
    let inside = Inside::new(2, false).unwrap();
    let path = std::env::temp_dir().join(format!("etude-test-{}-no-barrier", std::process::id()));
    let mut nearly = [0; super::bytes(1)];
    nearly[std::mem::offset_of!(super::Head, workers)] = 1;
    std::fs::write(&path, nearly).unwrap();
    let file = format!("{}:0", path.display());
    let [third, none] = [inside.address(2), inside.address(0).replace(":0", "")];
    for address in [
        &third,
        &none,
        &file,
        "/proc/self/fd/99999:0",
        "/dev/null:0",
        "/nowhere:0",
        "/proc:0",
        ":",
        "/dev/null:-1",
    ] {
        let error = Member::open(address).err().unwrap_or_else(|| panic!("{address} is opened"));
        assert!(error.starts_with(&format!("APIPCKEY={address}: no barrier: ")), "{error}");
        assert!(!error.contains('\n'));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn threads_never_overtake_each_other() {
    const WORKERS: usize = 5;
    const ROUNDS: usize = 40;
    let inside = Inside::new(WORKERS, false).unwrap();
    let addresses: Vec<_> = (0..WORKERS).map(|worker| inside.address(worker)).collect();
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for address in &addresses {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    begun.fetch_add(1, SeqCst);
                    Member::open(address).unwrap().pass(|_| ()).unwrap();
                    assert!(begun.load(SeqCst) >= round * WORKERS, "released before the last has come");
                }
            });
        }
    });
}

#[test]
fn a_sleeping_waiter_is_woken_by_the_end_of_another() {
    let inside = Inside::new(2, false).unwrap();
    let address = inside.address(0);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| Member::open(&address).unwrap().pass(|_| ()));
        let start = Instant::now();
        while inside.board.place(0).load(SeqCst) == 0 && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        inside.break_up(Some(1));
        assert_eq!(waiter.join().unwrap(), Err(broken(BROKEN_BY_1)));
    });
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Arrive(usize),
    Die(usize),
    End(usize),
}

fn steps() -> impl Strategy<Value = (usize, Vec<Step>)> {
    (1usize..5).prop_flat_map(|workers| {
        let step = prop_oneof![
            12 => (0..workers).prop_map(Step::Arrive),
            2 => (0..workers).prop_map(Step::Die),
            1 => (0..workers).prop_map(Step::End),
        ];
        (Just(workers), vec(step, 0..60))
    })
}

proptest! {
    /// The barrier against what it should be: a set of those that wait, and who has broken it.
    #[test]
    fn nobody_passes_before_all_wait_and_nobody_waits_for_one_that_ended((workers, steps) in steps()) {
        let inside = Inside::new(workers, false).unwrap();
        let mut waiting: Vec<Option<(Member, u32)>> = (0..workers).map(|_| None).collect();
        let mut ended = None;
        for step in steps {
            match step {
                Step::Arrive(worker) if waiting[worker].is_some() => {
                    prop_assert!(matches!(arrive(&inside, worker), Err(NotPassed::Taken(_))));
                }
                Step::Arrive(worker) => match (arrive(&inside, worker), ended) {
                    (Ok(arrived), None) => waiting[worker] = Some(arrived),
                    (Err(NotPassed::Broken(why)), Some(ended)) => {
                        let expected = format!("worker {ended} ended");
                        prop_assert!(why.contains(&expected), "{}", why);
                    }
                    _ => prop_assert!(false, "{step:?} with {ended:?}"),
                },
                Step::Die(worker) => waiting[worker] = None,
                Step::End(worker) => {
                    inside.break_up(Some(worker));
                    ended = ended.or(Some(worker));
                }
            }
            let is_full = waiting.iter().all(Option::is_some);
            for place in &mut waiting {
                match place.as_ref().map(look) {
                    Some(None) => prop_assert!(!is_full && ended.is_none()),
                    Some(Some(Ok(_))) => prop_assert!(is_full),
                    Some(Some(Err(_))) => prop_assert!(ended.is_some()),
                    None => continue,
                }
                if is_full || ended.is_some() {
                    *place = None;
                }
            }
        }
    }

    #[test]
    fn an_address_comes_back_as_it_was(path in "[^\u{0}]{0,20}", worker in any::<usize>()) {
        let address = format!("{path}:{worker}");
        prop_assert_eq!(parts(&address), Some((Path::new(&path), worker)));
    }

    #[test]
    fn any_text_is_an_address_or_none(text in any::<String>()) {
        if let Some((path, worker)) = parts(&text) {
            let tail = text.rsplit(':').next().unwrap_or_default();
            prop_assert_eq!(path.to_str(), Some(&text[..text.len() - tail.len() - 1]));
            prop_assert_eq!(tail.parse(), Ok(worker));
        }
    }
}
