//! A trace as one stream, in the order in which things took effect.
//!
//! By their beginnings two threads' calls may stand in the wrong order: an `open` takes descriptor 3 when it ends, which
//! another thread's `close` gave back after it had begun. So what gives something (a descriptor, a name) stands where
//! it ended, all else where it began. Calls of one thread keep their order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::path::Path;

use etude_calls::{Futex, Kind, Outcome, Range, RangeKind, RangeLock};
use etude_trace::{
    Ending, Event, Failed, Footer, Found, Frame, Header, Meta, Ordered, Reader, Scheduling, in_order,
};

use crate::from_trace::run_delay::Sample;
use crate::from_trace::threads::Held;

/// A beginning or an end of a process or a thread, as it is noted in a trace.
#[derive(Clone, Debug)]
pub(crate) enum Life {
    Process {
        process: u32,
        parent: Option<u32>,
        cwd: String,
    },
    Thread {
        thread: u32,
        process: u32,
        tid: u32,
    },
    /// The process is another program; `thread` is its only one from now on. It ran again at `until_ns`.
    Exec {
        process: u32,
        thread: Option<u32>,
        until_ns: u64,
    },
    Ended {
        process: u32,
    },
}

/// An item of the stream: the life of threads, or a call.
pub(crate) enum Next<'a> {
    /// `busy`: threads that are in a call at that time.
    Life {
        at_ns: u64,
        life: &'a Life,
        busy: &'a [u32],
    },
    Call {
        at_ns: u64,
        thread: u32,
        event: &'a Event,
    },
}

/// What a trace says beside its events.
#[derive(Default)]
pub(crate) struct Survey {
    pub header: Header,
    pub lives: Vec<(u64, Life)>,
    pub found: Vec<Found>,
    pub footer: Option<Footer>,
    pub unrecorded: Vec<String>,
    /// Processes of which each call stopped the thread.
    pub by_stops: Vec<u32>,
    pub run_delays: Vec<Sample>,
    pub held: Vec<Held>,
    /// Class of the first process, as it was noted last.
    pub scheduling: Option<Scheduling>,
    /// The program that the first process executed last.
    pub executable: String,
    pub dropped: u64,
    /// When the last call ended.
    pub end_ns: u64,
}

/// Ten times the files that a recorder looks at; a trace may say more.
const MOST_FOUND: usize = 1_000_000;

impl Survey {
    /// Reads all once.
    pub fn of(path: &Path) -> Result<Survey, Failed> {
        let mut reader = Reader::open(path)?;
        let mut survey = Survey { header: reader.header().clone(), ..Survey::default() };
        let mut notes = Notes::default();
        // What is damaged will be found once more, and then told.
        while let Ok(Some(frame)) = reader.next() {
            match frame {
                Frame::Meta(Meta::Files { files }) => {
                    let room = MOST_FOUND - survey.found.len();
                    survey.found.extend(files.into_iter().take(room));
                }
                Frame::Meta(Meta::Unrecorded { process, why }) => {
                    survey.unrecorded.push(format!("process {process}: {why}"));
                }
                Frame::Meta(Meta::ByStops { process, .. }) => survey.by_stops.push(process),
                Frame::Meta(Meta::Dropped { events, .. }) => {
                    survey.dropped = survey.dropped.saturating_add(events)
                }
                Frame::Meta(Meta::RunDelay { thread, at_ns, cpu_ns, run_delay_ns }) => {
                    survey.run_delays.push(Sample { thread, at_ns, cpu_ns, run_delay_ns });
                }
                Frame::Meta(Meta::Held { thread, spans }) => {
                    survey.held.extend(spans.into_iter().map(|(from_ns, ns)| Held {
                        thread,
                        from_ns,
                        until_ns: from_ns.saturating_add(ns),
                    }))
                }
                Frame::Meta(Meta::Scheduling { class, .. }) => survey.scheduling = Some(class),
                Frame::Meta(meta) => {
                    if let Meta::Process { process: 0, executable, .. }
                    | Meta::Exec { process: 0, executable, .. } = &meta
                    {
                        survey.executable.clone_from(executable);
                    }
                    notes.add(meta);
                }
                Frame::Events { thread, events } => {
                    for event in events {
                        survey.end_ns = survey.end_ns.max(event.end_ns());
                        notes.seen(thread, event.start_ns);
                    }
                }
                Frame::Footer(footer) => survey.footer = Some(footer),
            }
        }
        survey.lives = notes.finish();
        Ok(survey)
    }
}

