//! From what bpftrace says to the file of a trace.

use std::collections::HashMap;
use std::{fs, io};

use etude_calls::{Call, Counts, Kind};
use etude_trace::{Event, Footer, Meta, Text, Writer};

use crate::PROCESSOR;
use crate::ebpf::line::{Line, What};
use crate::ebpf::order::{Order, Said, Texts};
use crate::ebpf::script::STRING;
use crate::kernel_counts::Counters;
use crate::queue::words;
use crate::rewrite::ptrace_stops::RESTARTS;
use crate::rewrite::remote::Pid;
use crate::sink::{Compared, Summary, named};

/// Events of one thread that are written together.
const TOGETHER: usize = 8192;
const EFAULT: i64 = -14;
const ENOSYS: i64 = -38;

struct Thread {
    id: u32,
    process: u32,
    events: Vec<Event>,
    recorded: Counts,
    /// The kernel's counts when it was first seen, or had executed its program.
    before: Option<Counters>,
    lost: u64,
}

/// Writes the trace.
pub struct Store {
    writer: Option<Writer>,
    /// When the trace begins, on the clock of what is read.
    zero: u64,
    order: Order,
    threads: HashMap<Pid, Thread>,
    /// Numbers of processes; those whose beginning was not read yet are kept apart.
    processes: HashMap<Pid, (u32, bool)>,
    /// What each process executes: a child has that of its parent until it executes something itself.
    programs: HashMap<Pid, (String, Vec<String>)>,
    next: (u32, u32),
    /// Threads that were started, less those that ended: the two may be read in any order.
    living: HashMap<Pid, i32>,
    /// Numbers of processes that ended: of their children may be read later.
    ended: HashMap<Pid, u32>,
    summary: Summary,
    /// Lines that were read; how many there were, and how many bpftrace says to have lost.
    read: u64,
    total: Option<u64>,
    lost: u64,
    lost_texts: u64,
    cut_texts: u64,
}

impl Store {
    pub fn new(writer: Writer, zero: u64) -> Store {
        Store {
            writer: Some(writer),
            zero,
            order: Order::default(),
            threads: HashMap::new(),
            processes: HashMap::new(),
            programs: HashMap::new(),
            next: (0, 0),
            living: HashMap::new(),
            ended: HashMap::new(),
            summary: Summary::default(),
            read: 0,
            total: None,
            lost: 0,
            lost_texts: 0,
            cut_texts: 0,
        }
    }

    /// One more thread of this number, or one less: what is said of two threads comes in any order.
    pub fn lives(&mut self, tid: Pid, by: i32) {
        let count = self.living.entry(tid).or_default();
        *count += by;
        if *count == 0 {
            self.living.remove(&tid);
        }
    }

    /// Takes one.
    pub fn line(&mut self, line: Line) {
        match line {
            Line::Text { tid, place, argument, bytes } => self.order.text(tid, place, argument, bytes),
            Line::Said { tid, place, pid, ns, what } => {
                self.read += 1;
                self.order.said(tid, place, pid, ns, what);
                self.hand_on(tid, false);
            }
            Line::Lost(many) => self.lost += many,
            Line::Total(many) => self.total = Some(many),
            Line::Begin { .. } | Line::Other => {}
        }
    }

    /// Whether the end of this process was read.
    pub fn has_ended(&self, pid: Pid) -> bool {
        self.ended.contains_key(&pid)
    }

    /// Threads that have not ended, as far as is known.
    pub fn living(&self) -> impl Iterator<Item = Pid> {
        self.living.iter().filter(|(_, count)| **count > 0).map(|(tid, _)| *tid)
    }

    fn hand_on(&mut self, tid: Pid, last: bool) {
        while let Some((missing, said)) = self.order.next(tid, last) {
            let (pid, ns) = (said.pid, said.ns);
            if missing > 0 {
                self.thread(tid, pid, ns, None, None).lost += missing;
            }
            self.take(tid, said);
        }
    }

