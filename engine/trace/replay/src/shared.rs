//! What the processes of a replay have in common: how far each thread is, and what it has measured.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use etude_calls::{Call, Moves};

/// Parts of each power of two of a histogram: what it says is within 3 %.
const PARTS: usize = 32;
/// Up to 2^40 ns.
const BINS: usize = (41 - 5) * PARTS + PARTS;
const CALLS: usize = Call::MANY as usize + 1;
/// Numbers of errors.
pub const ERRORS: usize = 134;

/// Counts of times, ns.
#[repr(C)]
pub struct Histogram([AtomicU32; BINS]);

impl Histogram {
    pub fn add(&self, ns: u64) {
        let count = &self.0[bin(ns)];
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Into sums by bin.
    pub fn add_to(&self, sums: &mut Sums) {
        for (sum, count) in sums.0.iter_mut().zip(&self.0) {
            *sum += u64::from(count.load(Ordering::Relaxed));
        }
    }
}

fn bin(ns: u64) -> usize {
    let ns = ns.min((1 << 41) - 1);
    if ns < PARTS as u64 {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros() as usize;
    (power - 5) * PARTS + (ns >> (power - 5)) as usize
}

/// The middle of a bin.
fn middle(bin: usize) -> u64 {
    if bin < 2 * PARTS {
        return bin as u64;
    }
    let (power, part) = (bin / PARTS - 1, (bin % PARTS + PARTS) as u64);
    (part << power) + (1 << power) / 2
}

/// The sum of histograms.
#[derive(Debug, Clone)]
pub struct Sums([u64; BINS]);

impl Default for Sums {
    fn default() -> Sums {
        Sums([0; BINS])
    }
}

impl Sums {
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those of others on top.
    pub fn add(&mut self, others: &Sums) {
        self.0.iter_mut().zip(&others.0).for_each(|(sum, other)| *sum += other);
    }

    /// What has come since `before`: times in the middle of their bins, ns, and how many.
    pub fn since<'a>(&'a self, before: &'a Sums) -> impl Iterator<Item = (u64, u64)> + 'a {
        let more = self.0.iter().zip(&before.0).map(|(now, then)| now.saturating_sub(*then));
        more.enumerate().filter(|(_, count)| *count > 0).map(|(bin, count)| (middle(bin), count))
    }

    /// A quantile, ns; None where there is nothing.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        self.0
            .iter()
            .position(|bin| {
                seen += bin;
                count > 0 && seen >= rank
            })
            .map(middle)
    }
}

/// Of one call's name in one thread.
#[repr(C)]
pub struct Calls {
    pub count: AtomicU64,
    pub errors: AtomicU64,
    pub mismatches: AtomicU64,
    pub ns: AtomicU64,
    pub bytes: AtomicU64,
}

/// A thread has ended.
pub const GONE: u32 = 1;
/// It has ended, but waits for what it has started, which would die with it.
pub const LINGERS: u32 = 2;

/// Of one thread. Only it writes here, all others read.
#[repr(C, align(64))]
pub struct Lane {
    /// How often it has told others, and their bell.
    pub told: AtomicU32,
    /// How many wait for one of these.
    pub awaited: AtomicU32,
    /// 0 until it has ended: then `GONE`, or `LINGERS`.
    pub ended: AtomicU32,
    /// The process that plays it, once it has begun.
    pub pid: AtomicU32,
    /// Where its clock stood when it told last, or ended.
    pub clock_ns: AtomicI64,
    /// 1 while it waits for another.
    pub stuck: AtomicU32,
    pub done: AtomicU64,
    /// How often it had to wait for what another does, and for how long, ns.
    pub waits: AtomicU64,
    pub waited_ns: AtomicU64,
    pub skipped: AtomicU64,
    /// Bytes that these moved in the original, and the time within them, of those that move data.
    pub skipped_bytes: AtomicU64,
    pub skipped_ns: AtomicU64,
    /// Chunks that were decoded when they were needed already.
    pub late_chunks: AtomicU64,
    pub most_late_ns: AtomicU64,
    pub lateness: Histogram,
    pub calls: [Calls; CALLS],
    /// Apart from the counts: reading those of a thousand threads takes no memory for empty histograms.
    times: [Histogram; CALLS],
}

/// Of one call's name in one thread of a load.
#[repr(C)]
pub struct Answered {
    /// With the original's result.
    pub answered: AtomicU64,
    /// Other results than the original's.
    pub failed: AtomicU64,
    /// Sum of the response times, ns.
    pub ns: AtomicU64,
}

/// Of one thread of a load: of calls that were due when they began to count.
#[repr(C, align(64))]
pub struct Owed {
    pub begun: AtomicU64,
    /// Calls that could not be made, and so are no requests.
    pub unplayed: AtomicU64,
    /// How much later each call began than it could have: than it was due and the one before it had ended.
    pub lateness: Histogram,
    /// The sum of that, ns.
    pub late_ns: AtomicU64,
    /// Within calls, ns.
    pub spent_ns: AtomicU64,
    /// Other results by error; 0: no error, but another result.
    pub errors: [AtomicU64; ERRORS],
    pub calls: [Answered; CALLS],
    responses: [Histogram; CALLS],
}

impl Lane {
    /// Counts a call that was made: its time, and its bytes or that it failed.
    pub fn note(&self, call: Call, result: i64, ns: u64, same: bool) {
        let calls = self.of(call);
        add(&self.done, 1);
        self.count(call, ns);
        if result < 0 && result > -4096 {
            add(&calls.errors, 1);
        } else if call.row().moves != Moves::Nothing {
            add(&calls.bytes, result as u64);
        }
        if !same {
            add(&calls.mismatches, 1);
        }
    }

