//! Who writes to which ring, and where what is recorded goes.

use std::time::Duration;

use etude_trace::Meta;

use crate::rewrite::layout::{DATA, RINGS, SLOT};
use crate::rewrite::preparation::Patched;
use crate::rewrite::remote::{Pid, read_text};
use crate::rewrite::ring::{Raw, Segment};

/// How often the rings are emptied: each holds 4096 calls.
pub const DRAIN_INTERVAL: Duration = Duration::from_millis(1);

/// Where what is recorded goes.
pub trait Sink: Send {
    /// Whether there is room for more calls; if not, whoever has some waits, and holds no lock meanwhile.
    fn room(&mut self) -> bool;
    /// Hands on what it was told since the last time: to wake who writes it at each word would cost more than the word.
    fn pass_on(&mut self);
    fn calls(&mut self, thread: u32, calls: Vec<Raw>);
    /// The kernel has counted a call that it may now make again, and then counts again.
    fn interrupted(&mut self, thread: u32, call: &Raw);
    fn thread(&mut self, thread: u32, process: u32, tid: Pid);
    fn process(&mut self, process: u32, parent: Option<u32>, pid: Pid);
    fn executed(&mut self, process: u32, pid: Pid);
    fn patched(&mut self, process: u32, found: Vec<Patched>);
    fn unrecorded(&mut self, process: u32, why: &str);
    /// A process's code could not be rewritten: each of its calls stops it.
    fn by_stops(&mut self, process: u32, why: &str);
    /// We held a thread, in ticks of the clock.
    fn held(&mut self, thread: u32, from: u64, until: u64);
    fn dropped(&mut self, thread: u32, count: u64);
    fn replaced(&mut self, thread: u32);
    fn counters(&mut self, thread: u32, since_exec: Option<Counters>);
    fn ended(&mut self, process: u32, status: i32);
    fn noted(&mut self, meta: Meta);
    /// Since the beginning of the trace.
    fn now_ns(&self) -> u64;
}

/// The kernel's own counts of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Counters {
    /// Of one thread alone. Those of a whole process would hold what its reaped children did, too.
    pub fn of(group: Pid, tid: Pid) -> Option<Counters> {
        let text = read_text(&format!("/proc/{group}/task/{tid}/io")).ok()?;
        let find = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Some(Counters {
            reads: find("syscr:")?,
            writes: find("syscw:")?,
            read_bytes: find("rchar:")?,
            written_bytes: find("wchar:")?,
        })
    }

    pub fn add(&mut self, other: &Counters) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }

    pub fn since(self, before: Counters) -> Counters {
        Counters {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

/// Who writes to which ring, and what is done with it.
pub struct Rings<S> {
    owners: Vec<Option<u32>>,
    /// The ring that is emptied next.
    turn: usize,
    pub sink: S,
}

impl<S: Sink> Rings<S> {
    pub fn new(sink: S) -> Rings<S> {
        Rings { owners: vec![None; RINGS], turn: 0, sink }
    }

    /// At the end.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// A ring for a thread; None where all are in use.
    /// `filtered`: its program has a filter of system calls.
    pub fn take(
        &mut self,
        segment: &Segment,
        thread: u32,
        drop_when_full: bool,
        filtered: bool,
    ) -> Option<usize> {
        let free = self.owners.iter().position(Option::is_none)?;
        self.owners[free] = Some(thread);
        segment.ring(free).begin(drop_when_full, filtered);
        Some(free)
    }

    /// Its thread writes no more.
    pub fn give_back(&mut self, segment: &Segment, index: usize) {
        self.drain_one(segment, index, true);
        let ring = segment.ring(index);
        ring.forget();
        if let Some(thread) = self.owners[index].take()
            && ring.dropped() > 0
        {
            self.sink.dropped(thread, ring.dropped());
        }
    }

    /// A record comes from a thread that stands still, and that has reserved it and will not write it.
    pub fn take_over(&mut self, segment: &Segment, index: usize, raw: Raw) {
        self.drain_one(segment, index, false);
        segment.ring(index).take_back();
        if let Some(thread) = self.owners[index] {
            self.sink.calls(thread, vec![raw]);
        }
    }

    /// Calls of a thread that stands still which did not come through its ring: those that did come before them.
    pub fn tell(&mut self, segment: &Segment, index: Option<usize>, thread: u32, calls: Vec<Raw>) {
        if calls.is_empty() {
            return;
        }
        if let Some(index) = index {
            self.drain_one(segment, index, false);
        }
        self.sink.calls(thread, calls);
    }

    /// Empties all rings, as far as there is room for what is in them; each has its turn.
    pub fn drain(&mut self, segment: &Segment) {
        for _ in 0..RINGS {
            if self.owners[self.turn].is_some() {
                if !self.sink.room() {
                    break;
                }
                self.drain_one(segment, self.turn, false);
            }
            self.turn = (self.turn + 1) % RINGS;
        }
        self.sink.room();
        self.sink.pass_on();
    }

    fn drain_one(&mut self, segment: &Segment, index: usize, last: bool) {
        let Some(thread) = self.owners[index] else { return };
        let ring = segment.ring(index);
        let mut calls = Vec::with_capacity(ring.slots().min(DATA / SLOT));
        ring.drain(last, |raw| calls.push(raw));
        if !calls.is_empty() {
            self.sink.calls(thread, calls);
        }
    }
}
