//! The launcher's side: it stays attached for exec, fork, clone and exit, and for nothing else.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex};

use crate::rewrite::clock::ticks;
use crate::rewrite::hook::Entry;
use crate::rewrite::image::{Image, Patched, Way};
use crate::rewrite::remote::{Pid, ptrace, registers, set_registers};
use crate::rewrite::ring::Segment;
use crate::rewrite::rings::{Counters, Rings, Sink};
use crate::rewrite::start::{ignore_interrupts, start};
use crate::rewrite::stops::{self, Begun, RESTARTS};

struct Thread {
    group: Pid,
    id: u32,
    ring: Option<usize>,
    /// The call in which it is, where calls stop it.
    begun: Option<Begun>,
    /// When it began to be recorded; None where that cannot be known.
    before: Option<Counters>,
    /// It may not read the clock, and is not recorded.
    quiet: bool,
}

struct Process {
    id: u32,
    image: Option<Image>,
}

/// One recording.
pub struct Tracer<S> {
    segment: Arc<Segment>,
    rings: Arc<Mutex<Rings<S>>>,
    way: Way,
    drop_when_full: bool,
    threads: HashMap<Pid, Thread>,
    processes: HashMap<Pid, Process>,
    /// Children that stopped before their parent told of them.
    early: Vec<Pid>,
    next: (u32, u32),
    first: Pid,
    status: i32,
}

impl<S: Sink> Tracer<S> {
    pub fn new(
        segment: Arc<Segment>,
        rings: Arc<Mutex<Rings<S>>>,
        way: Way,
        drop_when_full: bool,
    ) -> Tracer<S> {
        Tracer {
            segment,
            rings,
            way,
            drop_when_full,
            threads: HashMap::new(),
            processes: HashMap::new(),
            early: Vec::new(),
            next: (0, 0),
            first: 0,
            status: 0,
        }
    }

