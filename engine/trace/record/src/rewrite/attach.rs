//! A process that runs already: all its threads are traced, and in the end let go as they were.

use std::io;
use std::time::{Duration, Instant};

use etude_trace::{Meta, Open};

use crate::kernel_counts::Counters;
use crate::rewrite::exec_start::FOLLOW;
use crate::rewrite::remote::{Pid, ptrace, status_of};
use crate::rewrite::signals::{Next, Signals, poll};
use crate::rewrite::tracer::Tracer;

/// So long threads that have stopped wait for those that have not: one may be in a call that nothing interrupts.
const PATIENCE: Duration = Duration::from_millis(200);

impl Tracer {
    /// Traces a process and notes what it has open. Until that is done its threads stand still.
    ///
    /// # Errors
    /// It is not there, or may not be traced; the text says which, and what to do.
    pub fn attach(&mut self, pid: Pid) -> io::Result<()> {
        possible(pid)?;
        (self.first, self.every_call) = (pid, true);
        seize(pid).map_err(|error| refused(pid, &error))?;
        self.add_process(pid, None);
        self.note_class(pid);
        self.seized(pid, pid);
        let began = Instant::now();
        let mut held = Vec::new();
        // A thread that started another before it was traced itself has done so when it has stopped.
        loop {
            held.extend(self.first_stops(began));
            let fresh: Vec<Pid> =
                threads_of(pid).into_iter().filter(|tid| !self.threads.contains_key(tid)).collect();
            // One that cannot be traced is gone, or traced already: its parent will tell of it.
            let seized = fresh.into_iter().filter(|tid| seize(*tid).is_ok()).collect::<Vec<_>>();
            if seized.is_empty() {
                break;
            }
            seized.into_iter().for_each(|tid| self.seized(tid, pid));
        }
        let process = self.processes[&pid].id;
        let at_ns = self.rings().queue.now_ns();
        self.rings().queue.meta(Meta::Descriptors { process, open: opened(pid), at_ns });
        held.into_iter().for_each(|(tid, status)| self.changed(tid, status));
        Ok(())
    }

    fn seized(&mut self, tid: Pid, group: Pid) {
        self.add_thread(tid, group);
        self.note_run_delay(tid);
        self.unseen.push(tid);
        let _ = ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0); // it is gone; its end follows
    }

    /// The first stops of all that were seized, as far as they come.
    fn first_stops(&mut self, began: Instant) -> Vec<(Pid, i32)> {
        let mut held = Vec::new();
        while !self.unseen.is_empty() && began.elapsed() < PATIENCE {
            match poll() {
                Some(Some((tid, status))) => {
                    self.see(tid);
                    held.push((tid, status));
                }
                Some(None) => std::thread::sleep(Duration::from_micros(100)),
                None => break,
            }
        }
        held
    }

    /// What the kernel has counted of a thread before its first stop is not the recording's.
    pub fn see(&mut self, tid: Pid) {
        let Some(place) = self.unseen.iter().position(|each| *each == tid) else { return };
        self.unseen.swap_remove(place);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.before = Counters::of(thread.group, tid);
        }
    }

    /// Lets all threads go where they next stop for it; another request to end makes it give up on those that do not
    /// (the kernel lets them go when the launcher ends). How many processes run on.
    pub fn let_go(&mut self, signals: &Signals) -> usize {
        self.leaving = true;
        self.threads.keys().for_each(|tid| drop(ptrace(libc::PTRACE_INTERRUPT, *tid, 0, 0))); // as above
        while let Some(Next::Changed(tid, status)) = signals.next() {
            self.changed(tid, status);
        }
        self.processes.len()
    }

    /// The thread has come to a stop from which it can go on without us, as it would.
    pub fn leave(&mut self, tid: Pid) -> io::Result<()> {
        self.exiting(tid);
        self.early.retain(|early| early.tid != tid);
        ptrace(libc::PTRACE_DETACH, tid, 0, 0).map(drop)
    }
}

fn seize(tid: Pid) -> io::Result<()> {
    ptrace(libc::PTRACE_SEIZE, tid, 0, FOLLOW as usize).map(drop)
}

fn threads_of(pid: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What /proc says against it, before anything is done.
fn possible(pid: Pid) -> io::Result<()> {
    let no = |text: String| Err(io::Error::other(text));
    let number = |name| status_of(pid, name).and_then(|text| text.parse::<Pid>().ok()).unwrap_or(0);
    if pid == std::process::id() as Pid {
        return no("it is the recorder itself; name another".to_owned());
    }
    let Some(state) = status_of(pid, "State:") else {
        return no("no such process; see ps".to_owned());
    };
    if state.starts_with(['Z', 'X']) {
        return no("it has ended; see ps".to_owned());
    }
    match (number("Tgid:"), number("TracerPid:")) {
        (group, _) if group != pid => no(format!("it is a thread of process {group}; name that")),
        (_, 0) => Ok(()),
        (_, tracer) => no(format!("process {tracer} traces it already (a debugger, strace); end that first")),
    }
}

fn refused(pid: Pid, error: &io::Error) -> io::Error {
    // SAFETY: no arguments.
    let own = unsafe { libc::geteuid() };
    let owner = status_of(pid, "Uid:").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    io::Error::other(match error.raw_os_error() {
        Some(libc::ESRCH) => "no such process; see ps".to_owned(),
        Some(libc::EPERM) if own != 0 && owner != Some(own) => {
            "it belongs to another user; record it as that user, or as root".to_owned()
        }
        Some(libc::EPERM) if own != 0 && !matches!(scope.trim(), "" | "0") => format!(
            "this machine lets programs trace only what they have started (kernel.yama.ptrace_scope is {}); start it by \
             etude record, or record it as root",
            scope.trim()
        ),
        Some(libc::EPERM) => {
            "it may not be traced: it has rights of its own, or a container forbids ptrace; start it by etude record"
                .to_owned()
        }
        _ => format!("it cannot be traced: {error}; start it by etude record"),
    })
}

/// Its descriptors, as /proc tells.
fn opened(pid: Pid) -> Vec<Open> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut found: Vec<Open> = entries
        .filter_map(|entry| {
            let descriptor: u32 = entry.file_name().to_str()?.parse().ok()?;
            let path = std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
            let line = |name| text.lines().find_map(|line: &str| line.strip_prefix(name)).map(str::trim);
            let flags = line("flags:").and_then(|flags| u64::from_str_radix(flags, 8).ok()).unwrap_or(0);
            let offset = line("pos:").and_then(|at| at.parse().ok()).unwrap_or(0);
            let flags = etude_calls::canonical_open_flags(crate::PROCESSOR, flags);
            Some(Open { descriptor, path, flags, offset })
        })
        .collect();
    found.sort_by_key(|each| each.descriptor);
    found
}
