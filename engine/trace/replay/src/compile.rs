//! From a script to a roll.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use etude_calls::{Futex, Kind, Moves, Range, Role};
use etude_clock::seconds;
use etude_quantity::counted;
use etude_script::{Action, Called, Script, Step, What};
use etude_trace::Event;
use smallvec::SmallVec;

use crate::order::{Edge, Edges, Order, Wait, end_of};
use crate::roll::{Head, MOST_THREADS, Mark, Marked, Original, Rhythm, Stream, Writer};

/// What became of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compiled {
    pub threads: usize,
    pub calls: u64,
    /// How often a thread waits for another, by why.
    pub waits: BTreeMap<Edge, u64>,
}

impl Compiled {
    /// `3 waits for others (1 data, 2 threads)`.
    pub fn waits_text(&self) -> String {
        let all = format!("{} for others", counted(self.waits.values().sum(), "wait"));
        let kinds: Vec<String> =
            self.waits.iter().map(|(edge, many)| format!("{many} {}", edge.name())).collect();
        if kinds.is_empty() { all } else { format!("{all} ({})", kinds.join(", ")) }
    }
}

/// Writes a script as a roll; threads wait for each other as they have to.
///
/// # Errors
/// As [`compile_with`].
pub fn compile<W: Write>(script: &Script, out: W) -> io::Result<(W, Compiled)> {
    compile_with(script, Edges::ALL, out)
}

