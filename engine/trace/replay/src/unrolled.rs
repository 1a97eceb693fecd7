//! A roll as the steps of a script again, in an order in which its threads can have made them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

use etude_calls::{Kind, Moves, RangeLock};
use etude_script::{Action, Called, Script, Step, Untouched, ops};
use etude_trace::{Event, Text, words};

use crate::compile::compile;
use crate::roll::{Mark, Marked, Reading, Roll};
use crate::schedule::may_change;

/// Hands over all steps, a call's with its event: those of one thread in their order, and none before what its thread
/// waits for. Else by the original's schedule.
///
/// # Errors
/// The roll is damaged, or its threads wait for each other; to stand behind its name.
pub fn unrolled(roll: &Roll, mut each: impl FnMut(Step, Option<&Event>)) -> Result<(), String> {
    let many = roll.head.threads.len();
    let mut lanes = (0..many).map(|thread| Lane::new(roll, thread)).collect::<Result<Vec<_>, _>>()?;
    let mut ready = BinaryHeap::from([Reverse((0, 0))]);
    let (mut told, mut ended) = (vec![0_u64; many], vec![false; many]);
    // By the thread for which others wait.
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); many];
    while let Some(Reverse((_, thread))) = ready.pop() {
        let number = thread as u32;
        let mut step = |action, event: Option<&Event>| each(Step { thread: number, action }, event);
        let next = match lanes[thread].peek(roll)? {
            Some(Next::Mark(mark)) => mark,
            Some(Next::Call) => {
                lanes[thread].call(roll, &mut step);
                ready.push(Reverse((lanes[thread].clock, thread)));
                continue;
            }
            None => continue,
        };
        let awaited = match next.what {
            Marked::After { thread: other, told: times } => (told[other as usize] < times).then_some(other),
            Marked::Wait(other) => (!ended[other as usize]).then_some(other),
            _ => None,
        };
        if let Some(other) = awaited {
            waiting[other as usize].push(thread);
            continue;
        }
        let lane = &mut lanes[thread];
        lane.take_mark(next, &mut step);
        let clock = lane.clock;
        match next.what {
            Marked::Start(other) | Marked::Fork(other) => {
                let start = matches!(next.what, Marked::Start(_));
                step(if start { Action::Start(other) } else { Action::Fork(other) }, None);
                lanes[other as usize].clock = clock;
                ready.push(Reverse((clock, other as usize)));
            }
            Marked::Wait(other) => step(Action::Wait(other), None),
            Marked::Exec => step(Action::Exec, None),
            Marked::Tell => told[thread] += 1,
            Marked::End => ended[thread] = true,
            Marked::After { .. } => {}
        }
        if matches!(next.what, Marked::Tell | Marked::End) {
            for waits in std::mem::take(&mut waiting[thread]) {
                lanes[waits].clock = lanes[waits].clock.max(clock);
                ready.push(Reverse((lanes[waits].clock, waits)));
            }
        }
        if next.what != Marked::End {
            ready.push(Reverse((clock, thread)));
        }
    }
    if ended.iter().all(|ended| *ended) { Ok(()) } else { Err("has threads that wait for each other".into()) }
}

/// The files that a roll needs and only reads, by their paths from the root: no call of it may change, move, remove or
/// lock them, whatever comes of it.
///
/// # Errors
/// As [`unrolled`].
pub fn untouched(roll: &Roll) -> Result<HashSet<Vec<u8>>, String> {
    let mut files = Untouched::new(&roll.needed);
    unrolled(roll, |step, event| files.step(&step, event.is_some_and(touches)))?;
    Ok(files.files())
}

/// Whether a call may do more to a file than read it. What moves data does so to a file that was opened for that.
fn touches(event: &Event) -> bool {
    let locks = event.call.name() == "flock" || RangeLock::of(event.call, &event.arguments).is_some();
    locks || event.call.row().moves == Moves::Nothing && may_change(event)
}

/// The part of a roll that is about files below some directories (`.` stands for all but those that all machines have),
/// with what that needs.
///
/// # Errors
/// There is no such file (2), or the roll is damaged (3).
pub fn only_below(roll: &Roll, directories: &[Vec<u8>]) -> Result<Roll, (String, u8)> {
    let (mut steps, damaged) = (Vec::new(), |what: String| (what, 3));
    unrolled(roll, |step, _| steps.push(step)).map_err(damaged)?;
    let head = &roll.head;
    let (notes, dropped) = (head.notes.clone(), head.dropped.clone());
    let script = Script { notes, scheduling: head.scheduling, needed: roll.needed.clone(), dropped, steps };
    let part = ops::only_below(&script, directories).map_err(|ops::Refused(what)| (what, 2))?;
    let compiled = compile(&part, Vec::new()).map_err(|error| damaged(error.to_string()))?;
    Roll::read(compiled.0).map_err(damaged)
}

/// A call as a script has it.
pub fn called(roll: &Roll, event: &Event) -> Called {
    let mut called = Called {
        call: event.call,
        arguments: event.arguments,
        texts: Default::default(),
        result: event.result,
        duration_ns: Some(event.duration_ns),
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
    called
}

/// One thread.
struct Lane {
    reading: Reading,
    events: VecDeque<Event>,
    marks: VecDeque<Mark>,
    /// Calls so far.
    done: u64,
    /// Its time on the original's schedule, ns.
    clock: u64,
    /// When its last call ended, in the roll's own time, ns.
    recorded: u64,
}

#[derive(Clone, Copy)]
enum Next {
    Call,
    Mark(Mark),
}

impl Lane {
    fn new(roll: &Roll, thread: usize) -> Result<Lane, String> {
        let reading = Reading::new(thread);
        let marks = roll.marks[thread].iter().copied().collect();
        Ok(Lane { reading, events: VecDeque::new(), marks, done: 0, clock: 0, recorded: 0 })
    }

    /// Its next step; None behind its end.
    fn peek(&mut self, roll: &Roll) -> Result<Option<Next>, String> {
        if let Some(mark) = self.marks.front().filter(|mark| mark.at <= self.done) {
            return Ok(Some(Next::Mark(*mark)));
        }
        if self.events.is_empty() && self.reading.more(roll) {
            let mut events = Vec::new();
            self.reading.read(roll, &mut events)?;
            self.events = events.into();
        }
        Ok(if self.events.is_empty() { None } else { Some(Next::Call) })
    }

    fn call(&mut self, roll: &Roll, step: &mut impl FnMut(Action, Option<&Event>)) {
        let Some(event) = self.events.pop_front() else { return };
        self.pass(event.start_ns.saturating_sub(self.recorded), step);
        self.recorded = event.end_ns();
        self.done += 1;
        self.clock = self.clock.saturating_add(event.duration_ns);
        step(Action::Call(called(roll, &event)), Some(&event));
    }

    fn take_mark(&mut self, mark: Mark, step: &mut impl FnMut(Action, Option<&Event>)) {
        self.marks.pop_front();
        self.pass(mark.gap_us.saturating_mul(1000), step);
    }

    /// Lets it compute.
    fn pass(&mut self, ns: u64, step: &mut impl FnMut(Action, Option<&Event>)) {
        if ns > 0 {
            step(Action::Compute(ns), None);
            self.clock = self.clock.saturating_add(ns);
        }
    }
}

#[cfg(test)]
#[path = "unrolled_tests.rs"]
mod tests;
