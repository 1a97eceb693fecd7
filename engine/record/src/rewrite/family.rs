//! Who is recorded: processes and threads, from their beginnings to their ends.

use std::io;

use crate::rewrite::clock::ticks;
use crate::rewrite::remote::{Pid, ptrace, status_of};
use crate::rewrite::rights;
use crate::rewrite::rings::{Counters, Sink};
use crate::rewrite::start::pass_on_no_more;
use crate::rewrite::tracer::{Process, Thread, Tracer};
use crate::rewrite::way::Technique;

impl<S: Sink> Tracer<S> {
    /// A process has become another program.
    pub fn executed(&mut self, pid: Pid) -> io::Result<()> {
        let gone: Vec<Pid> =
            self.threads.iter().filter(|(_, t)| t.group == pid).map(|(tid, _)| *tid).collect();
        for tid in gone {
            let id = self.threads[&tid].id;
            let told = self.queues.forgets(pid, ticks(self.way.clock));
            self.tell(tid, told);
            self.release(tid);
            self.rings().sink.replaced(id);
        }
        self.add_thread(pid, pid);
        let made = self.make_ready(pid);
        let counters = Counters::of(pid, pid);
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.before = counters;
        }
        self.note_run_delay(pid);
        self.note_class(pid);
        let process = self.processes.get_mut(&pid).expect("it was started");
        process.by_stops = made.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Unsupported);
        let (id, by_stops) = (process.id, process.by_stops);
        let found = made.map(|(image, found)| {
            process.image = image;
            found
        });
        if found.is_err() {
            process.image = None;
        }
        let without = rights::lost(pid, self.way.technique == Technique::Ptrace && !self.every_call);
        let mut rings = self.rings();
        rings.sink.executed(id, pid);
        if let Some(without) = without {
            rings.sink.unrecorded(id, &without);
        }
        match found {
            Ok(found) => rings.sink.patched(id, found),
            Err(error) if by_stops => rings.sink.by_stops(id, &error.to_string()),
            Err(error) => rings.sink.unrecorded(id, &error.to_string()),
        }
        Ok(())
    }

    /// A thread has started another, or a process.
    pub fn cloned(&mut self, pid: Pid) -> io::Result<()> {
        let mut child = 0u64;
        ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut child as usize)?;
        let child = child as Pid;
        let parent = self.threads.get(&pid).map_or(pid, |thread| thread.group);
        let group = group_of(child).unwrap_or(child);
        if group != parent {
            let as_parent =
                self.processes.get(&parent).map(|process| (process.image.clone(), process.by_stops));
            self.add_process(group, Some(parent));
            let process = self.processes.get_mut(&group).expect("just added");
            (process.image, process.by_stops) = as_parent.unwrap_or_default();
        }
        self.add_thread(child, group);
        self.note_run_delay(child);
        // What it has forbidden itself holds for its children, too.
        let quiet = self.threads.get(&pid).is_some_and(|thread| self.quiet(thread));
        self.threads.get_mut(&child).expect("just added").quiet = quiet;
        if let Some(place) = self.early.iter().position(|early| *early == child) {
            self.early.swap_remove(place);
            if self.leaving {
                return self.leave(child);
            }
            self.adopt(child)?;
            self.go_on(child, 0)?;
        }
        Ok(())
    }

    /// It has ended.
    pub fn gone(&mut self, tid: Pid, status: i32) {
        self.release(tid);
        if tid == self.first {
            self.status = status;
            pass_on_no_more();
        }
        if let Some(process) = self.processes.remove(&tid) {
            self.rings().sink.ended(process.id, status);
        }
    }

    /// Whether it may no longer read the clock.
    fn quiet(&self, thread: &Thread) -> bool {
        thread.quiet || thread.ring.is_some_and(|ring| self.segment.ring(ring).quiet())
    }

    /// Says that something of its process is not recorded.
    pub fn lost(&mut self, tid: Pid, why: &str) {
        let id = self.process_of(tid).map_or(0, |process| process.id);
        self.rings().sink.unrecorded(id, why);
    }

    /// It makes no more calls that are recorded; its ring is for others.
    pub fn release(&mut self, tid: Pid) {
        if self.threads.get(&tid).is_some_and(|thread| !thread.quiet && self.quiet(thread)) {
            self.lost(tid, "a thread of it, from when it forbade itself to read the clock");
        }
        if let Some(Thread { ring: Some(ring), .. }) = self.threads.remove(&tid) {
            self.rings().give_back(&self.segment, ring);
        }
    }

    pub fn add_process(&mut self, pid: Pid, parent: Option<Pid>) {
        let id = self.next.0;
        self.next.0 += 1;
        let parent = parent.and_then(|parent| self.processes.get(&parent)).map(|process| process.id);
        self.rings().sink.process(id, parent, pid);
        self.processes.insert(pid, Process { id, image: None, by_stops: false });
    }

    pub fn add_thread(&mut self, tid: Pid, group: Pid) {
        let id = self.next.1;
        self.next.1 += 1;
        let process = self.processes.get(&group).map_or(0, |process| process.id);
        self.rings().sink.thread(id, process, tid);
        self.threads.insert(
            tid,
            Thread {
                group,
                id,
                ring: None,
                begun: None,
                #[cfg(target_arch = "x86_64")]
                slow: Vec::new(),
                before: Some(Counters::default()),
                quiet: false,
                stopped: Some(ticks(self.way.clock)),
                looked: None,
            },
        );
    }
}

/// The thread group of a thread that may have just begun.
fn group_of(tid: Pid) -> Option<Pid> {
    // A process, in one call: only a thread that leads its group is found by its own number twice.
    // SAFETY: no signal is sent, it is only looked whether one could be.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, tid, tid, 0) } == 0;
    if found || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) {
        return Some(tid);
    }
    status_of(tid, "Tgid:")?.parse().ok()
}
