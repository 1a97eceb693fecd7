//! From what the tracer sees to the file of a trace: written by a thread of its own (`queue.rs`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use etude_calls::{Call, Counts, Kind};
use etude_trace::{Event, Footer, Image, Left, Meta, Text, Writer};
use smallvec::SmallVec;

use crate::PROCESSOR;
use crate::kernel_counts::{Counters, run_delay};
use crate::rewrite::clock::Calibration;
use crate::rewrite::preparation::{LeftAsItIs, Patched};
use crate::rewrite::remote::Pid;
use crate::rewrite::ring::Raw;

/// Events of one thread that are written together: fewer would cost more bytes each.
const TOGETHER: usize = 8192;

/// How often it is noted of a thread that makes calls how long it has waited for a CPU, ns.
const RUN_DELAY_EVERY_NS: u64 = 100_000_000;

/// What the kernel counted of a thread, beside what its recorded calls come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    pub thread: u32,
    pub process: u32,
    pub kernel: Option<Counters>,
    pub recorded: Counts,
    /// What calls that signals interrupted may have counted beside.
    pub again: Counts,
}

impl Compared {
    /// Whether every read and write is there. A call of which it cannot be told whether the kernel counts it makes
    /// room for what it may come to, and so does one that a signal interrupted: the kernel may have made it again.
    pub fn complete(&self) -> bool {
        self.kernel.is_some_and(|kernel| {
            let fits = |kernel: u64, recorded: u64, again: u64| {
                kernel <= recorded + again && (kernel >= recorded || self.recorded.uncertain)
            };
            fits(kernel.reads, self.recorded.reads, self.again.reads)
                && fits(kernel.writes, self.recorded.writes, self.again.writes)
        })
    }
}

/// Reads and writes of all threads that have ended.
#[derive(Debug, Clone, Default)]
pub struct Completeness {
    /// Of threads of which the kernel's counts are known.
    pub kernel: Counters,
    pub recorded: Counts,
    /// Differences of complete threads: what the kernel counted again after a signal, and failed calls that it did not
    /// count.
    pub again: u64,
    pub uncounted: u64,
    /// Threads that ended before the kernel's counts of them could be read.
    pub unknown: u64,
    pub incomplete: Vec<Compared>,
}

impl Completeness {
    pub fn add(&mut self, thread: Compared) {
        let Some(kernel) = thread.kernel else {
            self.unknown += 1;
            return;
        };
        self.kernel.add(&kernel);
        self.recorded.add(&thread.recorded);
        if !thread.complete() {
            self.incomplete.push(thread);
            return;
        }
        let both = [(kernel.reads, thread.recorded.reads), (kernel.writes, thread.recorded.writes)];
        for (kernel, recorded) in both {
            self.again += kernel.saturating_sub(recorded);
            self.uncounted += recorded.saturating_sub(kernel);
        }
    }
}

/// All that is said of a recording when it is over.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub events: u64,
    pub bytes: u64,
    pub processes: u32,
    pub threads: u32,
    pub dropped: u64,
    pub completeness: Completeness,
    /// Path and number of sites that stay as they are.
    pub left: BTreeMap<String, usize>,
    pub unrecorded: Vec<String>,
    /// Processes whose code could not be rewritten, and why.
    pub by_stops: Vec<String>,
    /// Why the trace ends before the program did.
    pub cut: Option<String>,
}

struct Thread {
    process: u32,
    tid: Pid,
    /// When its run delay was noted last.
    noted_ns: u64,
    events: Vec<Raw>,
    /// From when until when we held it, in ticks.
    held: Vec<(u64, u64)>,
    counts: Counts,
    again: Counts,
}

/// Writes the trace.
pub struct File {
    writer: Option<Writer>,
    calibration: Calibration,
    /// The trace once more, where the files that it names are to be looked at in the end.
    again: Option<std::fs::File>,
    /// Those that have not ended.
    threads: BTreeMap<u32, Thread>,
    summary: Summary,
}

impl File {
    pub fn new(writer: Writer, calibration: Calibration, again: Option<std::fs::File>) -> File {
        let (threads, summary) = (BTreeMap::new(), Summary::default());
        File { writer: Some(writer.gathering()), calibration, again, threads, summary }
    }

    /// Once the last process is gone: what is left is written, and the trace is ended.
    pub fn finish(mut self, mut notes: Vec<String>) -> Summary {
        let threads: Vec<u32> = self.threads.keys().copied().collect();
        for thread in threads {
            self.flush(thread);
        }
        let end_ns = self.calibration.origin().now_ns();
        notes.extend(self.look_at_files());
        let footer = Footer {
            processes: self.summary.processes,
            threads: self.summary.threads,
            dropped: self.summary.dropped,
            end_ns,
            recorder_cpu_s: Some(etude_clock::seconds(etude_clock::own_cpu_ns())),
            clock_error_ns: self.calibration.error_ns(),
            notes,
            ..Footer::default()
        };
        if let Some(writer) = self.writer.take() {
            self.summary.bytes = writer.bytes();
            if let Err(error) = writer.finish(&footer) {
                self.summary.cut = Some(error.to_string());
            }
        }
        self.summary
    }

