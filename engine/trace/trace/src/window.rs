//! The replayed part of a replay that was recorded (docs/howto/replay.md, "Recorded itself"): without what it did before and
//! beside playing.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::event::Event;
use crate::frame::Error;
use crate::meta::{Footer, Header, Meta};
use crate::reader::{Frame, Reader};

/// The descriptor that the playing process closes when it begins.
const MARK: i64 = -0x4554_5544;

pub struct Window {
    begun_ns: u64,
    /// Threads that play; those that made calls before are none, but for the one that closed the mark.
    threads: HashSet<u32>,
    /// Processes of these.
    processes: HashSet<u32>,
    last_ns: u64,
}

impl Window {
    /// None where there is no mark.
    pub fn of(path: &Path, processes: &HashMap<u32, u32>) -> Result<Option<Window>, Error> {
        let Some((marking, begun_ns)) = mark(path)? else { return Ok(None) };
        // By thread: when it first begins a call, and when its last one ends that began in the window.
        let mut threads: HashMap<u32, (u64, Option<u64>)> = HashMap::new();
        let mut reader = Reader::open(path)?;
        while let Ok(Some(frame)) = reader.next() {
            let Frame::Events { thread, events } = frame else { continue };
            let (first, last) = threads.entry(thread).or_insert((u64::MAX, None));
            for event in events {
                *first = (*first).min(event.start_ns);
                if event.start_ns >= begun_ns {
                    *last = (*last).max(Some(event.end_ns()));
                }
            }
        }
        threads.retain(|thread, (first, last)| last.is_some() && (*first >= begun_ns || *thread == marking));
        let last_ns = threads.values().filter_map(|(_, last)| *last).max().unwrap_or(begun_ns);
        let threads: HashSet<u32> = threads.into_keys().collect();
        let processes = threads.iter().map(|thread| processes.get(thread).copied().unwrap_or(0)).collect();
        Ok(Some(Window { begun_ns, threads, processes, last_ns }))
    }

    /// The events of a thread that are in it, with times since its beginning.
    pub fn events(&self, thread: u32, events: &[Event]) -> Vec<Event> {
        if !self.threads.contains(&thread) {
            return Vec::new();
        }
        let within = events.iter().filter(|event| event.start_ns >= self.begun_ns);
        within.map(|event| Event { start_ns: self.since(event.start_ns), ..event.clone() }).collect()
    }

    /// A note that is about it. Counts of the kernel are of whole threads: there is nothing to compare them with.
    pub fn meta(&self, mut meta: Meta) -> Option<Meta> {
        let (process, at_ns) = match &mut meta {
            Meta::Process { process, cwd, at_ns, .. } => {
                *cwd = "/".into();
                (process, at_ns)
            }
            Meta::Thread { process, at_ns, .. }
            | Meta::Exec { process, at_ns, .. }
            | Meta::Ended { process, at_ns, .. } => (process, at_ns),
            _ => return None,
        };
        *at_ns = self.since(*at_ns);
        self.processes.contains(process).then_some(meta)
    }

    pub fn header(&self, header: Header) -> Header {
        Header { cwd: "/".into(), ..header }
    }

    pub fn footer(&self, footer: Footer, meta: &[Meta]) -> Footer {
        let ends = meta.iter().filter_map(|meta| match meta {
            Meta::Ended { at_ns, .. } => Some(*at_ns),
            _ => None,
        });
        Footer { end_ns: ends.chain([self.since(self.last_ns)]).max().unwrap_or(0), ..footer }
    }

    /// A time since the beginning of the window.
    pub fn since(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.begun_ns)
    }
}

/// The thread of the mark, and when its call ended.
fn mark(path: &Path) -> Result<Option<(u32, u64)>, Error> {
    let mut reader = Reader::open(path)?;
    while let Ok(Some(frame)) = reader.next() {
        let Frame::Events { thread, events } = frame else { continue };
        let is_mark = |event: &&Event| event.call.name() == "close" && event.arguments[0] as i64 == MARK;
        if let Some(event) = events.iter().find(is_mark) {
            return Ok(Some((thread, event.end_ns())));
        }
    }
    Ok(None)
}
