//! How far chilling goes: the next step from readings of the machine, and nothing but that.

use std::collections::VecDeque;

use etude_clock::SECOND;

/// What one step may take at most: then the machine is looked at again.
const STEP: u64 = 256 << 20;

/// A step that is smaller than this is not worth another look.
const LEAST_STEP: u64 = 1 << 20;

/// A step takes at most this part of what may still be taken: the nearer the end, the smaller.
const PART: u64 = 4;

/// Over so long the share of time is computed in which all waited for memory.
const WINDOW_NS: u64 = SECOND;

/// From this share on it pauses, so that the kernel evicts in the background and nobody has to wait for it.
const PAUSE_SHARE: f64 = 0.1;

/// From this share on it gives up if pausing did not help.
const STOP_SHARE: f64 = 0.4;

const PAUSE_NS: u64 = SECOND / 50;

/// After so many pauses in a row pausing has not helped.
const MOST_PAUSES: u32 = 150;

/// Pages of others may go to swap space: so many are by chance.
const MOST_SWAPPED: u64 = 256;

/// File caches that are smaller than this are what is in use all the time: programs, libraries.
const SMALL: u64 = 32 << 20;

/// Over so many bytes file caches must not have shrunk for the end to be reached.
const STILL: u64 = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// A ceiling for what is held, B.
    pub most: u64,
    /// The machine keeps so much available, B.
    pub leave: u64,
    /// It ends after this, ns.
    pub time_ns: u64,
}

/// The machine at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Since the beginning.
    pub elapsed_ns: u64,
    /// What others could have, B.
    pub available: u64,
    /// Page cache of files, B.
    pub file: u64,
    /// For how long so far all waited for memory; None where the kernel does not tell.
    pub stalled_ns: Option<u64>,
    /// Pages written to swap space so far.
    pub swapped_out: u64,
    /// Pages looked at for eviction so far.
    pub scanned: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Take so many bytes more.
    Grow(u64),
    /// Take nothing for so long, ns.
    Pause(u64),
    Stop(Stopped),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// File caches are small and do not shrink any more.
    Evicted,
    /// No more may be taken without leaving too little to others.
    Leave,
    Most,
    Pressure,
    Time,
    /// The kernel gave no more.
    Refused,
    Swap,
}

/// What was seen so far.
pub struct Course {
    bounds: Bounds,
    first: Reading,
    /// The last readings, the oldest first: what pressure is computed over.
    recent: VecDeque<Reading>,
    /// Where file caches were last seen to shrink: what was held, and their size.
    shrunk: (u64, u64),
    pauses: u32,
}

impl Course {
    pub fn new(bounds: Bounds, first: Reading) -> Course {
        Course { bounds, first, recent: VecDeque::from([first]), shrunk: (0, first.file), pauses: 0 }
    }

    /// What to do now, holding so many bytes.
    pub fn next(&mut self, held: u64, now: &Reading) -> Step {
        self.remember(held, now);
        if now.swapped_out.saturating_sub(self.first.swapped_out) > MOST_SWAPPED {
            return Step::Stop(Stopped::Swap);
        }
        if now.elapsed_ns >= self.bounds.time_ns {
            return Step::Stop(Stopped::Time);
        }
        if self.evicted(held, now) {
            return Step::Stop(Stopped::Evicted);
        }
        let room = now.available.saturating_sub(self.bounds.leave) / PART;
        if room < LEAST_STEP {
            return Step::Stop(Stopped::Leave);
        }
        let Some(rest) = self.bounds.most.checked_sub(held).filter(|rest| *rest >= crate::held::PAGE) else {
            return Step::Stop(Stopped::Most);
        };
        match self.pressure(now) {
            share if share >= STOP_SHARE && self.pauses >= MOST_PAUSES => Step::Stop(Stopped::Pressure),
            share if share >= PAUSE_SHARE && self.pauses < MOST_PAUSES => {
                self.pauses += 1;
                Step::Pause(PAUSE_NS)
            }
            _ => {
                self.pauses = 0;
                let step = room.min(STEP).min(rest);
                Step::Grow(step - step % crate::held::PAGE)
            }
        }
    }

    /// Share of the time so far in which all waited for memory; None where the kernel does not tell.
    pub fn share(&self, now: &Reading) -> Option<f64> {
        share(&self.first, now)
    }

    fn remember(&mut self, held: u64, now: &Reading) {
        self.recent.push_back(*now);
        let old = |reading: &Reading| reading.elapsed_ns + WINDOW_NS <= now.elapsed_ns;
        while self.recent.len() > 2 && self.recent.get(1).is_some_and(old) {
            self.recent.pop_front();
        }
        let (_, file) = self.shrunk;
        if now.file < file - file / 64 || now.file > file + file / 64 {
            self.shrunk = (held, now.file);
        }
    }

    /// Without the kernel having looked for pages to evict, small caches are only a machine that has just booted.
    fn evicted(&self, held: u64, now: &Reading) -> bool {
        let before = self.shrunk.0;
        now.file <= SMALL && held.saturating_sub(before) >= STILL && now.scanned > self.first.scanned
    }

    /// Share of the last window in which all waited for memory.
    fn pressure(&self, now: &Reading) -> f64 {
        self.recent.front().and_then(|before| share(before, now)).unwrap_or(0.0)
    }
}

