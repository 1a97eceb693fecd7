//! Who is recorded: processes and threads, from their beginnings to their ends.

use std::io;

use crate::kernel_counts::Counters;
use crate::rewrite::clock::ticks;
use crate::rewrite::exec_start::pass_on_no_more;
use crate::rewrite::method::Technique;
use crate::rewrite::remote::{Pid, ptrace, status_of};
use crate::rewrite::rights;
use crate::rewrite::tracer::{Early, Process, Thread, Tracer};

impl Tracer {
    /// A process has become another program.
    pub fn executed(&mut self, pid: Pid) -> io::Result<()> {
        let gone: Vec<Pid> =
            self.threads.iter().filter(|(_, t)| t.group == pid).map(|(tid, _)| *tid).collect();
        for tid in gone {
            let id = self.threads[&tid].id;
            let told = self.queues.forgets(pid, ticks(self.way.clock));
            self.tell(tid, told);
            self.release(tid);
            self.rings().queue.tell(move |file| file.replaced(id));
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
        rings.queue.executed(id, pid);
        if let Some(without) = without {
            rings.queue.tell(move |file| file.unrecorded(id, without));
        }
        match found {
            Ok(found) => rings.queue.tell(move |file| file.patched(id, found)),
            Err(error) if by_stops => rings.queue.tell(move |file| file.by_stops(id, error.to_string())),
            Err(error) => rings.queue.tell(move |file| file.unrecorded(id, error.to_string())),
        }
        Ok(())
    }

    /// A thread has started another, or a process.
    pub fn cloned(&mut self, pid: Pid) -> io::Result<()> {
        let mut child = 0u64;
        ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut child as usize)?;
        self.begun(self.group_of(pid), pid, child as Pid)
    }

    /// A child of a process has begun, by its thread `tid`.
    fn begun(&mut self, parent: Pid, tid: Pid, child: Pid) -> io::Result<()> {
        if self.threads.contains_key(&child) || self.processes.contains_key(&child) {
            return Ok(()); // its parent was taken for dead
        }
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
        let quiet = self.threads.get(&tid).is_some_and(|thread| self.quiet(thread));
        self.threads.get_mut(&child).expect("just added").quiet = quiet;
        if let Some(place) = self.early.iter().position(|early| early.tid == child) {
            self.early.swap_remove(place);
            if self.leaving {
                return self.leave(child);
            }
            self.adopt(child)?;
            self.go_on(child, 0)?;
        }
        Ok(())
    }

    /// A child stopped before its parent told of it. A parent that is killed never does.
    pub fn early(&mut self, tid: Pid) -> io::Result<()> {
        let parent = match group_of(tid) {
            Some(group) if group != tid => group,
            _ => status_of(tid, "PPid:").and_then(|text| text.parse().ok()).unwrap_or(0),
        };
        self.early.push(Early { tid, parent });
        if self.processes.contains_key(&parent) || parent == std::process::id() as Pid {
            return Ok(());
        }
        let Some((parent, process)) = self.ended.take() else { return self.begun(0, 0, tid) };
        self.processes.insert(parent, process);
        let begun = self.begun(parent, 0, tid);
        self.ended = self.processes.remove(&parent).map(|process| (parent, process));
        begun
    }

    /// Children of a thread that ends, of which it has not told: it was killed while it started them.
    pub fn untold(&mut self, tid: Pid) {
        let group = self.group_of(tid);
        let children =
            std::fs::read_to_string(format!("/proc/{group}/task/{tid}/children")).unwrap_or_default();
        let own = std::process::id().to_string();
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            // Others are known, were there before the recording, or have ended and were not waited for.
            if !self.processes.contains_key(&child)
                && status_of(child, "TracerPid:").is_some_and(|it| it == own)
            {
                self.orphan(group, tid, child);
            }
        }
    }

    fn orphan(&mut self, parent: Pid, tid: Pid, child: Pid) {
        if let Err(error) = self.begun(parent, tid, child)
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            self.lost(child, &error.to_string());
        }
    }

    /// It has ended.
    pub fn gone(&mut self, tid: Pid, status: i32) {
        self.early.retain(|early| early.tid != tid);
        let left: Vec<Pid> =
            self.early.iter().filter(|early| early.parent == tid).map(|early| early.tid).collect();
        left.into_iter().for_each(|child| self.orphan(tid, tid, child)); // it was killed without a stop
        self.release(tid);
        if tid == self.first {
            self.status = status;
            pass_on_no_more();
        }
        if let Some(process) = self.processes.remove(&tid) {
            self.rings().queue.ended(process.id, status);
            self.ended = Some((tid, process));
        }
    }

    fn group_of(&self, tid: Pid) -> Pid {
        self.threads.get(&tid).map_or(tid, |thread| thread.group)
    }

    /// Whether it may no longer read the clock.
    fn quiet(&self, thread: &Thread) -> bool {
        thread.quiet || thread.ring.is_some_and(|ring| self.segment.ring(ring).quiet())
    }

    /// Says that something of its process is not recorded.
    pub fn lost(&mut self, tid: Pid, why: &str) {
        let id = self.process_of(tid).map_or(0, |process| process.id);
        let why = why.to_owned();
        self.rings().queue.tell(move |file| file.unrecorded(id, why));
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
        self.rings().queue.process(id, parent, pid);
        self.processes.insert(pid, Process { id, image: None, by_stops: false });
    }

    pub fn add_thread(&mut self, tid: Pid, group: Pid) {
        let id = self.next.1;
        self.next.1 += 1;
        let process = self.processes.get(&group).map_or(0, |process| process.id);
        self.rings().queue.thread(id, process, tid);
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
