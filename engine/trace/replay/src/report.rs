//! What a replay has measured, beside the original.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use etude_calls::{Call, Moves, Role};
use etude_clock::seconds;
use etude_trace::Scheduling;
use serde::ser::Error;
use serde::{Serialize, Serializer};

use crate::other_results::{OtherResult, other_results};
use crate::player::{Manner, Timing};
use crate::roll::{Original, Roll};
use crate::shared::{Shared, Sums};
use crate::unplayed::{Unplayed, unplayed};

/// All of it; times in seconds. Ratios are replay / original; None where the original took no time or is not known.
#[derive(Debug, Serialize)]
pub struct Report {
    pub timing: &'static str,
    pub speed: f64,
    pub threads: usize,
    pub calls: u64,
    /// Calls that cannot be made again, or were not asked for.
    pub skipped: u64,
    pub mismatches: u64,
    /// Those calls, by thread; at most 262,144 of them.
    pub other_results: Vec<OtherResult>,
    pub run_s: f64,
    pub read_s: f64,
    pub write_s: f64,
    /// Within calls that hand requests over, or take what is done.
    pub requests_s: f64,
    pub calls_s: f64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    #[serde(serialize_with = "as_known")]
    pub original: Original,
    /// I/O of the program that the replay left out.
    pub unplayed: Unplayed,
    /// An earlier replay has changed the files of the directory.
    pub changed_before: bool,
    pub ratios: Ratios,
    /// How often threads came to where they wait for another, and how long they waited there together, s.
    pub waits: u64,
    pub waited_s: f64,
    /// How late calls began; None where there is no schedule.
    pub lateness_s: Option<Lateness>,
    pub realtime: bool,
    /// The recording's scheduling class, where that is not the default one and was asked for.
    pub scheduling: Option<Scheduling>,
    /// This user may not run in it.
    pub scheduling_refused: bool,
    /// Chunks of the roll that were not decoded when they were needed.
    pub late_chunks: u64,
    /// Transfers that O_DIRECT refused.
    pub undirect: u64,
    /// Requests were played by threads, as io_uring or aio is not there.
    pub by_threads: bool,
    /// Which of the two read so much quicker that its cache was probably warm and the other's cold.
    pub cached: Option<&'static str>,
    pub roll_bytes: usize,
    pub by_call: BTreeMap<&'static str, OfCall>,
}