    fn take(&mut self, tid: Pid, said: Said) {
        let Said { pid, ns, what, texts } = said;
        match what {
            What::First { born, parent, counted } => {
                let begun = if born > 0 { born } else { ns };
                let parent = (born > 0 && parent != pid).then_some(parent);
                self.thread(tid, pid, begun, parent, Some(counted));
                if born == 0 {
                    self.lives(tid, 1); // it was there before: nobody has said that it was started
                }
            }
            What::Starts { child } => self.lives(child, 1),
            What::Call { ended, number, result, arguments } => {
                let result = if RESTARTS.contains(&result) { -i64::from(libc::EINTR) } else { result };
                if let Some(call) = Call::from_number(PROCESSOR, number.into()) {
                    let event = self.event(call, (ns, ended), arguments, result, texts);
                    let thread = self.thread(tid, pid, ns, None, None);
                    thread.recorded.add(&call.counts(&arguments, result));
                    thread.events.push(event);
                    if thread.events.len() >= TOGETHER {
                        self.flush(tid);
                    }
                }
            }
            What::Executed { before, counted, file } => self.executed(tid, pid, ns, before, counted, &file),
            What::Ends { counted, status } => self.ends(tid, pid, ns, counted, status),
        }
    }

    fn event(
        &mut self,
        call: Call,
        (begun, ended): (u64, u64),
        arguments: [u64; 6],
        result: i64,
        texts: Texts,
    ) -> Event {
        let unread = result == EFAULT || result == ENOSYS; // as in the hook: then texts may be anything
        let names =
            call.row().arguments.iter().filter(|kind| matches!(kind, Kind::Path | Kind::Name)).count();
        self.lost_texts += u64::from(!unread && texts.len() < names);
        let is_cut = |bytes: &Vec<u8>| bytes.len() == STRING - 1;
        self.cut_texts += texts.iter().filter(|(_, bytes)| !unread && is_cut(bytes)).count() as u64;
        let texts = texts.into_iter().filter(|_| !unread);
        let mut event = Event {
            start_ns: begun.saturating_sub(self.zero),
            duration_ns: ended.saturating_sub(begun),
            call,
            result,
            arguments,
            texts: texts.map(|(argument, bytes)| Text { argument, bytes: bytes.into() }).collect(),
        };
        event.normalise(PROCESSOR);
        event
    }

    fn executed(&mut self, tid: Pid, pid: Pid, ns: u64, before: Pid, counted: Counters, file: &[u8]) {
        if before != tid {
            self.hand_on(before, true);
            self.order.forget(before);
            self.forget(before);
            self.lives(before, -1);
            self.lives(tid, 1);
        }
        self.forget(tid);
        let process = self.process(pid, ns, None);
        self.thread(tid, pid, ns, None, Some(counted));
        let at_ns = ns.saturating_sub(self.zero);
        let executable = String::from_utf8_lossy(file).into_owned();
        let argv = arguments(pid, &executable);
        self.programs.insert(pid, (executable.clone(), argv.clone()));
        self.meta(&Meta::Exec { process, executable, argv, at_ns });
    }

    fn ends(&mut self, tid: Pid, pid: Pid, ns: u64, counted: Counters, status: Option<i32>) {
        // It may never have made a call.
        let known = self.thread(tid, pid, ns, None, None);
        let (id, process, recorded) = (known.id, known.process, known.recorded);
        let kernel = known.before.map(|before| counted.since(before));
        if let Some(kernel) = kernel {
            self.flush(tid);
            self.meta(&Meta::Counters {
                thread: id,
                kernel: named(kernel.reads, kernel.writes, kernel.read_bytes, kernel.written_bytes),
                recorded: named(recorded.reads, recorded.writes, recorded.read_bytes, recorded.written_bytes),
            });
        }
        self.compare(id, process, kernel, recorded);
        self.forget(tid);
        self.lives(tid, -1);
        if let Some(status) = status {
            let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
            let at_ns = ns.saturating_sub(self.zero);
            self.meta(&Meta::Ended { process, status: exited, signal, at_ns });
            self.processes.remove(&pid);
            self.ended.insert(pid, process);
        }
    }

    fn compare(&mut self, thread: u32, process: u32, kernel: Option<Counters>, recorded: Counts) {
        let again = Counts::default();
        self.summary.completeness.add(Compared { thread, process, kernel, recorded, again });
    }

    /// A thread's calls are all there: they are written.
    fn forget(&mut self, tid: Pid) {
        self.flush(tid);
        if let Some(thread) = self.threads.remove(&tid)
            && thread.lost > 0
        {
            self.summary.dropped += thread.lost;
            self.meta(&Meta::Dropped { thread: thread.id, events: thread.lost });
        }
    }