/// Beginnings and ends as they come in the file.
#[derive(Default)]
struct Notes {
    lives: Vec<(u64, Life)>,
    /// When the first call of each thread began.
    first: HashMap<u32, u64>,
    /// The pid of each process.
    leaders: HashMap<u32, u32>,
    /// Processes that have had a thread with their own number: another one is there after an exec.
    led: HashMap<u32, usize>,
    /// Execs (places in `lives`) of which the new thread, or the exec itself, has not been told.
    open: HashMap<u32, usize>,
}

impl Notes {
    fn seen(&mut self, thread: u32, start_ns: u64) {
        let first = self.first.entry(thread).or_insert(start_ns);
        *first = start_ns.min(*first);
    }

    fn add(&mut self, meta: Meta) {
        let here = self.lives.len();
        match meta {
            Meta::Process { process, parent, pid, cwd, at_ns, .. } => {
                self.leaders.insert(process, pid);
                self.lives.push((at_ns, Life::Process { process, parent, cwd }));
            }
            Meta::Thread { thread, process, tid, at_ns } => {
                let leads = self.leaders.get(&process) == Some(&tid);
                if !leads || self.led.insert(process, here).is_none() {
                    self.lives.push((at_ns, Life::Thread { thread, process, tid }));
                } else if let Some(place) = self.open.remove(&process) {
                    if let (_, Life::Exec { thread: new, until_ns, .. }) = &mut self.lives[place] {
                        (*new, *until_ns) = (Some(thread), at_ns);
                    }
                } else {
                    self.open.insert(process, here);
                    let exec = Life::Exec { process, thread: Some(thread), until_ns: at_ns };
                    self.lives.push((at_ns, exec));
                }
            }
            Meta::Exec { process, at_ns, .. } => match self.open.remove(&process) {
                // The recorder worked on the new program meanwhile.
                Some(place) => {
                    if let (_, Life::Exec { until_ns, .. }) = &mut self.lives[place] {
                        *until_ns = at_ns;
                    }
                }
                None => self.lives.push((at_ns, Life::Exec { process, thread: None, until_ns: at_ns })),
            },
            Meta::Ended { process, at_ns, .. } => self.lives.push((at_ns, Life::Ended { process })),
            _ => {}
        }
    }

    /// In order of time. What begins does so before its first call, though the recorder be told of it later.
    fn finish(mut self) -> Vec<(u64, Life)> {
        let mut earliest: HashMap<u32, u64> = HashMap::new();
        for (at_ns, life) in &mut self.lives {
            let (Life::Thread { thread, process, .. } | Life::Exec { thread: Some(thread), process, .. }) =
                life
            else {
                continue;
            };
            *at_ns = self.first.get(thread).map_or(*at_ns, |first| (*at_ns).min(*first));
            let first = earliest.entry(*process).or_insert(*at_ns);
            *first = (*at_ns).min(*first);
        }
        for (at_ns, life) in &mut self.lives {
            if let Life::Process { process, .. } = life {
                *at_ns = earliest.get(process).map_or(*at_ns, |first| (*at_ns).min(*first));
            }
        }
        self.lives.sort_by_key(|(at_ns, _)| *at_ns);
        self.lives
    }
}

