//! The counters of a replay's calls.

use etude_calls::{Call, Moves};

use crate::shared::{ERRORS, Lane, Owed, add};

/// Counts a call that was made: its time, and its bytes or that it failed.
pub fn note(lane: &Lane, call: Call, result: i64, ns: u64, same: bool) {
    let calls = lane.of(call);
    add(&lane.done, 1);
    lane.count(call, ns);
    if result < 0 && result > -4096 {
        add(&calls.errors, 1);
    } else if call.row().moves != Moves::Nothing {
        add(&calls.bytes, result as u64);
    }
    if !same {
        add(&calls.mismatches, 1);
    }
}

/// Counts a call of a load: a failed one by its error, any other with its response time.
pub fn owe(owed: &Owed, call: Call, result: i64, late_ns: u64, response_ns: u64, same: bool) {
    owed.lateness.add(late_ns);
    add(&owed.late_ns, late_ns);
    if same {
        owed.answer(call, response_ns);
    } else {
        let error = usize::try_from(-result).unwrap_or(0);
        add(&owed.errors[if error < ERRORS { error } else { 0 }], 1);
        add(&owed.of(call).failed, 1);
    }
}
