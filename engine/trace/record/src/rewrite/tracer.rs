//! The launcher's side: it stays attached for exec, fork, clone and exit, and for nothing else where code is rewritten.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use etude_trace::Meta;

use crate::kernel_counts::{self, Counters};
use crate::queue::{DRAIN_INTERVAL, Rings};
use crate::rewrite::clock::ticks;
use crate::rewrite::exec_start::{ignore_interrupts, pass_on_endings, start};
#[cfg(target_arch = "x86_64")]
use crate::rewrite::image::Image;
use crate::rewrite::method::{Technique, Way};
use crate::rewrite::ptrace_stops::{self, Begun};
use crate::rewrite::queues::Queues;
use crate::rewrite::remote::{Pid, ptrace};
use crate::rewrite::ring::{Raw, Segment};
use crate::rewrite::signals::{Next, Signals};
use crate::urgent::Urgency;

/// No code is changed on this processor.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone)]
pub enum Image {}

pub struct Thread {
    pub group: Pid,
    pub id: u32,
    pub ring: Option<usize>,
    /// The call in which it is, where calls stop it.
    pub begun: Option<Begun>,
    /// Calls that it makes at places which stop it: more than one where a signal handler makes another.
    #[cfg(target_arch = "x86_64")]
    pub slow: Vec<crate::rewrite::breakpoints::SlotCall>,
    /// When it began to be recorded; None where that cannot be known.
    pub before: Option<Counters>,
    /// It may not read the clock, and is not recorded.
    pub quiet: bool,
    /// Since when it has stood still, in ticks; None where it runs, or that is of no interest.
    pub stopped: Option<u64>,
    /// When the last call ended at which we looked, in ticks; until it went on behind it we held it.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
    pub looked: Option<u64>,
}

pub struct Process {
    pub id: u32,
    pub image: Option<Image>,
    /// Its code could not be rewritten: each call stops it.
    pub by_stops: bool,
}

/// A thread that stands still until it is known whose it is.
pub struct Early {
    pub tid: Pid,
    /// Its process, or the parent of that when it stopped.
    pub parent: Pid,
}

/// One recording. Who belongs to it: `process_tree.rs`; what is done to the code: `image_patching.rs`.
pub struct Tracer {
    pub segment: Arc<Segment>,
    rings: Arc<Mutex<Rings>>,
    pub way: Way,
    pub threads: HashMap<Pid, Thread>,
    pub processes: HashMap<Pid, Process>,
    pub queues: Queues,
    /// Children that stopped before their parent told of them.
    pub early: Vec<Early>,
    /// The process that ended last: a child of it may not have stopped yet.
    pub ended: Option<(Pid, Process)>,
    pub next: (u32, u32),
    pub first: Pid,
    pub status: i32,
    /// No filter says which calls stop: all do.
    pub every_call: bool,
    /// Threads that were seized and have not stopped yet.
    pub unseen: Vec<Pid>,
    /// Each thread is let go when it stops.
    pub leaving: bool,
}

/// How it ended.
pub struct Ending {
    /// Of the first process, as waitpid tells; 0 if it runs on.
    pub status: i32,
    /// Processes that were let go.
    pub run_on: usize,
}

impl Tracer {
    pub fn new(segment: Arc<Segment>, rings: Arc<Mutex<Rings>>, way: Way) -> Tracer {
        Tracer {
            segment,
            rings,
            way,
            threads: HashMap::new(),
            processes: HashMap::new(),
            queues: Queues::default(),
            early: Vec::new(),
            ended: None,
            next: (0, 0),
            first: 0,
            status: 0,
            every_call: false,
            unseen: Vec::new(),
            leaving: false,
        }
    }

    /// The process of a thread.
    pub fn process_of(&self, tid: Pid) -> Option<&Process> {
        self.processes.get(&self.threads.get(&tid)?.group)
    }

    pub fn rings(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().expect("no thread panics")
    }

