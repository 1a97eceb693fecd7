use proptest::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;

/// The watcher's.
const LOOK_NS: u64 = 700_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Doing {
    Idle,
    /// Woken, or done with a wait or a call, at that instant.
    Acts(u64),
    /// In a call that began then, until then.
    Calls(u64, u64),
}

/// Threads that do what `State::next` makes them do, in a time that is made up.
struct World {
    turn: Turn,
    threads: Vec<Doing>,
    due: Vec<u64>,
    next: usize,
    late: Vec<u64>,
    wakes: usize,
    random: Xoshiro256PlusPlus,
    wake_ns: u64,
}

impl World {
    fn new(threads: usize, due: Vec<u64>, wake_ns: u64, seed: u64) -> World {
        let mut turn = Turn::new(1, false);
        (0..threads).for_each(|thread| turn.park(thread));
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let threads = vec![Doing::Idle; threads];
        World { turn, threads, due, next: 0, late: Vec::new(), wakes: 0, random, wake_ns }
    }

    fn wake(&mut self, thread: Option<Thread>, now: u64) {
        if let Some(thread) = thread {
            assert_eq!(self.threads[thread], Doing::Idle, "who is woken was idle");
            let takes = self.random.random_range(0..=self.wake_ns);
            self.threads[thread] = Doing::Acts(now + takes);
            self.wakes += 1;
        }
    }

    fn ahead(&self, now_ns: u64) -> Ahead {
        Ahead { now_ns, next_due_ns: self.due.get(self.next).copied().unwrap_or(u64::MAX) }
    }

    fn act(
        &mut self,
        thread: Thread,
        now: u64,
        call_ns: &mut dyn FnMut(&mut Xoshiro256PlusPlus, u64) -> u64,
    ) {
        if let Doing::Calls(since, until) = self.threads[thread] {
            self.turn.back(thread, 0, until - since);
        }
        if self.turn.is_vacant() {
            self.turn.arrive(thread);
        }
        let due = self.ahead(now).next_due_ns;
        if due <= now {
            self.late.push(now - due);
            self.next += 1;
            let ahead = self.ahead(now);
            let woken = self.turn.call(thread, 0, ahead);
            self.wake(woken, now);
            let takes = call_ns(&mut self.random, now);
            self.threads[thread] = Doing::Calls(now, now + takes);
        } else if due != u64::MAX && self.turn.arrive(thread) {
            self.threads[thread] = Doing::Acts(due);
        } else {
            self.turn.park(thread);
            self.threads[thread] = Doing::Idle;
        }
    }

    fn check(&self) {
        let mut idle = self.turn.idle.clone();
        idle.sort_unstable();
        let expected: Vec<Thread> =
            (0..self.threads.len()).filter(|thread| self.threads[*thread] == Doing::Idle).collect();
        assert_eq!(idle, expected, "who is idle is known, once");
        let calling = |thread: Thread| matches!(self.threads[thread], Doing::Calls(..));
        match self.turn.leader {
            Some(leader) => {
                assert_ne!(self.threads[leader], Doing::Idle, "nobody sleeps on the turn");
                assert_eq!(
                    self.turn.kept_ns.is_some(),
                    calling(leader),
                    "a turn that is kept is known as such"
                );
            }
            None => assert!(self.next == self.due.len() || idle.is_empty(), "somebody could lead"),
        }
    }

    fn run(&mut self, mut call_ns: impl FnMut(&mut Xoshiro256PlusPlus, u64) -> u64) {
        let mut look = 0;
        loop {
            let mut soonest: Vec<(u64, Option<Thread>)> = vec![(look, None)];
            for (thread, doing) in self.threads.iter().enumerate() {
                match doing {
                    Doing::Idle => {}
                    Doing::Acts(at) | Doing::Calls(_, at) => soonest.push((*at, Some(thread))),
                }
            }
            let now = soonest.iter().map(|(at, _)| *at).min().unwrap();
            let now_all: Vec<Option<Thread>> =
                soonest.into_iter().filter(|(at, _)| *at == now).map(|(_, who)| who).collect();
            match now_all[self.random.random_range(0..now_all.len())] {
                Some(thread) => self.act(thread, now, &mut call_ns),
                None if self.next == self.due.len() => return,
                None => {
                    look = now + LOOK_NS;
                    let ahead = self.ahead(now);
                    let woken = self.turn.watch(ahead);
                    self.wake(woken, now);
                }
            }
            if now > 0 {
                self.check();
            }
        }
    }
}

fn spaced(gaps: impl Iterator<Item = u64>) -> Vec<u64> {
    gaps.scan(1_000, |at, gap| {
        *at += gap;
        Some(*at)
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_served_whatever_calls_and_wake_ups_take(
        threads in 1_usize..6, gap in 1_u64..300_000, wake in 0_u64..2_000_000, longest in 1_u64..5_000_000, seed: u64,
    ) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let due = spaced((0..400).map(|_| random.random_range(0..gap)));
        let mut world = World::new(threads, due, wake, seed);
        world.run(|random, _| {
            let most = if random.random_range(0..10) == 0 { longest } else { 2_000 };
            random.random_range(0..most)
        });
        prop_assert_eq!(world.late.len(), 400);
    }

    #[test]
    fn a_stall_makes_requests_late_by_a_millisecond_at_most_while_threads_are_idle(seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let due = spaced((0..400).map(|_| random.random_range(60_000..500_000)));
        let wake_ns = 50_000;
        let mut world = World::new(350, due, wake_ns, seed);
        // 20 ms of each 50 the target does not answer.
        world.run(|_, now| if now % 50_000_000 < 20_000_000 { 20_000_000 - now % 20_000_000 } else { 2_000 });
        let latest = world.late.iter().skip(1).max().unwrap();
        prop_assert!(*latest <= OVERSTAY_NS + LOOK_NS + 2 * wake_ns, "{}", latest);
    }
}

#[test]
fn while_calls_are_quick_one_thread_does_all_and_nobody_is_woken() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let due = spaced((0..20_000).map(|_| random.random_range(0..200_000)));
    let mut world = World::new(8, due, 30_000, 1);
    world.run(|random, _| random.random_range(500..3_000));
    assert_eq!(world.wakes, 1, "the one that leads first");
}

#[test]
fn where_one_thread_does_not_suffice_others_are_woken() {
    let mut world = World::new(8, spaced((0..20_000).map(|_| 10_000)), 30_000, 1);
    // Two processors' worth, each call too quick to be handed over.
    world.run(|_, _| 18_000);
    let latest = world.late.iter().max().unwrap();
    assert!(*latest < 3 * BEHIND_NS, "{latest}");
}