    /// Counts a call and how long it took, ns.
    pub fn count(&self, call: Call, ns: u64) {
        let (code, calls) = (usize::from(call.code()), self.of(call));
        add(&calls.count, 1);
        add(&calls.ns, ns);
        self.times[code].add(ns);
    }

    pub fn of(&self, call: Call) -> &Calls {
        &self.calls[usize::from(call.code())]
    }

    /// How long calls of one name took, into sums.
    pub fn add_times(&self, call: Call, sums: &mut Sums) {
        if self.of(call).count.load(Ordering::Relaxed) > 0 {
            self.times[usize::from(call.code())].add_to(sums);
        }
    }
}

impl Owed {
    /// Counts a call: a failed one by its error, any other with its response time, ns: from when it was due until it had
    /// ended.
    pub fn note(&self, call: Call, result: i64, late_ns: u64, response_ns: u64, same: bool) {
        self.lateness.add(late_ns);
        add(&self.late_ns, late_ns);
        let calls = self.of(call);
        if same {
            add(&calls.answered, 1);
            self.responses[usize::from(call.code())].add(response_ns);
            add(&calls.ns, response_ns);
        } else {
            let error = usize::try_from(-result).unwrap_or(0);
            add(&self.errors[if error < ERRORS { error } else { 0 }], 1);
            add(&calls.failed, 1);
        }
    }

    pub fn of(&self, call: Call) -> &Answered {
        &self.calls[usize::from(call.code())]
    }

    /// Response times of calls of one name, into sums.
    pub fn add_responses(&self, call: Call, sums: &mut Sums) {
        if self.of(call).answered.load(Ordering::Relaxed) > 0 {
            self.responses[usize::from(call.code())].add_to(sums);
        }
    }
}

/// Adds to a number that only this thread writes.
pub fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// A call with another result than the original's.
#[repr(C)]
pub struct Other {
    pub thread: AtomicU32,
    /// Calls of the thread before it.
    pub step: AtomicU64,
    pub result: AtomicI64,
}

/// The most of them that are kept.
const MOST_OTHERS: usize = 1 << 18;

/// Of the replay as a whole.
#[repr(C, align(64))]
pub struct All {
    /// What is due then or later is not made any more, `CLOCK_MONOTONIC`.
    pub until_ns: AtomicI64,
    /// When it began, `CLOCK_MONOTONIC`.
    pub began_ns: AtomicI64,
    /// When the last thread ended.
    pub ended_ns: AtomicI64,
    /// Why it cannot go on (`player::why`); 0 for nothing.
    pub broken: AtomicU32,
    pub realtime: AtomicU32,
    /// A thread may not run in the recording's scheduling class.
    pub class_refused: AtomicU32,
    pub undirect: AtomicU64,
    /// Requests were played by threads: the interface that the program used is not there.
    pub by_threads: AtomicU32,
    /// Calls with another result.
    pub others: AtomicU64,
}

/// Memory that is shared by all processes of a replay.
pub struct Shared {
    at: *mut u8,
    lanes: usize,
    owed: usize,
    length: usize,
}

// SAFETY: everything in it is atomic.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

const LANES_AT: usize = size_of::<All>();

impl Shared {
    pub fn new(lanes: usize) -> io::Result<Shared> {
        Shared::mapped(lanes, 0)
    }

    /// With what a load counts beside it.
    pub fn of_load(lanes: usize) -> io::Result<Shared> {
        Shared::mapped(lanes, lanes)
    }

    fn mapped(lanes: usize, owed: usize) -> io::Result<Shared> {
        let others = if owed == 0 { MOST_OTHERS } else { 0 };
        let length = owed_at(lanes) + owed * size_of::<Owed>() + others * size_of::<Other>();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping of zeros, which all of this begins with.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let shared = Shared { at: at.cast(), lanes, owed, length };
        shared.all().until_ns.store(i64::MAX, Ordering::Relaxed);
        Ok(shared)
    }

    pub fn all(&self) -> &All {
        // SAFETY: at the beginning of the mapping, which lives as long as this.
        unsafe { &*self.at.cast::<All>() }
    }

