//! Which calls had another result than the original's.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use etude_calls::Kind;
use etude_script::{Action, Called, Step, step_text};
use etude_trace::{Event, Text, words};
use serde::Serialize;

use crate::roll::{Reading, Roll};
use crate::shared::Shared;

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
        let Ok(mut reading) = Reading::new(thread as usize) else { continue };
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
    let mut called = Called {
        call: event.call,
        arguments: event.arguments,
        texts: Default::default(),
        result: event.result,
        duration_ns: None,
    };
    let name = |number: u64| roll.names.get(usize::try_from(number).ok()?.checked_sub(1)?);
    for index in 0..event.call.row().arguments.len() {
        let value = event.arguments[index];
        let bytes = match event.call.kind(&event.arguments, index) {
            Kind::Path | Kind::Name => name(value).map(|name| name.as_bytes().into()),
            Kind::Pair => Some(value.to_le_bytes()[..].into()),
            Kind::Range => name(value)
                .and_then(|name| words::range_from(name.as_bytes()))
                .map(|range| range.bytes()[..].into()),
            // The number of a connection, and of the thread that accepts it, which no script has.
            Kind::Socket => {
                called.arguments[2] = 0;
                (value > 0).then(|| value.to_string().into_bytes().into())
            }
            Kind::OffsetAt => value.checked_sub(1).map(|offset| offset.to_le_bytes()[..].into()),
            _ => continue,
        };
        called.arguments[index] = 0;
        called.texts.extend(bytes.map(|bytes| Text { argument: index as u8, bytes }));
    }
    let mut text = String::new();
    step_text(&mut text, &Step { thread: 0, action: Action::Call(called) });
    text
}