/// Gives all of a trace to `visit`, as it took effect.
pub(crate) fn in_effect(
    path: &Path,
    lives: &[(u64, Life)],
    mut visit: impl FnMut(Next) -> io::Result<()>,
) -> Result<Ending, Failed> {
    let mut order = Order { waiting: BinaryHeap::new(), last: HashMap::new(), many: 0, lives };
    let ending = in_order(path, |next| match next {
        Ordered::Event { thread, event } => {
            order.release(Some(event.start_ns), &mut visit)?;
            order.add(thread, event);
            Ok(())
        }
        _ => Ok(()),
    });
    match ending {
        Err(Failed::Visit(error)) => Err(Failed::Visit(error)),
        ending => {
            order.release(None, &mut visit)?;
            ending
        }
    }
}

struct Order<'a> {
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Where the last call of each thread stands.
    last: HashMap<u32, u64>,
    many: u64,
    lives: &'a [(u64, Life)],
}

struct Waiting {
    key: (u64, u64),
    thread: u32,
    event: Event,
}

impl Order<'_> {
    fn add(&mut self, thread: u32, event: &Event) {
        let last = self.last.entry(thread).or_default();
        let at = if gives(event) { event.end_ns() } else { event.start_ns };
        *last = at.max(*last);
        self.waiting.push(Reverse(Waiting { key: (*last, self.many), thread, event: event.clone() }));
        self.many += 1;
    }

    /// All that stands before a time: nothing that is to come does.
    fn release(
        &mut self,
        before: Option<u64>,
        visit: &mut impl FnMut(Next) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let call = self.waiting.peek().map(|Reverse(first)| first.key.0);
            let life = self.lives.first().map(|(at_ns, _)| *at_ns);
            let passed = |at: u64| before.is_none_or(|before| at <= before);
            // Who begins does so before its first call; who ends, after its last.
            let ends = matches!(self.lives.first(), Some((_, Life::Ended { .. })));
            let live = match (life, call) {
                (Some(life), Some(call)) => life < call || life == call && !ends,
                (life, _) => life.is_some(),
            };
            if live {
                let Some(((at_ns, life), rest)) = self.lives.split_first().filter(|((at, _), _)| passed(*at))
                else {
                    return Ok(());
                };
                let busy: Vec<u32> =
                    self.waiting.iter().filter_map(|Reverse(call)| call.over(*at_ns)).collect();
                self.lives = rest;
                visit(Next::Life { at_ns: *at_ns, life, busy: &busy })?;
            } else {
                let Some(Reverse(Waiting { key: (at_ns, _), thread, event })) =
                    call.filter(|at| passed(*at)).and_then(|_| self.waiting.pop())
                else {
                    return Ok(());
                };
                visit(Next::Call { at_ns, thread, event: &event })?;
            }
        }
    }
}

impl Waiting {
    /// Its thread, if the call was under way at that time.
    fn over(&self, at_ns: u64) -> Option<u32> {
        (self.event.start_ns < at_ns && at_ns < self.event.end_ns()).then_some(self.thread)
    }
}

/// Whether a call gives a descriptor, has to do with names or waits for a thread: what it does is done when it ends.
fn gives(event: &Event) -> bool {
    let row = event.call.row();
    row.outcome == Outcome::Descriptor
        || row.arguments.iter().any(|kind| matches!(kind, Kind::Path | Kind::Pair))
        || row.name == "fcntl" && matches!(event.arguments[1], 0 | 1030)
        // Who waited goes on behind whoever has woken it.
        || Futex::of(event.call, &event.arguments) == Some(Futex::Wait)
        || takes_at_once(event)
}

/// Whether a call got a lock for which it would not have waited: it was given back before.
fn takes_at_once(event: &Event) -> bool {
    const NOT_WAITING: u64 = 4;
    const UNLOCK: u64 = 8;
    let range = || Range::of(event.text(2)?);
    let takes = match RangeLock::of(event.call, &event.arguments) {
        Some(lock) => !lock.waits && range().is_some_and(|range| range.kind != RangeKind::Unlock),
        None => event.call.name() == "flock" && event.arguments[1] & (NOT_WAITING | UNLOCK) == NOT_WAITING,
    };
    takes && event.result == 0
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