/// The same with waits of these kinds only.
///
/// # Errors
/// The output cannot be written; or the script has more than a roll can hold (`InvalidInput`).
pub fn compile_with<W: Write>(script: &Script, wanted: Edges, out: W) -> io::Result<(W, Compiled)> {
    let script = &*numbered(script);
    let threads = script.steps.iter().map(|step| last(step) as usize + 1).max().unwrap_or(1);
    if threads > MOST_THREADS {
        let what = format!("has {threads} threads; a roll can have {MOST_THREADS}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut lanes: Vec<Lane> = (0..threads).map(|_| Lane::default()).collect();
    let (mut names, waits) = (Names::default(), Order::of(script, wanted));
    let (told, connections) = (told(&waits, threads), connections(script));
    for (at, step) in script.steps.iter().enumerate() {
        let thread = step.thread as usize;
        lanes[thread].waits(waits.get(&at), &told);
        match &step.action {
            Action::Compute(ns) => lanes[thread].compute(*ns),
            Action::Start(other) => {
                lanes[*other as usize].process = lanes[thread].process;
                lanes[thread].mark(Marked::Start(*other));
            }
            Action::Fork(other) => {
                lanes[*other as usize].process = *other;
                lanes[thread].mark(Marked::Fork(*other));
            }
            Action::Wait(other) => lanes[thread].mark(Marked::Wait(*other)),
            Action::Exec => lanes[thread].mark(Marked::Exec),
            Action::Call(called) => lanes[thread].call(called, connections.get(&at), &mut names),
        }
        if told[thread].binary_search(&at).is_ok() {
            lanes[thread].mark(Marked::Tell);
        }
    }
    for (thread, lane) in (0..).zip(&mut lanes) {
        if lane.process == thread {
            lane.waits(waits.get(&end_of(thread)), &told);
        }
        lane.mark(Marked::End);
    }
    names.add_needed(script);
    let head = Head {
        notes: script.notes.clone(),
        scheduling: script.scheduling,
        threads: lanes
            .iter()
            .map(|lane| Stream { process: lane.process, calls: lane.events.len() as u64 })
            .collect(),
        accepting: accepting(&connections),
        calls: lanes.iter().map(|lane| lane.events.len() as u64).sum(),
        original: original(script),
        dropped: script.dropped.clone(),
        largest: lanes.iter().map(|lane| lane.largest).max().unwrap_or(0),
        ..Head::default()
    };
    let rhythm = Rhythm::of(lanes.iter().map(|lane| &lane.events[..]));
    let mut writer = Writer::new(out, &head, &names.all, &script.needed, rhythm)?;
    for (thread, lane) in lanes.iter_mut().enumerate() {
        writer.marks(thread as u32, &lane.marks)?;
        writer.calls(thread as u32, &mut lane.events)?;
    }
    let mut by_kind = BTreeMap::new();
    waits.values().flatten().for_each(|wait| *by_kind.entry(wait.edge).or_default() += 1);
    Ok((writer.finish()?, Compiled { threads, calls: head.calls, waits: by_kind }))
}

/// With threads that are numbered without gaps, as a roll has them.
fn numbered(script: &Script) -> Cow<'_, Script> {
    let started = |step: &Step| match step.action {
        Action::Start(other) | Action::Fork(other) => Some(other),
        _ => None,
    };
    let mut numbers: Vec<u32> = script.steps.iter().filter_map(started).chain([0]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.last().is_some_and(|last| *last as usize + 1 == numbers.len()) {
        return Cow::Borrowed(script);
    }
    let place = |number: u32| numbers.partition_point(|other| *other < number) as u32;
    let mut script = script.clone();
    for step in &mut script.steps {
        step.thread = place(step.thread);
        if let Action::Start(other) | Action::Fork(other) | Action::Wait(other) = &mut step.action {
            *other = place(*other);
        }
    }
    Cow::Owned(script)
}

/// The highest number of a thread in a step.
fn last(step: &Step) -> u32 {
    match step.action {
        Action::Start(other) | Action::Fork(other) | Action::Wait(other) => step.thread.max(other),
        _ => step.thread,
    }
}

/// By thread, the steps of which others have to know, ascending.
fn told(waits: &HashMap<usize, Vec<Wait>>, threads: usize) -> Vec<Vec<usize>> {
    let mut told = vec![Vec::new(); threads];
    let steps = waits.values().flatten().filter(|wait| wait.end.is_none());
    steps.for_each(|wait| told[wait.other.thread as usize].push(wait.other.step));
    for steps in &mut told {
        steps.sort_unstable();
        steps.dedup();
    }
    told
}

/// One end of a connection, as the `connect` or `accept` of a roll names it.
struct Half {
    /// The same of both, from 1.
    number: u64,
    /// The thread that accepts; None of an `accept`.
    accepts: Option<u32>,
}

/// By step, the halves of connections of which both are there.
fn connections(script: &Script) -> HashMap<usize, Half> {
    let (mut found, mut half_made, mut number) = (HashMap::new(), HashMap::new(), 0);
    for (at, step) in script.steps.iter().enumerate() {
        let Action::Call(called) = &step.action else { continue };
        let accepts = match called.call.name() {
            "connect" if called.result == 0 => None,
            "accept" | "accept4" if called.result >= 0 => Some(step.thread),
            _ => continue,
        };
        let Some(name) = called.text(1) else { continue };
        match half_made.remove(name) {
            Some((other, thread)) if accepts.xor(thread).is_some() => {
                number += 1;
                found.insert(at, Half { number, accepts: thread });
                found.insert(other, Half { number, accepts });
            }
            _ => drop(half_made.insert(name, (at, accepts))),
        }
    }
    found
}

fn accepting(connections: &HashMap<usize, Half>) -> Vec<u32> {
    let mut threads: Vec<u32> = connections.values().filter_map(|half| half.accepts).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Paths and other texts, each once.
#[derive(Default)]
struct Names {
    all: Vec<Vec<u8>>,
    places: HashMap<Vec<u8>, u64>,
}

impl Names {
    /// Its number, from 1.
    fn number(&mut self, name: &[u8]) -> u64 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.all.push(name.to_vec());
        let place = self.all.len() as u64;
        self.places.insert(name.to_vec(), place);
        place
    }
}

impl Names {
    /// Also those of files that have to be there.
    fn add_needed(&mut self, script: &Script) {
        for each in &script.needed {
            self.number(&each.path);
            if let What::Link(to) | What::HardLink(to) = &each.what {
                self.number(to);
            }
        }
    }
}

/// A longer time is a mistake: a century.
const LONGEST_NS: u64 = 1 << 61;

/// What becomes of one thread.
#[derive(Default)]
struct Lane {
    process: u32,
    events: Vec<Event>,
    marks: Vec<Mark>,
    /// Computing since the last call or mark, ns.
    gap_ns: u64,
    /// What rounding marks' gaps to microseconds has kept back so far, ns.
    kept_ns: i64,
    end_ns: u64,
    largest: u64,
}

impl Lane {
    fn compute(&mut self, ns: u64) {
        self.gap_ns = self.gap_ns.saturating_add(ns);
    }

    /// The gap before a mark, µs: what rounding keeps back is part of the next one.
    fn gap_us(&mut self) -> u64 {
        let exact = std::mem::take(&mut self.gap_ns).min(LONGEST_NS) as i64 + self.kept_ns;
        let us = (exact.max(0) + 500) / 1000;
        self.kept_ns = exact - us * 1000;
        us as u64
    }

    fn mark(&mut self, what: Marked) {
        let gap_us = self.gap_us();
        self.marks.push(Mark { at: self.events.len() as u64, gap_us, what });
    }

    /// `told`: by thread, the steps of which others have to know.
    fn waits(&mut self, waits: Option<&Vec<Wait>>, told: &[Vec<usize>]) {
        for Wait { other, end, .. } in waits.into_iter().flatten() {
            let told = told[other.thread as usize].partition_point(|step| *step <= other.step) as u64;
            self.mark(match end {
                Some(process) => Marked::Wait(*process),
                None => Marked::After { thread: other.thread, told },
            });
        }
    }

    fn call(&mut self, called: &Called, connection: Option<&Half>, names: &mut Names) {
        let start = self.end_ns.saturating_add(std::mem::take(&mut self.gap_ns).min(LONGEST_NS));
        let duration = called.duration_ns.unwrap_or(0).min(LONGEST_NS);
        let mut arguments = called.arguments;
        for index in 0..called.call.row().arguments.len() {
            match called.call.kind(&called.arguments, index) {
                Kind::Path | Kind::Name => arguments[index] = 0,
                // Where data stood in memory says nothing.
                Kind::Buffer | Kind::Iovec | Kind::Pointer | Kind::Socket | Kind::OffsetAt | Kind::Range => {
                    arguments[index] = 0
                }
                _ => {}
            }
        }
        for text in &called.texts {
            let index = usize::from(text.argument);
            match called.call.kind(&called.arguments, index) {
                Kind::Path | Kind::Name => arguments[index] = names.number(&text.bytes),
                Kind::Pair => arguments[index] = text.bytes[..].try_into().map_or(0, u64::from_le_bytes),
                Kind::Range => {
                    if let Some(range) = Range::of(&text.bytes) {
                        let mut words = String::new();
                        etude_trace::words::range_of(&mut words, range);
                        arguments[index] = names.number(words.as_bytes());
                    }
                }
                // 0 is none.
                Kind::OffsetAt => {
                    let offset = text.bytes[..].try_into().map_or(0, u64::from_le_bytes);
                    arguments[index] = offset.wrapping_add(1);
                }
                _ => {}
            }
        }
        if let Some(Half { number, accepts }) = connection {
            arguments[1] = *number;
            accepts.iter().for_each(|thread| arguments[2] = u64::from(*thread) + 1);
        }
        self.largest = self.largest.max(called.buffer());
        self.end_ns = start.saturating_add(duration);
        self.events.push(Event {
            start_ns: start,
            duration_ns: duration,
            call: called.call,
            result: called.result,
            arguments,
            texts: SmallVec::new(),
        });
    }
}

/// How long the original took, by its schedule: all threads from their starts on.
fn original(script: &Script) -> Original {
    let mut sums = Original { timed: true, ..Original::default() };
    let mut ends: HashMap<u32, u64> = HashMap::new();
    for step in &script.steps {
        let now = *ends.entry(step.thread).or_default();
        match &step.action {
            Action::Compute(ns) => {
                ends.insert(step.thread, now.saturating_add(*ns));
            }
            Action::Start(other) | Action::Fork(other) => {
                ends.insert(*other, now);
            }
            Action::Wait(other) => {
                let until = ends.get(other).copied().unwrap_or(0);
                ends.insert(step.thread, now.max(until));
            }
            Action::Exec => {}
            Action::Call(called) => {
                let ns = called.duration_ns.unwrap_or(0);
                sums.timed &= called.duration_ns.is_some();
                ends.insert(step.thread, now.saturating_add(ns));
                let (seconds, bytes) = (seconds(ns), called.result.max(0) as u64);
                if Futex::of(called.call, &called.arguments).is_some() {
                    continue; // a replay waits for its own threads
                }
                sums.calls_s += seconds;
                if let Some(Role::Handover { .. } | Role::Completion { .. }) = called.call.role() {
                    sums.requests_s += seconds;
                }
                match called.call.row().moves {
                    Moves::Reads => {
                        (sums.read_s, sums.read_bytes) =
                            (sums.read_s + seconds, sums.read_bytes.saturating_add(bytes))
                    }
                    Moves::Writes | Moves::Both => {
                        (sums.write_s, sums.written_bytes) =
                            (sums.write_s + seconds, sums.written_bytes.saturating_add(bytes));
                    }
                    Moves::Nothing => {}
                }
            }
        }
    }
    sums.run_s = seconds(ends.values().max().copied().unwrap_or(0));
    sums
}
