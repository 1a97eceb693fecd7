//! What a trace says beside its events, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scheduling::Scheduling;

/// What is known before the first event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Always `etude-trace`.
    pub format: String,
    pub version: u32,
    /// As it was executed.
    pub argv: Vec<String>,
    pub cwd: String,
    /// Time of day at which the trace begins, UTC, RFC 3339.
    pub start: String,
    pub host: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`: which processor's calls these were. Flags are those of x86-64 on all.
    pub processor: String,
    /// How it was recorded: `rewrite`, `ptrace`, `ebpf`, `strace` (imported).
    pub technique: String,
    pub clock: Clock,
    /// What recording itself adds to a call, ns, by the call's name; `*` for all others. It is in the gaps.
    pub own_cost_ns: BTreeMap<String, f64>,
}

/// What times were read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// `tsc`, `monotonic`, or that of an imported trace.
    pub kind: String,
    /// As it was known at the beginning.
    pub ns_per_tick: f64,
}

/// One thing that was noted while recording. Times are since the beginning of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Meta {
    /// A process began; `process` counts from 0, `parent` is the number of another.
    Process {
        process: u32,
        parent: Option<u32>,
        pid: u32,
        executable: String,
        argv: Vec<String>,
        cwd: String,
        at_ns: u64,
    },
    /// A thread began; `thread` counts from 0 over all processes.
    Thread { thread: u32, process: u32, tid: u32, at_ns: u64 },
    /// A process became another program.
    Exec { process: u32, executable: String, argv: Vec<String>, at_ns: u64 },
    /// A program or a library was made ready.
    Image(Image),
    /// What the kernel had counted of a thread, and what follows from its recorded calls, by the names of
    /// `/proc/PID/io`.
    Counters { thread: u32, kernel: BTreeMap<String, u64>, recorded: BTreeMap<String, u64> },
    /// Scheduler counts of a thread since it began: time on a CPU, and time runnable and waiting for one
    /// (`/proc/TID/schedstat`).
    RunDelay { thread: u32, at_ns: u64, cpu_ns: u64, run_delay_ns: u64 },
    /// When the recorder held a thread (at a fork, a signal, or to rewrite code that it had mapped): from, and for how
    /// long, ns.
    Held { thread: u32, spans: Vec<(u64, u64)> },
    /// The scheduling class of the first process when it had executed a program, or its recording began.
    Scheduling {
        process: u32,
        #[serde(flatten)]
        class: Scheduling,
    },
    /// A process ended, by `exit` or by a signal.
    Ended { process: u32, status: Option<i32>, signal: Option<i32>, at_ns: u64 },
    /// Events were lost because nobody emptied the ring in time.
    Dropped { thread: u32, events: u64 },
    /// A process, or a part of it, is not in the trace.
    Unrecorded { process: u32, why: String },
    /// A process whose code could not be rewritten: each of its calls stopped it, which takes some 20 µs.
    ByStops { process: u32, why: String },
    /// What a process had open when its recording began: it ran before.
    Descriptors { process: u32, open: Vec<Open>, at_ns: u64 },
    /// What stood at the paths that the program named when it had ended; in a frame of its own, compressed.
    Files { files: Vec<Found> },
    /// What a later version notes.
    #[serde(untagged)]
    Other(Value),
}

impl Meta {
    /// The kinds that this version knows, by their `what`.
    pub(crate) const KINDS: [&str; 14] = [
        "process",
        "thread",
        "exec",
        "image",
        "counters",
        "run_delay",
        "held",
        "scheduling",
        "ended",
        "dropped",
        "unrecorded",
        "by_stops",
        "descriptors",
        "files",
    ];

    /// The kind of a note that should be known and was not understood: a member is missing, of another type, or
    /// impossible.
    pub(crate) fn misunderstood(&self) -> Option<&'static str> {
        let value = match self {
            Meta::Scheduling { class, .. } if !class.is_possible() => return Some("scheduling"),
            Meta::Other(value) => value,
            _ => return None,
        };
        let what = value.get("what")?.as_str()?;
        Meta::KINDS.into_iter().find(|kind| *kind == what)
    }
}

/// A descriptor that was open already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Open {
    pub descriptor: u32,
    /// As /proc calls it; `pipe:[…]` and its like are no files.
    pub path: String,
    /// Of open, as x86-64 numbers them.
    pub flags: u64,
    /// Where in the file it stood.
    pub offset: u64,
}

/// A file that the recorder found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Absolute, without links in its directories.
    pub path: String,
    /// `file`, `directory`, `link` or `other` (a device, a named pipe, a socket).
    pub kind: String,
    /// How long a file is.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// What of it is on disk.
    #[serde(skip_serializing_if = "is_zero")]
    pub allocated: u64,
    /// What stands in a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Another path in this list, of the same file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A program or a library in which calls were looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    pub process: u32,
    pub path: String,
    /// In hexadecimal digits.
    pub build_id: Option<String>,
    /// Sites that are recorded.
    pub sites: u32,
    /// Sites that are not.
    pub left: Vec<Left>,
}

/// A site whose calls are not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// Where in the file.
    pub offset: u64,
    pub symbol: Option<String>,
    pub why: String,
}

/// What is known at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footer {
    /// How many stand in the trace.
    pub events: u64,
    pub processes: u32,
    pub threads: u32,
    pub dropped: u64,
    /// When the last process ended, since the beginning of the trace.
    pub end_ns: u64,
    /// CPU time of the recorder, s; None where it was not measured.
    pub recorder_cpu_s: Option<f64>,
    /// The furthest that times were from the monotonic clock when both were compared again, ns; None where they were not.
    pub clock_error_ns: Option<f64>,
    /// Anything a reader should know.
    pub notes: Vec<String>,
}