fn share(before: &Reading, now: &Reading) -> Option<f64> {
    let stalled = now.stalled_ns?.saturating_sub(before.stalled_ns?);
    let passed = now.elapsed_ns.saturating_sub(before.elapsed_ns);
    Some(if passed == 0 { 0.0 } else { (stalled as f64 / passed as f64).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const BOUNDS: Bounds = Bounds { most: 64 << 30, leave: 32 * MIB, time_ns: 120 * SECOND };

    fn reading() -> Reading {
        Reading {
            elapsed_ns: 0,
            available: 8 << 30,
            file: 2 << 30,
            stalled_ns: Some(0),
            swapped_out: 0,
            scanned: 0,
        }
    }

    /// What follows a reading that came so many ms after the first one.
    fn after(ms: u64, change: impl Fn(&mut Reading)) -> Step {
        let mut now = reading();
        now.elapsed_ns = ms * 1_000_000;
        change(&mut now);
        Course::new(BOUNDS, reading()).next(0, &now)
    }

    #[test]
    fn steps_are_smaller_the_nearer_the_end() {
        assert_eq!(after(1, |_| ()), Step::Grow(STEP));
        assert_eq!(after(1, |now| now.available = 72 * MIB), Step::Grow(10 * MIB));
        assert_eq!(after(1, |now| now.available = 35 * MIB), Step::Stop(Stopped::Leave));
        assert_eq!(after(1, |now| now.available = 0), Step::Stop(Stopped::Leave));
    }

    #[test]
    fn pages_of_others_in_swap_space_and_the_time_end_it() {
        assert_eq!(after(1, |now| now.swapped_out = 257), Step::Stop(Stopped::Swap));
        assert_eq!(after(1, |now| now.swapped_out = 256), Step::Grow(STEP), "some go at any time");
        assert_eq!(after(120_000, |_| ()), Step::Stop(Stopped::Time));
    }

    #[test]
    fn under_pressure_it_pauses_and_where_that_does_not_help_it_gives_up() {
        let mut course = Course::new(BOUNDS, reading());
        let mut steps = Vec::new();
        for millisecond in (0..6000).step_by(20) {
            let mut now = reading();
            now.elapsed_ns = millisecond * 1_000_000;
            now.stalled_ns = Some(now.elapsed_ns / 2);
            steps.push(course.next(0, &now));
            if matches!(steps.last(), Some(Step::Stop(_))) {
                break;
            }
        }
        assert_eq!(steps.last(), Some(&Step::Stop(Stopped::Pressure)));
        let paused = steps.iter().filter(|step| matches!(step, Step::Pause(_))).count();
        assert_eq!(paused, MOST_PAUSES as usize);
    }

    #[test]
    fn without_figures_of_pressure_it_goes_on() {
        assert_eq!(after(1000, |now| now.stalled_ns = None), Step::Grow(STEP));
        let course = Course::new(BOUNDS, reading());
        assert_eq!(course.share(&Reading { stalled_ns: None, ..reading() }), None);
    }

    #[test]
    fn caches_that_are_small_and_do_not_shrink_are_evicted_only_if_the_kernel_looked_for_pages() {
        for (scanned, expected) in [(1, Step::Stop(Stopped::Evicted)), (0, Step::Grow(STEP))] {
            let small = Reading { file: 20 * MIB, scanned, ..reading() };
            let mut course = Course::new(BOUNDS, Reading { scanned: 0, ..small });
            assert_eq!(course.next(8 * MIB, &small), Step::Grow(STEP));
            assert_eq!(course.next(16 * MIB, &small), expected);
        }
    }

    #[test]
    fn caches_that_still_shrink_are_not_evicted() {
        let mut course = Course::new(BOUNDS, Reading { file: 30 * MIB, ..reading() });
        let now = |file| Reading { file, scanned: 9, ..reading() };
        assert_eq!(course.next(16 * MIB - 1, &now(28 * MIB)), Step::Grow(STEP));
        assert_eq!(course.next(24 * MIB, &now(26 * MIB)), Step::Grow(STEP));
        assert_eq!(course.next(40 * MIB, &now(26 * MIB)), Step::Stop(Stopped::Evicted));
    }

    proptest! {
        #[test]
        fn no_step_leaves_too_little_or_passes_the_ceiling(
            most in 0..1u64 << 36,
            leave in 0..1u64 << 34,
            held in 0..1u64 << 36,
            available in 0..1u64 << 36,
            file in 0..1u64 << 34,
            stalled_ms in proptest::option::of(0..10_000u64),
            elapsed_ms in 0..200_000u64,
            swapped_out in 0..500u64,
        ) {
            let held = held.min(most);
            let bounds = Bounds { most, leave, time_ns: 120 * SECOND };
            let stalled_ns = stalled_ms.map(|ms| ms * 1_000_000);
            let now =
                Reading { elapsed_ns: elapsed_ms * 1_000_000, available, file, stalled_ns, swapped_out, scanned: 1 };
            if let Step::Grow(bytes) = Course::new(bounds, reading()).next(held, &now) {
                prop_assert!(bytes > 0 && bytes % crate::held::PAGE == 0);
                prop_assert!(held + bytes <= most);
                prop_assert!(available - bytes >= leave);
                prop_assert!(bytes <= STEP && elapsed_ms < 120_000 && swapped_out <= MOST_SWAPPED);
            }
        }
    }
}
