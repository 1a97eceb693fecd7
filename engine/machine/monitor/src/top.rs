//! The processes that used most CPU time in an interval.

use std::io;

use crate::kept::Root;
use crate::process::{cgroup, io};
use crate::scan::Processes;

/// What does not count: less is the rule for daemons that only look around.
const LEAST_NS: i64 = 1_000_000;
/// Of how many times as many processes as are listed the bytes are read, so that they are known when one gets there.
const KNOWN: usize = 4;

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub pid: u32,
    pub name: String,
    pub start: i64,
    pub cpu_ns: i64,
    pub children_ns: i64,
    pub parent: u32,
    pub rss_bytes: i64,
    /// Bytes of this interval.
    pub io: Option<(i64, i64)>,
    pub cgroup: Option<String>,
}

/// The list of one sample.
#[derive(Debug, Default)]
pub struct Listed {
    pub entries: Vec<Entry>,
    pub processes: usize,
    /// CPU time of the interval that no process had used which was seen, ns.
    pub unseen_ns: Option<i64>,
}

/// All processes, to be asked for the busiest.
pub struct Top {
    most: usize,
    processes: Processes,
    /// Places of those that ran, the busiest first.
    order: Vec<usize>,
    buffer: Vec<u8>,
    page_bytes: i64,
}

impl Top {
    /// Looks at all processes once; all that they did before is not of the first interval.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn open(root: &Root, most: usize, forks: Option<i64>, now_ns: u64) -> io::Result<Top> {
        // SAFETY: a call on numbers.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1);
        let processes = Processes::open(root)?;
        let mut top = Top { most, processes, order: Vec::new(), buffer: vec![0; 4096], page_bytes };
        top.processes.look(forks, now_ns);
        for at in 0..top.processes.all.len() {
            top.processes.all[at].io = top.read_io(at);
        }
        Ok(top)
    }

    /// The busiest of the interval that ends now. `busy_s`: CPU time of all programs in it.
    pub fn list(&mut self, forks: Option<i64>, now_ns: u64, busy_s: Option<f64>) -> Listed {
        self.processes.look(forks, now_ns);
        let seen_ns = self.processes.cpu_ns();
        // The kernel counts CPUs in ticks and processes in nanoseconds: a little below 0 is nothing.
        let unseen_ns = busy_s.map(|busy_s| ((busy_s * 1e9) as i64).saturating_sub(seen_ns).max(0));
        self.rank(unseen_ns);
        let mut entries = Vec::with_capacity(self.most);
        for place in 0..self.order.len() {
            let at = self.order[place];
            if place >= self.most * KNOWN {
                self.processes.all[at].io = None;
                continue;
            }
            let (before, now) = (self.processes.all[at].io, self.read_io(at));
            self.processes.all[at].io = now;
            if place < self.most && self.weight(at) >= LEAST_NS {
                entries.push(self.entry(at, added(before, now)));
            }
        }
        Listed { entries, processes: self.processes.all.len(), unseen_ns }
    }

    fn rank(&mut self, unseen_ns: Option<i64>) {
        let all = &mut self.processes.all;
        self.order.clear();
        self.order.extend((0..all.len()).filter(|at| all[*at].ran));
        for at in &self.order {
            // More than is missing cannot have been used unseen: that was used before, or seen elsewhere.
            all[*at].children_ns = unseen_ns.map_or(0, |unseen_ns| all[*at].children_ns.min(unseen_ns));
        }
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_key(|at| (-self.weight(*at), *at));
        self.order = order;
    }

    fn weight(&self, at: usize) -> i64 {
        self.processes.all[at].cpu_ns.saturating_add(self.processes.all[at].children_ns)
    }

    fn read_io(&mut self, at: usize) -> Option<(i64, i64)> {
        io(self.processes.file(self.processes.all[at].pid, "io", &mut self.buffer)?)
    }

    fn entry(&mut self, at: usize, io: Option<(i64, i64)>) -> Entry {
        let process = &self.processes.all[at];
        let text = self.processes.file(process.pid, "cgroup", &mut self.buffer);
        Entry {
            pid: process.pid,
            name: process.name.clone(),
            start: process.start,
            cpu_ns: process.cpu_ns,
            children_ns: process.children_ns,
            parent: process.parent,
            rss_bytes: process.pages.saturating_mul(self.page_bytes),
            io,
            cgroup: text.and_then(cgroup).map(crate::text::name),
        }
    }
}

fn added(before: Option<(i64, i64)>, now: Option<(i64, i64)>) -> Option<(i64, i64)> {
    let ((read_before, written_before), (read, written)) = (before?, now?);
    let added = (read.checked_sub(read_before)?, written.checked_sub(written_before)?);
    (added.0 >= 0 && added.1 >= 0).then_some(added)
}
