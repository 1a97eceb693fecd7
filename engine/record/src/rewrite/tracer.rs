//! The launcher's side: it stays attached for exec, fork, clone and exit, and for nothing else where code is rewritten.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::rewrite::clock::ticks;
use crate::rewrite::inside::Image;
use crate::rewrite::remote::{Pid, ptrace};
use crate::rewrite::ring::Segment;
use crate::rewrite::rings::{Counters, Rings, Sink};
use crate::rewrite::start::{ignore_interrupts, start};
use crate::rewrite::stops::{self, Begun};
use crate::rewrite::way::{Technique, Way};

pub struct Thread {
    pub group: Pid,
    pub id: u32,
    pub ring: Option<usize>,
    /// The call in which it is, where calls stop it.
    pub begun: Option<Begun>,
    /// When it began to be recorded; None where that cannot be known.
    pub before: Option<Counters>,
    /// It may not read the clock, and is not recorded.
    pub quiet: bool,
}

pub struct Process {
    pub id: u32,
    pub image: Option<Image>,
}

/// One recording. Who belongs to it: `family.rs`; what is done to the code: `inside.rs`.
pub struct Tracer<S> {
    pub segment: Arc<Segment>,
    rings: Arc<Mutex<Rings<S>>>,
    pub way: Way,
    pub threads: HashMap<Pid, Thread>,
    pub processes: HashMap<Pid, Process>,
    /// Children that stopped before their parent told of them.
    pub early: Vec<Pid>,
    pub next: (u32, u32),
    pub first: Pid,
    pub status: i32,
}

impl<S: Sink> Tracer<S> {
    pub fn new(segment: Arc<Segment>, rings: Arc<Mutex<Rings<S>>>, way: Way) -> Tracer<S> {
        Tracer {
            segment,
            rings,
            way,
            threads: HashMap::new(),
            processes: HashMap::new(),
            early: Vec::new(),
            next: (0, 0),
            first: 0,
            status: 0,
        }
    }

    pub fn rings(&self) -> MutexGuard<'_, Rings<S>> {
        self.rings.lock().expect("no thread panics")
    }

    /// Starts the program and follows it, and all that it starts, to their ends; the first one's wait status.
    pub fn run(mut self, argv: &[CString]) -> io::Result<i32> {
        let recorded = |number: &u32| (self.way.texts)(*number).is_some();
        let stops = self.way.technique == Technique::Ptrace;
        let filter = if stops { stops::filter((0..512).filter(recorded)) } else { Vec::new() };
        self.first = start(argv, &filter)?;
        ignore_interrupts();
        self.add_process(self.first, None);
        self.add_thread(self.first, self.first);
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
            if pid < 0 {
                match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => continue,
                    _ => return Ok(self.status),
                }
            }
            self.changed(pid, status);
        }
    }

    /// Something has become of a thread.
    fn changed(&mut self, pid: Pid, status: i32) {
        if !libc::WIFSTOPPED(status) {
            return self.gone(pid, status);
        }
        if let Err(error) = self.stopped(pid, status) {
            // Killed meanwhile: its end follows.
            if error.raw_os_error() != Some(libc::ESRCH) {
                self.lost(pid, &error.to_string());
            }
            let _ = ptrace(libc::PTRACE_CONT, pid, 0, 0);
        }
    }

    fn stopped(&mut self, pid: Pid, status: i32) -> io::Result<()> {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => self.executed(pid)?,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.cloned(pid)?
            }
            libc::PTRACE_EVENT_EXIT => self.exiting(pid),
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => {
                if !self.threads.contains_key(&pid) {
                    self.early.push(pid);
                    return Ok(());
                }
                self.adopt(pid)?;
            }
            libc::PTRACE_EVENT_SECCOMP => {
                self.entering(pid)?;
                return ptrace(libc::PTRACE_SYSCALL, pid, 0, 0).map(drop);
            }
            libc::PTRACE_EVENT_STOP => return ptrace(libc::PTRACE_LISTEN, pid, 0, 0).map(drop),
            _ if signal == libc::SIGTRAP && self.trapped(pid)? => {}
            _ if signal == libc::SIGTRAP | 0x80 => self.leaving(pid)?,
            _ => {
                self.signalled(pid);
                return ptrace(libc::PTRACE_CONT, pid, 0, signal as usize).map(drop);
            }
        }
        ptrace(libc::PTRACE_CONT, pid, 0, 0).map(drop)
    }

    fn entering(&mut self, tid: Pid) -> io::Result<()> {
        let clock = self.way.clock;
        let begun = stops::begun(tid, self.way.texts, || ticks(clock))?;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.begun = begun;
        }
        Ok(())
    }

    fn leaving(&mut self, tid: Pid) -> io::Result<()> {
        let now = ticks(self.way.clock);
        if let Some(thread) = self.threads.get_mut(&tid)
            && let Some(begun) = thread.begun.take()
        {
            let (id, call) = (thread.id, stops::ended(tid, begun, now)?);
            self.rings().sink.calls(id, &mut vec![call]);
        }
        Ok(())
    }

    pub fn exiting(&mut self, tid: Pid) {
        let Some(Thread { group, id, before, .. }) = self.threads.get(&tid) else { return };
        let (id, since) =
            (*id, Counters::of(*group, tid).zip(*before).map(|(now, before)| now.since(before)));
        let last = self.last_call(tid);
        self.release(tid);
        let mut rings = self.rings();
        if let Some(last) = last {
            rings.sink.calls(id, &mut vec![last]);
        }
        rings.sink.counters(id, since);
    }
}
