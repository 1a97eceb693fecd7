//! Threads that wait for each other: a wait is a step where another thread is known to have ended it, and so is what that
//! did. The end of a thread is one, too, for whoever joins it.

use std::collections::HashMap;

use etude_calls::{Call, Futex};
use etude_trace::Event;

use crate::from_trace::Walk;
use crate::from_trace::calls::called;
use crate::model::Called;

/// FUTEX_WAKE: what the kernel does at the end of a thread.
const WAKE: u64 = 1;

/// What threads wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    /// A word of memory: its process, where only that uses it, and address.
    Memory { process: Option<u32>, address: u64 },
    /// What a thread has written to a counter of events.
    Counter { counter: u32, writer: u32 },
}

#[derive(Default)]
pub(crate) struct Futexes {
    words: HashMap<Word, Known>,
    /// By process and the kernel's number: threads.
    threads: HashMap<(u32, u32), u32>,
}

struct Known {
    /// What it is called in the script, instead of an address.
    number: u64,
    /// When the last wake that woke somebody began.
    woken_ns: Option<u64>,
}

impl Futexes {
    pub fn thread(&mut self, process: u32, thread: u32, tid: u32) {
        self.threads.insert((process, tid), thread);
    }

    /// What it is called in the script.
    pub fn number(&mut self, word: Word) -> u64 {
        self.known(word).number
    }

    fn known(&mut self, word: Word) -> &mut Known {
        let number = self.words.len() as u64 + 1;
        self.words.entry(word).or_insert(Known { number, woken_ns: None })
    }

    /// A thread that another waits to end: at the word the kernel keeps its number.
    fn joined(&self, process: u32, waits: &Event) -> Option<u32> {
        let [_, _, value, ..] = waits.arguments;
        let tid = u32::try_from(value).ok().filter(|_| !Futex::is_private(&waits.arguments))?;
        self.threads.get(&(process, tid)).copied()
    }
}

impl Walk<'_> {
    pub(crate) fn waits_or_wakes(&mut self, (thread, process): (u32, u32), event: &Event, futex: Futex) {
        let owner = Futex::is_private(&event.arguments).then_some(process);
        let word = self.futexes.known(Word::Memory { process: owner, address: event.arguments[0] });
        let why = match futex {
            Futex::Wake if event.result < 0 => "failed",
            // UNLOCK_PI says nothing of whom it woke.
            Futex::Wake if event.result == 0 && event.arguments[1] & 127 != 7 => "woke nobody",
            Futex::Wake => {
                word.woken_ns = Some(event.start_ns);
                let made = Called { arguments: words(word.number, event), ..called(event, &[]) };
                self.threads.call(thread, event, made);
                return;
            }
            Futex::Wait if event.result != 0 => "a wait that ended by itself",
            Futex::Wait => {
                let number = word.number;
                let known = word.woken_ns.is_some_and(|woken| woken >= event.start_ns);
                let joined = self.futexes.joined(process, event).filter(|joined| *joined != thread);
                if let Some(joined) = joined.filter(|_| !known) {
                    self.ends((joined, process), event, number);
                }
                if known || joined.is_some() {
                    let made = Called { arguments: words(number, event), ..called(event, &[]) };
                    self.threads.call(thread, event, made);
                    return;
                }
                "a wait for whom is not known"
            }
        };
        self.report.drops(event, why);
    }

    /// A thread has ended when the wait for it did.
    fn ends(&mut self, (thread, process): (u32, u32), waits: &Event, number: u64) {
        let event = Event {
            start_ns: waits.end_ns(),
            duration_ns: 0,
            call: Call::named("futex").expect("it is in the table"),
            result: 1,
            arguments: [waits.arguments[0], WAKE, 1, 0, 0, 0],
            texts: Default::default(),
        };
        self.threads.meets(thread, process, &event);
        let made = Called { arguments: words(number, &event), ..called(&event, &[]) };
        self.threads.call(thread, &event, made);
    }
}

/// Arguments with the number of a word in place of its address.
fn words(number: u64, event: &Event) -> [u64; 6] {
    let [_, operation, value, ..] = event.arguments;
    [number, operation, value, 0, 0, 0]
}
