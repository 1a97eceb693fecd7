//! Which calls had another result than the original's.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use etude_script::{Action, Called, Step, step_text};
use etude_trace::Event;
use serde::Serialize;

use crate::roll::{Reading, Roll};
use crate::shared::Shared;
use crate::unrolled::called;

/// A call with another result. Results are those of the kernel: an error is negative.
#[derive(Debug, PartialEq, Serialize)]
pub struct OtherResult {
    pub thread: u32,
    /// Which call of the thread it is, from 1.
    pub step: u64,
    /// The call, as in the script, without its duration.
    pub line: String,
    pub call: &'static str,
    pub expected: i64,
    pub got: i64,
}

/// All that were kept, by thread and step. A roll that cannot be decoded any more has none.
pub fn other_results(roll: &Roll, shared: &Shared) -> Vec<OtherResult> {
    let mut threads = BTreeMap::<u32, BTreeMap<u64, i64>>::new();
    for other in shared.others() {
        let steps = threads.entry(other.thread.load(Ordering::Relaxed)).or_default();
        steps.insert(other.step.load(Ordering::Relaxed), other.result.load(Ordering::Relaxed));
    }
    let mut found = Vec::new();
    for (thread, steps) in threads {
        let mut reading = Reading::new(thread as usize);
        let (mut events, mut first) = (Vec::new(), 0);
        while reading.more(roll) && reading.read(roll, &mut events).is_ok() {
            let end = first + events.len() as u64;
            found.extend(steps.range(first..end).map(|(step, got)| {
                let event = &events[(step - first) as usize];
                let line = line(roll, event);
                let (call, expected) = (event.call.name(), event.result);
                OtherResult { thread, step: step + 1, line, call, expected, got: *got }
            }));
            first = end;
        }
    }
    found
}

/// The call as the text of a script has it.
fn line(roll: &Roll, event: &Event) -> String {
    let called = Called { duration_ns: None, ..called(roll, event) };
    let mut text = String::new();
    step_text(&mut text, &Step { thread: 0, action: Action::Call(called) });
    text
}
