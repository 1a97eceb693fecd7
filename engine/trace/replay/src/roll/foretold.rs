//! Calls foretold, so that a roll says only where it is otherwise: times, by what is usual for a call after another; and
//! what a read will ask for and get, by the sizes of files.

use std::collections::HashMap;

use etude_calls::{Call, Kind, Outcome};
use etude_script::{Needed, What};
use etude_trace::Event;
use etude_trace::parts::{put, take, unzigzag, zigzag};

/// State of a thread's calls so far, as both sides of a roll know it.
#[derive(Debug, Default)]
pub struct Foretold {
    clock: Clock,
    open: Open,
}

impl Foretold {
    /// From a call to how far it is from what was foretold.
    pub fn tell(&mut self, event: &mut Event, rhythm: &Rhythm, sizes: &Sizes) {
        self.clock.tell(event, rhythm);
        self.open.tell(event, sizes);
    }

    /// Back again.
    pub fn read(&mut self, event: &mut Event, rhythm: &Rhythm, sizes: &Sizes) {
        self.clock.read(event, rhythm);
        self.open.read(event, sizes);
    }
}

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
struct Clock {
    before: u16,
    end: u64,
    /// What was left out so far, ns: of gaps, and of durations.
    kept: [i64; 2],
    /// The same in units of how far times are from the usual ones.
    told: u64,
}

impl Clock {
    /// From times in ns to how far they are from the usual ones.
    fn tell(&mut self, event: &mut Event, rhythm: &Rhythm) {
        let usual = rhythm.usual((self.before, event.call.code()));
        let (gap, duration) = (short(event.start_ns.saturating_sub(self.end)), short(event.duration_ns));
        (self.before, self.end) = (event.call.code(), event.end_ns());
        let gap = told(gap, usual.gap, GAP, &mut self.kept[0]);
        event.start_ns = self.told.saturating_add(zigzag(0, gap as u64));
        event.duration_ns = zigzag(0, told(duration, usual.duration, DURATION, &mut self.kept[1]) as u64);
        self.told = event.end_ns();
    }

    /// Back again; the start is ns since the thread's, of what it computed and called.
    fn read(&mut self, event: &mut Event, rhythm: &Rhythm) {
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

/// Descriptors that are followed.
const MOST: i64 = 1024;
/// Flags that are all 0 where a file is opened to be read as it is.
const CHANGES: u64 = (libc::O_ACCMODE | libc::O_TRUNC) as u64;

/// By number of a name, from 1: how large the file is at the beginning.
#[derive(Debug, Default)]
pub struct Sizes(HashMap<u64, u64>);

impl Sizes {
    /// `names`: all of them, in order.
    pub fn of<'a>(needed: &[Needed], names: impl Iterator<Item = &'a [u8]>) -> Sizes {
        let size = |each: &Needed| match each.what {
            What::File { bytes, .. } => Some(bytes),
            _ => None,
        };
        let by_path: HashMap<&[u8], u64> =
            needed.iter().filter_map(|each| Some((&each.path[..], size(each)?))).collect();
        let found = (1..).zip(names).filter_map(|(number, name)| Some((number, *by_path.get(name)?)));
        Sizes(found.collect())
    }
}

/// The unread rest of an open file.
type Left = Option<u64>;

/// The files that a thread has opened to be read. What else is done to them makes it wrong at worst, and then the roll
/// says more: both sides compute the same.
#[derive(Debug, Default)]
struct Open(Vec<Left>);

impl Open {
    /// A read's size and result become how far they are from what was foretold.
    fn tell(&mut self, event: &mut Event, sizes: &Sizes) {
        let Some(place) = reads(event) else { return self.follow(event, sizes) };
        let Some(left) = self.left(event) else { return };
        let (asked, got) = (event.arguments[place], event.result);
        let told = first_of_all(asked, *left);
        event.arguments[place] = told;
        event.result = (got as u64).wrapping_sub(asked.min(*left)).wrapping_add(told) as i64;
        *left = left.saturating_sub(got.max(0) as u64);
    }

    /// Back again.
    fn read(&mut self, event: &mut Event, sizes: &Sizes) {
        let Some(place) = reads(event) else { return self.follow(event, sizes) };
        let Some(left) = self.left(event) else { return };
        let told = event.arguments[place];
        let asked = back_in_place(told, *left);
        let got = (event.result as u64).wrapping_sub(told).wrapping_add(asked.min(*left)) as i64;
        (event.arguments[place], event.result) = (asked, got);
        *left = left.saturating_sub(got.max(0) as u64);
    }

    fn left(&mut self, event: &Event) -> Option<&mut u64> {
        self.0.get_mut(usize::try_from(event.arguments[0]).ok()?)?.as_mut()
    }

    /// Calls that open and close.
    fn follow(&mut self, event: &Event, sizes: &Sizes) {
        match event.call.name() {
            "open" | "openat" if (0..MOST).contains(&event.result) => {
                let path = usize::from(event.call.name() == "openat");
                let reads = event.arguments[path + 1] & CHANGES == 0;
                let size = sizes.0.get(&event.arguments[path]).copied().filter(|_| reads);
                let place = event.result as usize;
                self.0.resize(self.0.len().max(place + 1), None);
                self.0[place] = size;
            }
            "close" => {
                if let Some(left) = usize::try_from(event.arguments[0]).ok().and_then(|at| self.0.get_mut(at))
                {
                    *left = None;
                }
            }
            _ => {}
        }
    }
}

/// Which argument says how much, of a read that moves a position.
fn reads(event: &Event) -> Option<usize> {
    let row = event.call.row();
    let is = event.call.name() == "read" && row.outcome == Outcome::Bytes;
    is.then(|| row.arguments.iter().position(|kind| *kind == Kind::Size)).flatten()
}

/// Numbers in another order: what was foretold is 0, and those below it make room.
fn first_of_all(number: u64, foretold: u64) -> u64 {
    match number {
        _ if number == foretold => 0,
        _ if number < foretold => number + 1,
        _ => number,
    }
}

fn back_in_place(told: u64, foretold: u64) -> u64 {
    match told {
        0 => foretold,
        _ if told <= foretold => told - 1,
        _ => told,
    }
}
