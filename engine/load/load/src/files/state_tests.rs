use etude_workload::{FileSet, Workload};
use proptest::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::run::distribution::Process;
use crate::run::plan::Wait;

fn plan(load: Load, outstanding: usize) -> Plan {
    Plan {
        load,
        wait: Wait::Sleep,
        seed: 1,
        warm_up_ns: 50_000_000,
        duration_ns: 450_000_000,
        window_ns: 100_000_000,
        outstanding,
        timeout_ns: 20_000_000,
        drain_ns: 0,
    }
}

fn open(rate: f64) -> Load {
    Load::Open { rate, process: Process::Poisson }
}

fn state(plan: &Plan, threads: usize) -> State {
    let workload = Workload::preset("postmark").unwrap();
    let set = FileSet::new(&workload, 1.0, 1).unwrap();
    let mut state = State::new(plan, Stream::new(&workload, &set, 1), Numbers::of(&set));
    for _ in 0..threads {
        let thread = state.add_thread();
        state.turn.park(thread);
    }
    state.begin(plan, 0);
    state
}

#[derive(Debug, Clone, Copy)]
enum Doing {
    Sleeps,
    Acts(u64),
    Calls(u64),
}

/// Runs threads in a made-up time until `until_ns`; the jobs in the order in which they began, with when they did, and ended.
fn run(state: &mut State, until_ns: u64, seed: u64, longest_ns: u64) -> Vec<(Job, u64, u64)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut threads = vec![Doing::Sleeps; state.threads()];
    let (mut look, mut jobs) = (0, Vec::new());
    loop {
        let at = |doing: &Doing| match doing {
            Doing::Sleeps => u64::MAX,
            Doing::Acts(at) | Doing::Calls(at) => *at,
        };
        let (thread, now) = threads.iter().map(at).enumerate().min_by_key(|(_, at)| *at).unwrap();
        if look.min(now) >= until_ns {
            return jobs;
        }
        if look <= now {
            state.turn_window(look);
            state.give_up(look);
            if let Some(woken) = state.watch(look) {
                assert!(matches!(threads[woken], Doing::Sleeps));
                threads[woken] = Doing::Acts(look + random.random_range(0..100_000));
            }
            look += 700_000;
            continue;
        }
        if let Doing::Calls(_) = threads[thread] {
            state.end(thread, now, Ok(()));
        }
        threads[thread] = match state.next(thread, now) {
            Step::Call { job, wake, .. } => {
                for woken in wake.into_iter().flatten() {
                    assert!(matches!(threads[woken], Doing::Sleeps));
                    threads[woken] = Doing::Acts(now + random.random_range(0..100_000));
                }
                let most = if random.random_range(0..20) == 0 { longest_ns } else { 5_000 };
                let ends = now + random.random_range(1..=most);
                jobs.push((job, now, ends));
                Doing::Calls(ends)
            }
            Step::Await(due_ns) => Doing::Acts(due_ns),
            Step::Park => Doing::Sleeps,
            Step::Leave => unreachable!(),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn each_request_counts_in_the_window_in_which_it_was_due_and_none_is_lost(
        rate in 100.0..20_000.0_f64, threads in 1_usize..9, longest in 1_u64..15_000_000, seed: u64,
    ) {
        let plan = plan(open(rate), threads);
        let mut state = state(&plan, threads);
        let jobs = run(&mut state, 600_000_000, seed, longest);
        prop_assert!(!state.offering);
        let mut schedule = Schedule::new(plan.load, plan.seed, 0);
        let due: Vec<u64> = std::iter::from_fn(|| { let at = schedule.next_ns(); schedule.advance(); Some(at) })
            .take_while(|at| *at < 500_000_000).filter(|at| *at >= 50_000_000).collect();
        prop_assert_eq!(state.closed.len(), 5);
        let mut begin = 50_000_000;
        for window in &state.closed {
            let end = begin + window.duration_ns;
            let expected = due.iter().filter(|at| (begin..end).contains(*at)).count() as u64;
            prop_assert_eq!(window.tally.offered, expected);
            begin = end;
        }
        let sums = state.closed.iter().map(|window| &window.tally).chain([&state.tally]);
        let (started, over) = sums.fold((0, 0), |(started, over), tally| {
            (started + tally.started, over + tally.completed + tally.failed)
        });
        prop_assert_eq!(over + state.unanswered().filter(|due| *due >= state.began_ns).count() as u64, due.len() as u64);
        prop_assert_eq!(started, jobs.iter().filter(|(job, ..)| job.due_ns >= 50_000_000).count() as u64);
        // One stream, in the order in which requests were due.
        let mut drawn: Vec<Job> = jobs.iter().map(|(job, ..)| *job).collect();
        drawn.sort_by_key(|job| job.ticket);
        prop_assert!(drawn.is_sorted_by_key(|job| job.due_ns));
        // What makes or removes an object has it alone.
        for (earlier, (job, begin, _)) in jobs.iter().enumerate() {
            for (other, _, ends) in &jobs[earlier.saturating_sub(40)..earlier] {
                let [one, two] = [job, other].map(|job| state.numbers.claim(&job.operation));
                prop_assert!(!one.meets(two) || ends <= begin, "{:?} {:?}", job, other);
            }
        }
    }
}

#[test]
fn a_call_that_does_not_return_times_out_and_leaves_its_place_to_another_thread() {
    let plan = plan(open(1000.0), 1);
    let mut state = state(&plan, 2);
    let thread = state.watch(0).unwrap();
    let Step::Await(due_ns) = state.next(thread, 0) else { panic!() };
    assert!(matches!(state.next(thread, due_ns), Step::Call { .. }));
    assert_eq!((state.owed(), state.written_off()), (1, 0));
    let late_ns = due_ns + plan.timeout_ns;
    state.began_ns = 0;
    state.give_up(late_ns);
    assert_eq!((state.owed(), state.written_off(), state.tally.failed), (0, 1, 1));
    assert_eq!(state.tally.failures.timeout, 1);
    let other = state.watch(late_ns).unwrap();
    assert_ne!(other, thread);
    assert!(matches!(state.next(other, late_ns), Step::Call { .. }));
    state.end(thread, late_ns + 1, Ok(()));
    assert_eq!((state.written_off(), state.tally.completed), (0, 0), "its answer comes too late to count");
}

#[test]
fn clients_send_again_when_they_have_their_answer() {
    let plan = plan(Load::Closed { clients: 3, think_ns: 0, exponential: false }, 3);
    let mut state = state(&plan, 3);
    let jobs = run(&mut state, 100_000_000, 1, 1_000_000);
    assert!(jobs.len() > 1000, "{}", jobs.len());
    for (job, begin, _) in &jobs[10..] {
        assert!(begin - job.due_ns <= 1_500_000, "a client waited: {} {}", job.due_ns, begin);
    }
}