    /// Starts the program and follows it, and all that it starts, to their ends; the first one's wait status.
    pub fn run(mut self, argv: &[CString]) -> io::Result<Ending> {
        let recorded = |number: &u32| (self.way.texts)(*number).is_some();
        let stops = self.way.technique == Technique::Ptrace;
        let filter = if stops { ptrace_stops::filter((0..512).filter(recorded)) } else { Vec::new() };
        self.first = start(argv, &filter)?;
        ignore_interrupts();
        pass_on_endings(self.first);
        Urgency::of_this_thread(2).raise(); // what it starts has its own priority
        self.add_process(self.first, None);
        self.add_thread(self.first, self.first);
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
            if pid < 0 {
                match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => continue,
                    _ => return Ok(Ending { status: self.status, run_on: 0 }),
                }
            }
            self.changed(pid, status);
        }
    }

    /// Follows a process that runs already, and all that it starts, to their ends or until a signal asks to end.
    pub fn run_attached(mut self, pid: Pid, signals: &Signals) -> io::Result<Ending> {
        self.attach(pid)?;
        let mut run_on = 0;
        while let Some(next) = signals.next() {
            match next {
                Next::Changed(tid, status) => self.changed(tid, status),
                Next::Asked => {
                    run_on = self.let_go(signals);
                    break;
                }
            }
        }
        Ok(Ending { status: self.status, run_on })
    }

    /// Something has become of a thread.
    pub fn changed(&mut self, pid: Pid, status: i32) {
        while !self.rings().queue.room() {
            std::thread::sleep(DRAIN_INTERVAL);
        }
        self.see(pid);
        if !libc::WIFSTOPPED(status) {
            return self.gone(pid, status);
        }
        if let Err(error) = self.stopped(pid, status) {
            // Killed meanwhile: its end follows.
            if error.raw_os_error() != Some(libc::ESRCH) {
                self.lost(pid, &error.to_string());
            }
            let _ = self.go_on(pid, 0);
        }
    }

    /// Lets a stopped thread go on to its next stop.
    pub fn go_on(&mut self, pid: Pid, signal: i32) -> io::Result<()> {
        if let Some(thread) = self.threads.get_mut(&pid)
            && let Some(stopped) = thread.stopped.take()
        {
            let (id, now) = (thread.id, ticks(self.way.clock));
            self.rings().queue.tell(move |file| file.held(id, stopped, now));
        }
        if self.leaving {
            ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0)?; // every other stop takes an earlier one back
        }
        let stops = self.every_call || self.process_of(pid).is_some_and(|process| process.by_stops);
        let request = if stops { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
        ptrace(request, pid, 0, signal as usize).map(drop)
    }

    fn stopped(&mut self, pid: Pid, status: i32) -> io::Result<()> {
        let signal = libc::WSTOPSIG(status);
        if signal != libc::SIGTRAP | 0x80
            && let Some(thread) = self.threads.get_mut(&pid)
        {
            let now = ticks(self.way.clock); // stops of calls are within these
            thread.stopped.get_or_insert(now);
        }
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => self.executed(pid)?,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.cloned(pid)?
            }
            libc::PTRACE_EVENT_EXIT => {
                self.untold(pid);
                self.exiting(pid);
            }
            libc::PTRACE_EVENT_STOP if self.leaving && self.threads.contains_key(&pid) => {
                return self.leave(pid);
            }
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => {
                if !self.threads.contains_key(&pid) {
                    return self.early(pid);
                }
                self.adopt(pid)?;
            }
            libc::PTRACE_EVENT_SECCOMP => {
                self.entering(pid)?;
                self.runs(pid);
                return ptrace(libc::PTRACE_SYSCALL, pid, 0, 0).map(drop);
            }
            libc::PTRACE_EVENT_STOP => {
                self.runs(pid); // when it goes on is not ours to say
                return ptrace(libc::PTRACE_LISTEN, pid, 0, 0).map(drop);
            }
            _ if signal == libc::SIGTRAP && self.trapped(pid)? => {}
            _ if signal == libc::SIGTRAP | 0x80 => {
                if ptrace_stops::is_before(pid)? {
                    self.entering(pid)?;
                } else {
                    self.behind(pid)?;
                }
            }
            _ => {
                self.signalled(pid);
                return self.go_on(pid, signal);
            }
        }
        self.go_on(pid, 0)
    }

    /// It does not stand still, or for another reason than ours.
    fn runs(&mut self, tid: Pid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.stopped = None;
        }
    }

    fn entering(&mut self, tid: Pid) -> io::Result<()> {
        let clock = self.way.clock;
        let mut begun = ptrace_stops::begun(tid, self.way.texts, || ticks(clock))?;
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        let told = begun.as_mut().map_or(Vec::new(), |begun| self.queues.begins(thread.group, begun));
        thread.begun = begun;
        self.tell(tid, told);
        Ok(())
    }

    fn behind(&mut self, tid: Pid) -> io::Result<()> {
        let now = ticks(self.way.clock);
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        let Some(begun) = thread.begun.take() else { return Ok(()) };
        let (id, group, requests) = (thread.id, thread.group, begun.requests.clone());
        let (call, again) = ptrace_stops::ended(tid, begun, now)?;
        if self.leaving && again {
            self.rings().queue.tell(move |file| file.interrupted(id, &call)); // by us: it is made again when we are gone
        } else {
            let calls = self.queues.ended(group, tid, call, &requests);
            self.tell(tid, calls);
        }
        Ok(())
    }

    /// Calls of a stopped thread that did not come through its ring.
    pub fn tell(&self, tid: Pid, calls: Vec<Raw>) {
        if let Some(Thread { id, ring, .. }) = self.threads.get(&tid) {
            self.rings().tell(&self.segment, *ring, *id, calls);
        }
    }

    /// Notes how long a thread has waited for a CPU so far.
    pub fn note_run_delay(&self, tid: Pid) {
        let Some(Thread { id, .. }) = self.threads.get(&tid) else { return };
        let mut rings = self.rings();
        let noted = kernel_counts::run_delay(*id, tid, || rings.queue.now_ns());
        noted.into_iter().for_each(|meta| rings.queue.meta(meta));
    }

    /// Notes the scheduling class of the first process.
    pub fn note_class(&self, pid: Pid) {
        if let Some(Process { id, .. }) = self.processes.get(&pid)
            && pid == self.first
            && let Some(class) = kernel_counts::class(pid)
        {
            self.rings().queue.meta(Meta::Scheduling { process: *id, class });
        }
    }

    pub fn exiting(&mut self, tid: Pid) {
        let Some(Thread { group, id, before, .. }) = self.threads.get(&tid) else { return };
        let (id, group) = (*id, *group);
        let since = Counters::of(group, tid).zip(*before).map(|(now, before)| now.since(before));
        self.note_run_delay(tid);
        let mut last: Vec<Raw> = self.last_call(tid).into_iter().collect();
        self.release(tid);
        let alone = !self.threads.values().any(|thread| thread.group == group);
        last.extend(self.queues.exits(group, tid, alone, ticks(self.way.clock)));
        let mut rings = self.rings();
        rings.tell(&self.segment, None, id, last);
        rings.queue.tell(move |file| file.counters(id, since));
    }
}