#[derive(Debug, Serialize)]
pub struct Ratios {
    pub run: Option<f64>,
    pub read: Option<f64>,
    pub write: Option<f64>,
    pub requests: Option<f64>,
    pub calls: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Lateness {
    pub median: f64,
    pub p99: f64,
    pub max: f64,
}

/// All calls of one name.
#[derive(Debug, Serialize)]
pub struct OfCall {
    pub count: u64,
    pub errors: u64,
    pub mismatches: u64,
    pub bytes: u64,
    pub time_s: f64,
    pub median_s: f64,
    pub p99_s: f64,
}

/// Gathers it from all threads.
pub fn report(roll: &Roll, shared: &Shared, manner: Manner) -> Report {
    let head = &roll.head;
    let by_call: BTreeMap<_, _> =
        Call::all().filter_map(|call| Some((call.name(), of_call(shared, call)?))).collect();
    let moving = |reads: bool| {
        let calls = Call::all().filter(move |call| match call.row().moves {
            Moves::Reads => reads,
            Moves::Writes | Moves::Both => !reads,
            Moves::Nothing => false,
        });
        let found = calls.filter_map(|call| by_call.get(call.name()));
        found.fold((0.0, 0), |(seconds, bytes), of| (seconds + of.time_s, bytes + of.bytes))
    };
    let ((read_s, read_bytes), (write_s, written_bytes)) = (moving(true), moving(false));
    let all = shared.all();
    let took = all.ended_ns.load(Ordering::Relaxed) - all.began_ns.load(Ordering::Relaxed);
    let about_requests = |name: &str| {
        let role = Call::named(name).and_then(Call::role);
        matches!(role, Some(Role::Handover { .. } | Role::Completion { .. }))
    };
    // An empty sum of `Iterator::sum` is -0.0.
    let time_s = |of: &mut dyn Iterator<Item = &OfCall>| of.fold(0.0, |sum, of| sum + of.time_s);
    let requests_s = time_s(&mut by_call.iter().filter(|(name, _)| about_requests(name)).map(|(_, of)| of));
    let (run_s, calls_s) = (took as f64 * 1e-9, time_s(&mut by_call.values()));
    let sum = |of: fn(&crate::shared::Lane) -> u64| shared.lanes().map(of).sum();
    let original = head.original;
    let ratio =
        |replay: f64, original_s: f64| (original.timed && original_s > 0.0).then_some(replay / original_s);
    let skipped = (
        sum(|lane| lane.skipped_bytes.load(Ordering::Relaxed)),
        sum(|lane| lane.skipped_ns.load(Ordering::Relaxed)),
    );
    let moves = |name: &str| Call::named(name).is_some_and(|call| call.row().moves != Moves::Nothing);
    let transfers = by_call.iter().filter(|(name, _)| moves(name)).map(|(_, of)| of.count).sum();
    Report {
        timing: name(manner.timing),
        speed: manner.speed,
        threads: head.threads.len(),
        calls: sum(|lane| lane.done.load(Ordering::Relaxed)),
        skipped: sum(|lane| lane.skipped.load(Ordering::Relaxed)),
        mismatches: by_call.values().map(|of| of.mismatches).sum(),
        other_results: other_results(roll, shared),
        ratios: Ratios {
            run: ratio(run_s, original.run_s),
            read: ratio(read_s, original.read_s),
            write: ratio(write_s, original.write_s),
            requests: ratio(requests_s, original.requests_s),
            calls: ratio(calls_s, original.calls_s),
        },
        run_s,
        read_s,
        write_s,
        requests_s,
        calls_s,
        read_bytes,
        written_bytes,
        original,
        unplayed: unplayed(head, skipped, transfers),
        changed_before: false,
        waits: sum(|lane| lane.waits.load(Ordering::Relaxed)),
        waited_s: seconds(sum(|lane| lane.waited_ns.load(Ordering::Relaxed))),
        lateness_s: lateness(shared),
        realtime: all.realtime.load(Ordering::Relaxed) != 0,
        scheduling: manner.class,
        scheduling_refused: all.class_refused.load(Ordering::Relaxed) != 0,
        late_chunks: sum(|lane| lane.late_chunks.load(Ordering::Relaxed)),
        undirect: all.undirect.load(Ordering::Relaxed),
        by_threads: all.by_threads.load(Ordering::Relaxed) != 0,
        cached: original.timed.then(|| cached(read_s, original.read_s)).flatten(),
        roll_bytes: roll.bytes(),
        by_call,
    }
}

/// A time that is not known is null; where others are, it is the least that it can have been.
fn as_known<S: Serializer>(original: &Original, serializer: S) -> Result<S::Ok, S::Error> {
    let mut told = serde_json::to_value(original).map_err(S::Error::custom)?;
    for value in told.as_object_mut().into_iter().flat_map(|told| told.values_mut()) {
        if !original.timed && value.as_f64() == Some(0.0) && value.is_f64() {
            *value = serde_json::Value::Null;
        }
    }
    told.serialize(serializer)
}

/// Memory is at least this many times as quick as a disk: a smaller ratio is that of two systems.
const CACHED: f64 = 4.0;
/// Less time than this, s, is spent on any few reads from memory.
const LEAST_READ_S: f64 = 0.001;

fn cached(replay_s: f64, original_s: f64) -> Option<&'static str> {
    if replay_s.max(original_s) < LEAST_READ_S || original_s <= 0.0 {
        return None;
    }
    match replay_s / original_s {
        ratio if ratio > CACHED => Some("original"),
        ratio if ratio < 1.0 / CACHED => Some("replay"),
        _ => None,
    }
}

pub fn name(timing: Timing) -> &'static str {
    match timing {
        Timing::Gap => "gap",
        Timing::Absolute => "absolute",
        Timing::None => "none",
    }
}

fn lateness(shared: &Shared) -> Option<Lateness> {
    let mut sums = Sums::default();
    shared.lanes().for_each(|lane| lane.lateness.add_to(&mut sums));
    let most = shared.lanes().map(|lane| lane.most_late_ns.load(Ordering::Relaxed)).max()?;
    Some(Lateness {
        median: seconds(sums.quantile(0.5)?.min(most)),
        p99: seconds(sums.quantile(0.99)?.min(most)),
        max: seconds(most),
    })
}

fn of_call(shared: &Shared, call: Call) -> Option<OfCall> {
    let mut times = Sums::default();
    let mut found =
        OfCall { count: 0, errors: 0, mismatches: 0, bytes: 0, time_s: 0.0, median_s: 0.0, p99_s: 0.0 };
    for lane in shared.lanes() {
        let calls = lane.of(call);
        let count = calls.count.load(Ordering::Relaxed);
        if count == 0 {
            continue;
        }
        found.count += count;
        found.errors += calls.errors.load(Ordering::Relaxed);
        found.mismatches += calls.mismatches.load(Ordering::Relaxed);
        found.bytes += calls.bytes.load(Ordering::Relaxed);
        found.time_s += seconds(calls.ns.load(Ordering::Relaxed));
        lane.add_times(call, &mut times);
    }
    found.median_s = seconds(times.quantile(0.5)?);
    found.p99_s = seconds(times.quantile(0.99)?);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::cached;

    #[test]
    fn a_cold_and_a_warm_cache_are_told_apart_by_the_time_of_reading() {
        assert_eq!(cached(0.010, 0.100), Some("replay"));
        assert_eq!(cached(0.100, 0.010), Some("original"));
        assert_eq!(cached(0.010, 0.020), None);
        assert_eq!(cached(0.000_9, 0.000_1), None, "too little was read");
        assert_eq!(cached(1.0, 0.0), None, "nothing is known of the original");
    }
}
