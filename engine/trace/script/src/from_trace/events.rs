//! Counters of events (`eventfd`): a read that found something waits for those who wrote since the one before. Both are steps
//! as those of futexes are, with a word for each thread that writes: what stands in a counter needs no replay.

use etude_calls::{Call, Moves};
use etude_trace::Event;

use crate::from_trace::Walk;
use crate::from_trace::calls::called;
use crate::from_trace::futexes::Word;
use crate::from_trace::tables::Behind;
use crate::model::Called;

/// FUTEX_WAIT and FUTEX_WAKE.
const WAIT: u64 = 0;
const WAKE: u64 = 1;
/// Bytes of what is read and written.
const COUNT: i64 = 8;

#[derive(Default)]
pub(crate) struct Events {
    counters: Vec<Counter>,
    /// Reads that have not ended: what they find may come below.
    reads: Vec<Read>,
}

#[derive(Default)]
struct Counter {
    /// Threads that have written since the last read, or before it if none has since.
    writers: Vec<u32>,
    read: bool,
}

struct Read {
    thread: u32,
    counter: u32,
    event: Event,
}

impl Events {
    /// What stands behind a new one.
    pub fn begin(&mut self) -> Behind {
        self.counters.push(Counter::default());
        Behind::Events(self.counters.len() as u32 - 1)
    }

    /// Threads that were reading at a time.
    pub fn busy(&self, at_ns: u64) -> impl Iterator<Item = u32> {
        self.reads.iter().filter(move |read| read.event.start_ns < at_ns).map(|read| read.thread)
    }

    /// The first read that ended before a time, or before the next call of its thread.
    fn ended(&mut self, at_ns: u64, thread: Option<u32>) -> Option<Read> {
        let ended = |read: &Read| read.event.end_ns() < at_ns || Some(read.thread) == thread;
        let first = (0..self.reads.len())
            .filter(|index| ended(&self.reads[*index]))
            .min_by_key(|index| self.reads[*index].event.end_ns())?;
        Some(self.reads.remove(first))
    }
}

impl Walk<'_> {
    /// The counter that a call reads or writes.
    pub(crate) fn counter(&self, process: u32, event: &Event) -> Option<u32> {
        if !matches!(event.call.name(), "read" | "write") {
            return None;
        }
        match self.tables.get(process, event.arguments[0] as i32)?.behind {
            Behind::Events(counter) => Some(counter),
            _ => None,
        }
    }

    pub(crate) fn counts(&mut self, thread: u32, event: &Event, counter: u32) {
        let events = &mut self.events;
        if event.result != COUNT {
            self.report.drops(event, "events");
        } else if event.call.row().moves == Moves::Reads {
            events.reads.push(Read { thread, counter, event: event.clone() });
        } else {
            let Counter { writers, read } = &mut events.counters[counter as usize];
            if std::mem::take(read) {
                writers.clear();
            }
            if !writers.contains(&thread) {
                writers.push(thread);
            }
            let number = self.futexes.number(Word::Counter { counter, writer: thread });
            self.report.replaces("a write of a counter of events, by a wake");
            self.threads.call(thread, event, step(event, [number, WAKE, 1], 1));
        }
    }

    /// Reads that have ended by a time find what was written until then.
    pub(crate) fn read_counters(&mut self, at_ns: u64, thread: Option<u32>) {
        while let Some(Read { thread, counter, event }) = self.events.ended(at_ns, thread) {
            let found = &mut self.events.counters[counter as usize];
            found.read = true;
            let others: Vec<u32> = found.writers.iter().copied().filter(|writer| *writer != thread).collect();
            let Some((last, before)) = others.split_last() else {
                self.report.drops(&event, "events");
                continue;
            };
            self.report.replaces("a read of a counter of events, by waits");
            let at_once = Event { duration_ns: 0, ..event.clone() };
            let events = before.iter().map(|writer| (writer, &at_once)).chain([(last, &event)]);
            for (writer, event) in events {
                let number = self.futexes.number(Word::Counter { counter, writer: *writer });
                self.threads.call(thread, event, step(event, [number, WAIT, 0], 0));
            }
        }
    }
}

fn step(event: &Event, [word, operation, value]: [u64; 3], result: i64) -> Called {
    let call = Call::named("futex").expect("it is in the table");
    let arguments = [word, operation, value, 0, 0, 0];
    Called { call, arguments, result, ..called(event, &[]) }
}
