//! What a launch gives.

use etude_protocol::Captured;

use crate::sys::Reaped;

/// What processes used, as the kernel tells on reaping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User CPU time, µs.
    pub user_us: u64,
    /// System CPU time, µs.
    pub system_us: u64,
    /// Peak resident memory of the largest process, B.
    pub peak_memory_bytes: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Context switches for waiting.
    pub voluntary_switches: u64,
    /// Context switches for the scheduler.
    pub involuntary_switches: u64,
    /// Blocks of 512 B read.
    pub blocks_in: u64,
    /// Blocks of 512 B written.
    pub blocks_out: u64,
}

impl Usage {
    /// Adds another process: everything is summed, but of the peak memory the larger counts.
    pub fn add(&mut self, usage: &libc::rusage) {
        let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        self.user_us += us(usage.ru_utime);
        self.system_us += us(usage.ru_stime);
        self.peak_memory_bytes = self.peak_memory_bytes.max(usage.ru_maxrss as u64 * 1024);
        self.minor_faults += usage.ru_minflt as u64;
        self.major_faults += usage.ru_majflt as u64;
        self.voluntary_switches += usage.ru_nvcsw as u64;
        self.involuntary_switches += usage.ru_nivcsw as u64;
        self.blocks_in += usage.ru_inblock as u64;
        self.blocks_out += usage.ru_oublock as u64;
    }

    /// The counts by the names of their metrics, in the order of reports.
    pub fn counts(&self) -> [(&'static str, u64); 6] {
        [
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
            ("voluntary_switches", self.voluntary_switches),
            ("involuntary_switches", self.involuntary_switches),
            ("blocks_in", self.blocks_in),
            ("blocks_out", self.blocks_out),
        ]
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It returned this.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl Status {
    /// From a wait status.
    pub fn from_wait(status: libc::c_int) -> Status {
        if libc::WIFSIGNALED(status) {
            Status::Signalled(libc::WTERMSIG(status))
        } else {
            Status::Exited(libc::WEXITSTATUS(status))
        }
    }
}

/// One worker of one trial.
#[derive(Debug, Clone, Default)]
pub struct WorkerOutcome {
    /// Start of its first launch on the monotonic clock, ns; None if it was never started.
    pub start_ns: Option<u64>,
    /// From the start of its first launch to the end of its last, ns.
    pub elapsed_ns: u64,
    /// How its last launch ended.
    pub status: Option<Status>,
    /// Of all its launches.
    pub usage: Usage,
    /// Launches that ended.
    pub launches: u32,
    /// Ended by us because its time was over.
    pub timed_out: bool,
    /// Ended by us for another reason.
    pub cancelled: bool,
    /// Why it could not be started.
    pub error: Option<String>,
    /// If it was to be captured.
    pub stdout: Option<Captured>,
    /// If it was to be captured.
    pub stderr: Option<Captured>,
}

/// Processes that outlived their parent, ended by us or by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Orphans {
    /// How many.
    pub count: u64,
    /// What they used.
    pub usage: Usage,
}

impl Orphans {
    /// Counts one more.
    pub fn add(&mut self, reaped: &Reaped) {
        self.count += 1;
        self.usage.add(&reaped.usage);
    }
}

/// One trial.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// In the order of the request.
    pub workers: Vec<WorkerOutcome>,
    /// Of all workers.
    pub orphans: Orphans,
    /// What a reader should know.
    pub notes: Vec<String>,
}