    /// Notes what stands now at the paths that the trace names; says why not all of it.
    fn look_at_files(&mut self) -> Option<String> {
        self.pass_on();
        let again = self.again.take().filter(|_| self.writer.is_some())?;
        let path = format!("/proc/self/fd/{}", again.as_raw_fd());
        match etude_script::snapshot(Path::new(&path), etude_script::Limits::default()) {
            Ok((files, why)) => {
                for files in files.chunks(10_000) {
                    self.meta(Meta::Files { files: files.to_vec() });
                }
                why
            }
            Err(error) => Some(format!("the files that the program named were not looked at: {error}")),
        }
    }

    fn write(&mut self, what: impl FnOnce(&mut Writer) -> io::Result<()>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = what(writer)
        {
            self.summary.cut = Some(error.to_string());
            self.summary.bytes = writer.bytes();
            self.writer = None;
        }
    }

    /// Passes all that was written so far to the file.
    pub fn pass_on(&mut self) {
        self.write(Writer::flush);
    }

    pub fn meta(&mut self, meta: Meta) {
        self.write(|writer| writer.meta(&meta));
    }

    fn flush(&mut self, thread: u32) {
        let Some(known) = self.threads.get_mut(&thread) else { return };
        let (raws, held) = (std::mem::take(&mut known.events), std::mem::take(&mut known.held));
        if raws.is_empty() && held.is_empty() {
            return;
        }
        self.calibration.again();
        self.calibration.settle();
        if !held.is_empty() {
            let ns = |ticks| self.calibration.ns(ticks);
            let spans =
                held.iter().map(|(from, until)| (ns(*from), ns(*until).saturating_sub(ns(*from)))).collect();
            self.meta(Meta::Held { thread, spans });
        }
        let events: Vec<Event> = raws.into_iter().filter_map(|raw| self.event(raw)).collect();
        self.summary.events += events.len() as u64;
        if !events.is_empty() {
            self.write(|writer| writer.events(thread, &events));
        }
    }

    fn event(&self, raw: Raw) -> Option<Event> {
        let call = raw.call()?;
        let start_ns = self.calibration.ns(raw.begun);
        let mut texts = SmallVec::new();
        for (argument, bytes) in text_arguments(call).into_iter().zip(raw.texts) {
            let Some(bytes) = bytes else { continue };
            let bytes = match call.row().arguments[usize::from(argument)] {
                Kind::OffsetAt => offset_before(&bytes, raw.result)[..].into(),
                _ => bytes.into(),
            };
            texts.push(Text { argument, bytes });
        }
        let mut event = Event {
            start_ns,
            duration_ns: self.calibration.ns(raw.ended).saturating_sub(start_ns),
            call,
            result: raw.result,
            arguments: raw.arguments,
            texts,
        };
        event.normalise(PROCESSOR);
        Some(event)
    }

    pub fn calls(&mut self, thread: u32, calls: Vec<Raw>) {
        let Some(known) = self.threads.get_mut(&thread) else { return };
        for raw in &calls {
            if let Some(call) = raw.call() {
                known.counts.add(&call.counts(&raw.arguments, raw.result));
            }
        }
        known.events.extend(calls);
        let (tid, now_ns) = (known.tid, self.calibration.origin().now_ns());
        let run_delay = if now_ns - known.noted_ns >= RUN_DELAY_EVERY_NS {
            known.noted_ns = now_ns;
            run_delay(thread, tid, || now_ns)
        } else {
            None
        };
        if known.events.len() >= TOGETHER {
            self.flush(thread);
        }
        run_delay.into_iter().for_each(|meta| self.meta(meta));
    }

    pub fn interrupted(&mut self, thread: u32, call: &Raw) {
        if let Some(known) = self.threads.get_mut(&thread)
            && let Some(made) = call.call()
        {
            known.again.add(&made.counts(&call.arguments, call.result));
        }
    }

    pub fn thread(&mut self, thread: u32, process: u32, tid: Pid) {
        let (counts, again) = (Counts::default(), Counts::default());
        let noted_ns = self.calibration.origin().now_ns();
        let (events, held) = (Vec::new(), Vec::new());
        self.threads.insert(thread, Thread { process, tid, noted_ns, events, held, counts, again });
        self.summary.threads += 1;
    }

    pub fn process(&mut self) {
        self.summary.processes += 1;
    }