    /// Starts the program and follows it, and all that it starts, to their ends; the first one's wait status.
    pub fn run(mut self, argv: &[CString]) -> io::Result<i32> {
        let wanted = |number: &u32| !matches!((self.way.entry)(*number), Entry::Raw | Entry::Quiet);
        let filter = if self.way.stops { stops::filter((0..512).filter(wanted)) } else { Vec::new() };
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
            if libc::WIFSTOPPED(status) {
                match self.stopped(pid, status) {
                    Ok(()) => {}
                    // Killed meanwhile: its end follows.
                    Err(error) => {
                        if error.raw_os_error() != Some(libc::ESRCH) {
                            self.lost(pid, &error.to_string());
                        }
                        let _ = ptrace(libc::PTRACE_CONT, pid, 0, 0);
                    }
                }
            } else {
                self.gone(pid, status);
            }
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
            _ if signal == libc::SIGTRAP && self.mapped(pid)? => {}
            _ if signal == libc::SIGTRAP | 0x80 => self.leaving(pid)?,
            _ => {
                self.signalled(pid);
                return ptrace(libc::PTRACE_CONT, pid, 0, signal as usize).map(drop);
            }
        }
        ptrace(libc::PTRACE_CONT, pid, 0, 0).map(drop)
    }

    fn executed(&mut self, pid: Pid) -> io::Result<()> {
        let gone: Vec<Pid> =
            self.threads.iter().filter(|(_, t)| t.group == pid).map(|(tid, _)| *tid).collect();
        for tid in gone {
            let id = self.threads[&tid].id;
            self.release(tid);
            self.rings.lock().expect("no thread panics").sink.replaced(id);
        }
        self.add_thread(pid, pid);
        // The exec still has to return; its result would take the place of that of our first call.
        ptrace(libc::PTRACE_SYSCALL, pid, 0, 0)?;
        let mut status = 0;
        // SAFETY: `status` is a valid place.
        if unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } != pid || !libc::WIFSTOPPED(status) {
            self.gone(pid, status);
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if status >> 16 == libc::PTRACE_EVENT_EXIT {
            self.exiting(pid);
            return Ok(());
        }
        let found = if self.way.stops { Ok((None, Vec::new())) } else { self.inject(pid) };
        let counters = Counters::of(pid, pid);
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.before = counters;
        }
        let mut rings = self.rings.lock().expect("no thread panics");
        let process = self.processes.get_mut(&pid).expect("it was started");
        rings.sink.executed(process.id, pid);
        match found {
            Ok((image, found)) => {
                process.image = image;
                rings.sink.patched(process.id, found);
            }
            Err(error) => {
                process.image = None;
                rings.sink.unrecorded(process.id, &error.to_string());
            }
        }
        Ok(())
    }

    fn inject(&mut self, pid: Pid) -> io::Result<(Option<Image>, Vec<Patched>)> {
        if registers(pid)?.cs != 0x33 {
            return Err(io::Error::other("it is not a 64-bit program"));
        }
        let ring = self.ring(pid).ok_or_else(|| io::Error::other("all rings are in use"))?;
        Image::inject(pid, &self.segment, ring, &self.way).map(|(image, found)| (Some(image), found))
    }

    fn ring(&mut self, tid: Pid) -> Option<usize> {
        let thread = self.threads.get_mut(&tid)?;
        let taken =
            self.rings.lock().expect("no thread panics").take(&self.segment, thread.id, self.drop_when_full);
        thread.ring = taken;
        taken
    }

    fn cloned(&mut self, pid: Pid) -> io::Result<()> {
        let mut child = 0u64;
        ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut child as usize)?;
        let child = child as Pid;
        let parent = self.threads.get(&pid).map_or(pid, |thread| thread.group);
        let group = group_of(child).unwrap_or(child);
        if group != parent {
            let image = self.processes.get(&parent).and_then(|process| process.image.clone());
            self.add_process(group, Some(parent));
            let process = self.processes.get_mut(&group).expect("just added");
            process.image = image;
        }
        self.add_thread(child, group);
        // What it has forbidden itself holds for its children, too.
        let quiet = self.threads.get(&pid).is_some_and(|thread| self.quiet(thread));
        self.threads.get_mut(&child).expect("just added").quiet = quiet;
        if let Some(place) = self.early.iter().position(|early| *early == child) {
            self.early.swap_remove(place);
            self.adopt(child)?;
            ptrace(libc::PTRACE_CONT, child, 0, 0)?;
        }
        Ok(())
    }

    /// Gives a new thread a ring of its own: until now it has its parent's.
    fn adopt(&mut self, tid: Pid) -> io::Result<()> {
        let Some(thread) = self.threads.get(&tid) else { return Ok(()) };
        let (group, has, quiet) = (thread.group, thread.ring.is_some(), thread.quiet);
        let Some(image) = self.processes.get(&group).and_then(|process| process.image.clone()) else {
            return Ok(());
        };
        if has {
            return Ok(());
        }
        let mut regs = registers(tid)?;
        if !image.ours(regs.gs_base) {
            self.lost(tid, "a thread of it: it uses %gs itself");
            return Ok(());
        }
        let ring = if quiet { None } else { self.ring(tid) };
        if ring.is_none() {
            self.lost(
                tid,
                if quiet {
                    "a thread of it: it may not read the clock"
                } else {
                    "a thread of it: all rings are in use"
                },
            );
        }
        regs.gs_base = ring.map_or(image.nowhere(), |ring| image.gs(ring));
        set_registers(tid, &regs)
    }

    /// Whether it stopped because it mapped code, which is then patched.
    fn mapped(&mut self, tid: Pid) -> io::Result<bool> {
        let Some(group) = self.threads.get(&tid).map(|thread| thread.group) else { return Ok(false) };
        let regs = registers(tid)?;
        let Some(process) = self.processes.get_mut(&group) else { return Ok(false) };
        let Some(image) = process.image.as_mut().filter(|image| image.tells(regs.rip)) else {
            return Ok(false);
        };
        if let Some((low, high)) = image.mapped_at(tid, &regs) {
            image.forget(low, high);
        }
        let found = image.catch_up(tid, &self.way);
        let mut rings = self.rings.lock().expect("no thread panics");
        match found {
            Ok(found) => rings.sink.patched(process.id, found),
            Err(error) => rings.sink.unrecorded(process.id, &format!("code that it mapped: {error}")),
        }
        Ok(true)
    }

    fn entering(&mut self, tid: Pid) -> io::Result<()> {
        let clock = self.way.clock;
        let begun = stops::begun(tid, self.way.texts, || ticks(clock))?;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.begun = Some(begun);
        }
        Ok(())
    }

    fn leaving(&mut self, tid: Pid) -> io::Result<()> {
        let now = ticks(self.way.clock);
        if let Some(thread) = self.threads.get_mut(&tid)
            && let Some(begun) = thread.begun.take()
        {
            let call = stops::ended(tid, begun, now)?;
            self.rings.lock().expect("no thread panics").sink.calls(thread.id, vec![call]);
        }
        Ok(())
    }

    /// A signal comes; the kernel may then make a call again by itself, which counts each time.
    fn signalled(&mut self, tid: Pid) {
        let Ok(regs) = registers(tid) else { return };
        let Some(Thread { group, id, .. }) = self.threads.get(&tid) else { return };
        let image = self.processes.get(group).and_then(|process| process.image.as_ref());
        if RESTARTS.contains(&(regs.rax as i64))
            && let Some(call) = image.and_then(|image| image.within(tid, &regs, 0))
        {
            self.rings.lock().expect("no thread panics").sink.interrupted(*id, &call);
        }
    }

    fn exiting(&mut self, tid: Pid) {
        let Some(Thread { group, id, before, ring, .. }) = self.threads.get(&tid) else { return };
        let image = self.processes.get(group).and_then(|process| process.image.as_ref());
        let (image, regs) = (image.filter(|_| ring.is_some()), registers(tid).ok());
        let here = image.zip(regs);
        let own_gs = here.is_some_and(|(image, regs)| !image.ours(regs.gs_base));
        let last = here.and_then(|(image, regs)| image.within(tid, &regs, ticks(self.way.clock)));
        let (id, since) =
            (*id, Counters::of(*group, tid).zip(*before).map(|(now, before)| now.since(before)));
        if own_gs {
            self.lost(tid, "a thread of it, from when it used %gs itself");
        }
        self.release(tid);
        let mut rings = self.rings.lock().expect("no thread panics");
        if let Some(last) = last {
            rings.sink.calls(id, vec![last]);
        }
        rings.sink.counters(id, since);
    }

    fn gone(&mut self, tid: Pid, status: i32) {
        self.release(tid);
        if tid == self.first {
            self.status = status;
        }
        if let Some(process) = self.processes.remove(&tid) {
            self.rings.lock().expect("no thread panics").sink.ended(process.id, status);
        }
    }

    fn quiet(&self, thread: &Thread) -> bool {
        thread.quiet || thread.ring.is_some_and(|ring| self.segment.ring(ring).quiet())
    }

    /// Says that something of its process is not recorded.
    fn lost(&mut self, tid: Pid, why: &str) {
        let process = self.threads.get(&tid).and_then(|thread| self.processes.get(&thread.group));
        let id = process.map_or(0, |process| process.id);
        self.rings.lock().expect("no thread panics").sink.unrecorded(id, why);
    }

    fn release(&mut self, tid: Pid) {
        if self.threads.get(&tid).is_some_and(|thread| !thread.quiet && self.quiet(thread)) {
            self.lost(tid, "a thread of it, from when it forbade itself to read the clock");
        }
        if let Some(Thread { ring: Some(ring), .. }) = self.threads.remove(&tid) {
            self.rings.lock().expect("no thread panics").give_back(&self.segment, ring);
        }
    }

    fn add_process(&mut self, pid: Pid, parent: Option<Pid>) {
        let id = self.next.0;
        self.next.0 += 1;
        let parent = parent.and_then(|parent| self.processes.get(&parent)).map(|process| process.id);
        self.rings.lock().expect("no thread panics").sink.process(id, parent, pid);
        self.processes.insert(pid, Process { id, image: None });
    }

    fn add_thread(&mut self, tid: Pid, group: Pid) {
        let id = self.next.1;
        self.next.1 += 1;
        let process = self.processes.get(&group).map_or(0, |process| process.id);
        self.rings.lock().expect("no thread panics").sink.thread(id, process, tid);
        self.threads.insert(
            tid,
            Thread { group, id, ring: None, begun: None, before: Some(Counters::default()), quiet: false },
        );
    }
}

/// The thread group, from /proc.
fn group_of(tid: Pid) -> Option<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}
