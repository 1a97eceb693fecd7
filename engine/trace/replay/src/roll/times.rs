//! Times of calls in a roll: what is usual for a call after another, and how far each is from that.

use std::collections::HashMap;

use etude_calls::Call;
use etude_trace::Event;
use etude_trace::parts::{put, take, unzigzag, zigzag};

/// How far a gap may be from the usual one to be told as that, ns; what is left out so is added to the next.
const GAP: i64 = 1_000;
/// The same of a duration, on which nothing depends but the schedule of absolute time: it is kept to this.
const DURATION: i64 = 10_000;
/// What times that are not usual are told in, ns.
const GRID: i64 = 1_000;
/// No time is longer, ns: a century.
const LONGEST: i64 = 1 << 61;

/// The code of the call before, 0 for none, and its own.
type Key = (u16, u16);

/// ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usual {
    gap: i64,
    duration: i64,
}

/// What is usual.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rhythm(HashMap<Key, Usual>);

/// A thread's calls, with the code of the call before each and the gap between them, ns.
fn steps(events: &[Event]) -> impl Iterator<Item = (Key, i64, i64)> {
    let mut before = (0, 0);
    events.iter().map(move |event| {
        let key = (before.0, event.call.code());
        let gap = short(event.start_ns.saturating_sub(before.1));
        before = (event.call.code(), event.end_ns());
        (key, gap, short(event.duration_ns))
    })
}

fn short(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX).min(LONGEST)
}

impl Rhythm {
    /// Of all threads; times in ns.
    pub fn of<'a>(threads: impl Iterator<Item = &'a [Event]>) -> Rhythm {
        let mut all: HashMap<Key, (Vec<i64>, Vec<i64>)> = HashMap::new();
        for (key, gap, duration) in threads.flat_map(steps) {
            let (gaps, durations) = all.entry(key).or_default();
            gaps.push(gap);
            durations.push(duration);
        }
        let usual = |(mut gaps, mut durations): (Vec<i64>, Vec<i64>)| Usual {
            gap: usual(&mut gaps, GAP),
            duration: usual(&mut durations, DURATION),
        };
        Rhythm(all.into_iter().map(|(key, times)| (key, usual(times))).collect())
    }

    /// How many, then each key's two codes and two times, ns.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_unstable_by_key(|(key, _)| **key);
        let mut bytes = Vec::new();
        put(&mut bytes, rows.len() as u64);
        for ((before, call), usual) in rows {
            for value in [(*before).into(), (*call).into(), usual.gap as u64, usual.duration as u64] {
                put(&mut bytes, value);
            }
        }
        bytes
    }

    /// None for nonsense.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Rhythm> {
        let many = usize::try_from(take(&mut bytes)?).ok().filter(|many| *many <= bytes.len())?;
        let mut found = HashMap::with_capacity(many);
        for _ in 0..many {
            let mut code = || take(&mut bytes).and_then(|code| u16::try_from(code).ok());
            let key = (code()?, code().filter(|code| Call::from_code(*code).is_some())?);
            let mut time = || take(&mut bytes).map(short);
            found.insert(key, Usual { gap: time()?, duration: time()? });
        }
        bytes.is_empty().then_some(Rhythm(found))
    }

    fn usual(&self, key: Key) -> Usual {
        self.0.get(&key).copied().unwrap_or_default()
    }
}

/// The mean of those that are near the median: told in its place, they leave nothing over.
fn usual(times: &mut [i64], near: i64) -> i64 {
    let middle = times.len() / 2;
    let median = *times.select_nth_unstable(middle).1;
    let near = || times.iter().filter(|time| (*time - median).abs() <= near);
    near().sum::<i64>() / near().count() as i64
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    before: u16,
    end: u64,
    /// What was left out so far, ns: of gaps, and of durations.
    kept: [i64; 2],
    /// The same in units of how far times are from the usual ones.
    told: u64,
}

impl Clock {
    /// From times in ns to how far they are from the usual ones.
    pub fn tell(&mut self, event: &mut Event, rhythm: &Rhythm) {
        let usual = rhythm.usual((self.before, event.call.code()));
        let (gap, duration) = (short(event.start_ns.saturating_sub(self.end)), short(event.duration_ns));
        (self.before, self.end) = (event.call.code(), event.end_ns());
        let gap = told(gap, usual.gap, GAP, &mut self.kept[0]);
        event.start_ns = self.told.saturating_add(zigzag(0, gap as u64));
        event.duration_ns = zigzag(0, told(duration, usual.duration, DURATION, &mut self.kept[1]) as u64);
        self.told = event.end_ns();
    }

    /// Back again; the start is ns since the thread's, of what it computed and called.
    pub fn read(&mut self, event: &mut Event, rhythm: &Rhythm) {
        let usual = rhythm.usual((self.before, event.call.code()));
        let gap = unzigzag(0, event.start_ns.saturating_sub(self.told)) as i64;
        let duration = unzigzag(0, event.duration_ns) as i64;
        self.told = event.end_ns();
        event.start_ns = self.end.saturating_add(meant(gap, usual.gap) as u64);
        event.duration_ns = meant(duration, usual.duration) as u64;
        (self.before, self.end) = (event.call.code(), event.end_ns());
    }
}

/// How many grid lines a time is from the usual one.
fn told(time: i64, usual: i64, near: i64, kept: &mut i64) -> i64 {
    let exact = time.saturating_add(*kept);
    let apart = exact - usual;
    let lines = if apart.abs() <= near { 0 } else { (apart + GRID / 2).div_euclid(GRID) };
    *kept = exact - meant(lines, usual);
    lines
}

/// The time that is so many grid lines from the usual one.
fn meant(lines: i64, usual: i64) -> i64 {
    lines.saturating_mul(GRID).saturating_add(usual).clamp(0, LONGEST)
}