    fn thread(
        &mut self,
        tid: Pid,
        pid: Pid,
        ns: u64,
        parent: Option<Pid>,
        before: Option<Counters>,
    ) -> &mut Thread {
        if !self.threads.contains_key(&tid) {
            let process = self.process(pid, ns, parent);
            let id = self.next.1;
            self.next.1 += 1;
            let at_ns = ns.saturating_sub(self.zero);
            self.meta(&Meta::Thread { thread: id, process, tid: tid as u32, at_ns });
            let (events, recorded) = (Vec::new(), Counts::default());
            self.threads.insert(tid, Thread { id, process, events, recorded, before, lost: 0 });
        }
        self.threads.get_mut(&tid).expect("it was just added")
    }

    fn number(&mut self, pid: Pid) -> &mut (u32, bool) {
        let next = &mut self.next.0;
        self.processes.entry(pid).or_insert_with(|| {
            *next += 1;
            (*next - 1, false)
        })
    }

    fn process(&mut self, pid: Pid, ns: u64, parent: Option<Pid>) -> u32 {
        let (process, told) = *self.number(pid);
        if !told {
            self.number(pid).1 = true;
            self.summary.processes += 1;
            let at_ns = ns.saturating_sub(self.zero);
            let link = |name| fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let cwd = link("cwd").to_string_lossy().into_owned();
            let (executable, argv) = match parent.map(|parent| self.programs.get(&parent)) {
                Some(program) => program.cloned().unwrap_or_default(),
                None => (link("exe").to_string_lossy().into_owned(), words(pid)),
            };
            let parent = parent.map(|parent| match self.ended.get(&parent) {
                Some(number) if !self.processes.contains_key(&parent) => *number,
                _ => self.number(parent).0,
            });
            self.programs.insert(pid, (executable.clone(), argv.clone()));
            self.meta(&Meta::Process { process, parent, pid: pid as u32, executable, argv, cwd, at_ns });
        }
        process
    }

    fn flush(&mut self, tid: Pid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (id, events) = (thread.id, std::mem::take(&mut thread.events));
        if !events.is_empty() {
            self.summary.events += events.len() as u64;
            self.write(|writer| writer.events(id, &events));
        }
    }

    fn meta(&mut self, meta: &Meta) {
        self.write(|writer| writer.meta(meta));
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

    /// Nothing more will be read. `now` is on the clock of what was read; `cut` says why it is over too early.
    pub fn finish(mut self, now: u64, cut: Option<String>) -> Summary {
        for tid in self.order.waiting() {
            self.hand_on(tid, true);
        }
        let mut left: Vec<(u32, Pid)> = self.threads.iter().map(|(tid, thread)| (thread.id, *tid)).collect();
        left.sort_unstable();
        for (_, tid) in left {
            let thread = &self.threads[&tid];
            let (thread, process, recorded) = (thread.id, thread.process, thread.recorded);
            self.compare(thread, process, None, recorded);
            self.forget(tid);
        }
        // Of those behind a thread's last line that was read nothing is known but how many there were.
        let lost = self.total.map_or(self.lost, |total| total.saturating_sub(self.read));
        self.summary.dropped = self.summary.dropped.max(lost);
        let said = [
            (lost, "lines lost by bpftrace, its buffers being full: calls, beginnings or ends"),
            (self.lost_texts, "calls of which a path is not known: bpftrace lost it"),
            (self.cut_texts, "paths of 191 bytes or more: bpftrace keeps no more than 191 of each"),
        ];
        let notes: Vec<String> =
            said.iter().filter(|(many, _)| *many > 0).map(|(many, what)| format!("{many} {what}")).collect();
        self.summary.unrecorded.extend(notes.iter().cloned());
        self.summary.unrecorded.extend(cut);
        let footer = Footer {
            processes: self.summary.processes,
            threads: self.next.1,
            dropped: self.summary.dropped,
            end_ns: now.saturating_sub(self.zero),
            recorder_cpu_s: Some(etude_clock::seconds(etude_clock::own_cpu_ns())),
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
}

/// The arguments with which a process has executed this file; none if it has executed another one since, or is gone,
/// or the file is a script.
fn arguments(pid: Pid, file: &str) -> Vec<String> {
    let words = words(pid);
    let at = |name: &str| std::path::PathBuf::from(format!("/proc/{pid}/{name}"));
    let (runs, asked) = (fs::canonicalize(at("exe")), fs::canonicalize(at("cwd").join(file)));
    if runs.ok().is_some_and(|runs| asked.is_ok_and(|asked| asked == runs)) { words } else { Vec::new() }
}