    pub fn patched(&mut self, process: u32, found: Vec<Patched>) {
        for each in found {
            if !each.left.is_empty() {
                self.summary.left.insert(each.path.clone(), each.left.len());
            }
            let left = each
                .left
                .into_iter()
                .map(|one| Left { offset: one.offset, symbol: None, why: why_left(&one) })
                .collect();
            let sites = each.sites as u32;
            self.meta(Meta::Image(Image { process, path: each.path, build_id: each.build_id, sites, left }));
        }
    }

    pub fn unrecorded(&mut self, process: u32, why: String) {
        self.summary.unrecorded.push(format!("process {process}: {why}"));
        self.meta(Meta::Unrecorded { process, why });
    }

    pub fn by_stops(&mut self, process: u32, why: String) {
        self.summary.by_stops.push(format!("process {process}: {why}"));
        self.meta(Meta::ByStops { process, why });
    }

    pub fn held(&mut self, thread: u32, from: u64, until: u64) {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.held.push((from, until));
            if known.held.len() >= TOGETHER {
                self.flush(thread);
            }
        }
    }

    pub fn dropped(&mut self, thread: u32, events: u64) {
        self.summary.dropped += events;
        self.meta(Meta::Dropped { thread, events });
    }

    /// A thread's program is another one from now on, whose calls are those of a new thread.
    pub fn replaced(&mut self, thread: u32) {
        self.flush(thread);
        self.threads.remove(&thread);
    }

    /// The last that is heard of a thread.
    pub fn counters(&mut self, thread: u32, kernel: Option<Counters>) {
        self.flush(thread);
        let Some(Thread { process, counts: recorded, again, .. }) = self.threads.remove(&thread) else {
            return;
        };
        if let Some(kernel) = kernel {
            self.meta(Meta::Counters {
                thread,
                kernel: named(kernel.reads, kernel.writes, kernel.read_bytes, kernel.written_bytes),
                recorded: with_again(
                    named(recorded.reads, recorded.writes, recorded.read_bytes, recorded.written_bytes),
                    again,
                ),
            });
        }
        self.summary.completeness.add(Compared { thread, process, kernel, recorded, again });
    }
}

/// Which arguments of a call say where a text stands that ends with a zero byte, a pair of descriptors, a range, the
/// address of a Unix socket, or an offset.
pub fn text_arguments(call: Call) -> SmallVec<[u8; 2]> {
    let kinds = call.row().arguments.iter().enumerate();
    kinds
        .filter(|(index, kind)| {
            matches!(kind, Kind::Path | Kind::Name | Kind::Pair | Kind::Command | Kind::OffsetAt)
                || call.address() == Some(*index)
        })
        .map(|(index, _)| index as u8)
        .collect()
}

/// The offset before a call that moved so many bytes; it was read behind it.
fn offset_before(bytes: &[u8], moved: i64) -> [u8; 8] {
    let after = bytes.try_into().map_or(0, u64::from_le_bytes);
    after.wrapping_sub(moved.max(0) as u64).to_le_bytes()
}

/// `close: no room for a jump`, where it is known which call it is.
fn why_left(left: &LeftAsItIs) -> String {
    match left.number.and_then(|number| Call::from_number(PROCESSOR, number.into())) {
        Some(call) => format!("{}: {}", call.row().name, left.why),
        None => format!("any call: {}", left.why),
    }
}

pub fn named(reads: u64, writes: u64, read_bytes: u64, written_bytes: u64) -> BTreeMap<String, u64> {
    [("syscr", reads), ("syscw", writes), ("rchar", read_bytes), ("wchar", written_bytes)]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// With what may have been counted beside, where there is any.
fn with_again(mut counts: BTreeMap<String, u64>, again: Counts) -> BTreeMap<String, u64> {
    for (name, value) in [("syscr_again", again.reads), ("syscw_again", again.writes)] {
        if value > 0 {
            counts.insert(name.to_owned(), value);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{Compared, Completeness, Counters, Counts};

    fn thread(kernel: u64, recorded: u64, again: u64, uncertain: bool) -> Compared {
        Compared {
            thread: 1,
            process: 1,
            kernel: Some(Counters { reads: kernel, ..Counters::default() }),
            recorded: Counts { reads: recorded, uncertain, ..Counts::default() },
            again: Counts { reads: again, ..Counts::default() },
        }
    }

    #[test]
    fn a_difference_from_the_kernels_counts_is_explained_or_incomplete() {
        let mut all = Completeness::default();
        for one in [thread(10, 10, 3, false), thread(14, 10, 4, false), thread(9, 10, 0, true)] {
            all.add(one);
        }
        assert_eq!((all.again, all.uncounted, all.incomplete.len()), (4, 1, 0));
        all.add(thread(20, 10, 4, false));
        assert_eq!((all.again, all.uncounted, all.incomplete.len()), (4, 1, 1));
        assert_eq!((all.kernel.reads, all.recorded.reads), (53, 40));
    }
}