    pub fn lane(&self, index: usize) -> &Lane {
        assert!(index < self.lanes);
        // SAFETY: within the mapping.
        unsafe { &*self.at.add(LANES_AT + index * size_of::<Lane>()).cast::<Lane>() }
    }

    /// Of a thread of a load; None of any other replay.
    pub fn owed(&self, index: usize) -> Option<&Owed> {
        let at = owed_at(self.lanes) + index * size_of::<Owed>();
        // SAFETY: within the mapping.
        (index < self.owed).then(|| unsafe { &*self.at.add(at).cast::<Owed>() })
    }

    /// Keeps a call with another result; of a load, and beyond `MOST_OTHERS`, it is only counted.
    pub fn keep_other(&self, thread: usize, step: u64, result: i64) {
        let place = self.all().others.fetch_add(1, Ordering::Relaxed);
        if let Some(other) = self.other(place as usize) {
            other.thread.store(thread as u32, Ordering::Relaxed);
            other.step.store(step, Ordering::Relaxed);
            other.result.store(result, Ordering::Relaxed);
        }
    }

    /// Those that were kept, as they came.
    pub fn others(&self) -> impl Iterator<Item = &Other> {
        let many = self.all().others.load(Ordering::Relaxed) as usize;
        (0..many).map_while(|index| self.other(index))
    }

    fn other(&self, index: usize) -> Option<&Other> {
        let at = owed_at(self.lanes) + index.checked_mul(size_of::<Other>())?;
        // SAFETY: within the mapping; without a load nothing else stands there.
        (self.owed == 0 && at + size_of::<Other>() <= self.length)
            .then(|| unsafe { &*self.at.add(at).cast::<Other>() })
    }

    pub fn all_owed(&self) -> impl Iterator<Item = &Owed> {
        (0..self.lanes).filter_map(|index| self.owed(index))
    }

    pub fn lanes(&self) -> impl Iterator<Item = &Lane> {
        (0..self.lanes).map(|index| self.lane(index))
    }

    /// Of threads that have begun and not ended.
    pub fn playing(&self) -> impl Iterator<Item = &Lane> {
        let begun = |lane: &&Lane| lane.pid.load(Ordering::Relaxed) != 0;
        self.lanes().filter(begun).filter(|lane| lane.ended.load(Ordering::Acquire) == 0)
    }

    /// Those that play these threads.
    pub fn processes(&self) -> Vec<libc::pid_t> {
        let mut pids: Vec<_> =
            self.playing().map(|lane| lane.pid.load(Ordering::Relaxed) as libc::pid_t).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }
}

const fn owed_at(lanes: usize) -> usize {
    LANES_AT + lanes * size_of::<Lane>()
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the whole of the mapping; nothing borrows from it any more.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}

/// Waits while a word has a value, at most for a tenth of a second.
pub fn sleep_on(word: &AtomicU32, value: u32) {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    // SAFETY: a valid word and time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const limit, 0, 0) };
}

/// Wakes all that wait on a word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: a valid word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_histogram_are_near_those_of_its_values() {
        let shared = Shared::new(1).unwrap();
        let histogram = &shared.lane(0).lateness;
        (0..10_000_u64).for_each(|ns| histogram.add(ns * 37));
        let mut sums = Sums::default();
        histogram.add_to(&mut sums);
        for (part, exact) in [(0.5, 185_000.0), (0.99, 366_300.0), (0.001, 333.0)] {
            let found = sums.quantile(part).unwrap() as f64;
            assert!((found / exact - 1.0).abs() < 0.035, "{part}: {found} for {exact}");
        }
        assert_eq!(Sums::default().quantile(0.5), None);
        assert_eq!((bin(0), bin(31), bin(32), bin(u64::MAX)), (0, 31, 32, BINS - 1));
    }

    #[test]
    fn every_bin_holds_its_own_middle() {
        (0..BINS).for_each(|at| assert_eq!(bin(middle(at)), at));
    }

    #[test]
    fn reading_the_counts_of_many_threads_takes_no_memory_for_calls_that_they_did_not_make() {
        let (shared, made) = (Shared::new(100).expect("memory"), Call::named("read").expect("a call"));
        shared.lanes().for_each(|lane| lane.count(made, 1000));
        let mut sums = Sums::default();
        for call in Call::all() {
            shared.lanes().for_each(|lane| lane.add_times(call, &mut sums));
        }
        assert_eq!(sums.count(), 100);
        let mut pages = vec![0u8; shared.length.div_ceil(4096)];
        // SAFETY: the whole of the mapping, and a byte for each of its pages.
        assert_eq!(unsafe { libc::mincore(shared.at.cast(), shared.length, pages.as_mut_ptr()) }, 0);
        let resident = pages.iter().filter(|page| **page & 1 != 0).count();
        assert!(resident < 100 * 10, "{resident} pages");
    }
}
