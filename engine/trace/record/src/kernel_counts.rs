//! The kernel's counts of a thread: reads and writes, time on a CPU, time waiting for one; and its scheduling class.

use etude_trace::{Meta, Policy, Scheduling};

use crate::rewrite::remote::{Pid, read_text};

/// Reads and writes of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Counters {
    /// Counts of one thread alone. Those of a whole process would hold what its reaped children did, too.
    pub fn of(group: Pid, tid: Pid) -> Option<Counters> {
        let text = read_text(&format!("/proc/{group}/task/{tid}/io")).ok()?;
        let find = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Some(Counters {
            reads: find("syscr:")?,
            writes: find("syscw:")?,
            read_bytes: find("rchar:")?,
            written_bytes: find("wchar:")?,
        })
    }

    pub fn add(&mut self, other: &Counters) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }

    pub fn since(self, before: Counters) -> Counters {
        Counters {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

/// Scheduler counts of a thread so far, as a trace notes them; None where it is gone, or the kernel does not count (CONFIG_SCHED_INFO).
pub fn run_delay(thread: u32, tid: Pid, now_ns: impl Fn() -> u64) -> Option<Meta> {
    let text = read_text(&format!("/proc/{tid}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let (cpu_ns, run_delay_ns) = (numbers.next()??, numbers.next()??);
    Some(Meta::RunDelay { thread, at_ns: now_ns(), cpu_ns, run_delay_ns })
}

/// The class of a process; None where it is gone, or this kernel has one that no trace can name.
pub fn class(pid: Pid) -> Option<Scheduling> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: room for the answer; -1 is a nice value, so that the error has to be looked at.
    let (number, nice) = unsafe {
        if libc::sched_getparam(pid, &mut parameters) != 0 {
            return None;
        }
        *libc::__errno_location() = 0;
        (libc::sched_getscheduler(pid), libc::getpriority(libc::PRIO_PROCESS, pid as libc::id_t))
    };
    let number = number & !libc::SCHED_RESET_ON_FORK;
    let (policy, ..) = Policy::ALL.into_iter().find(|(_, _, each)| *each == number)?;
    let nice = if matches!(policy, Policy::Other | Policy::Batch) { nice as i8 } else { 0 };
    Some(Scheduling { policy, priority: parameters.sched_priority as u8, nice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_counts_and_class_are_its_own() {
        let asked = || {
            // SAFETY: no arguments.
            let tid = unsafe { libc::gettid() };
            (run_delay(3, tid, || 7), class(tid))
        };
        let other = std::thread::spawn(move || {
            // SAFETY: this thread's own nice value.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
            std::thread::sleep(std::time::Duration::from_millis(1)); // its time on a CPU counts when it leaves that
            asked()
        });
        let (counts, class) = other.join().unwrap();
        assert!(
            matches!(counts, Some(Meta::RunDelay { thread: 3, at_ns: 7, cpu_ns: 1.., .. })),
            "{counts:?}"
        );
        assert_eq!(class.unwrap().nice, 19);
        assert_eq!(run_delay(3, -1, || 7), None);
    }
}
