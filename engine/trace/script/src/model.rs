//! A script as data.

use std::sync::Arc;

use etude_calls::{Call, Moves};
use etude_trace::{Scheduling, Text};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// What a program did to files, in an order that can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Lines for the reader: of what it was made, and how.
    pub notes: Vec<String>,
    /// The class in which the program ran, where that is not the default one.
    pub scheduling: Option<Scheduling>,
    /// What has to be there before.
    pub needed: Vec<Needed>,
    /// Calls of the recording that are not among the steps.
    pub dropped: Vec<Dropped>,
    /// Of all threads, in the order in which they began. Those of one thread follow each other; how those of different
    /// threads wait for each other follows from what they share.
    pub steps: Vec<Step>,
}

impl Script {
    /// Its notes, its scheduling class, and what was left out of it.
    pub(crate) fn without_steps(&self) -> Script {
        let (notes, dropped) = (self.notes.clone(), self.dropped.clone());
        Script { notes, scheduling: self.scheduling, dropped, ..Script::default() }
    }
}

/// One thing that one thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Counts from 0 over all processes; 0 is there at the beginning, all others are started by a step.
    pub thread: u32,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing is done for so long, ns.
    Compute(u64),
    /// Starts another thread of this process.
    Start(u32),
    /// Starts a process, whose first thread that is; it has copies of this one's descriptors.
    Fork(u32),
    /// Waits until the process whose first thread that is has ended.
    Wait(u32),
    /// The process becomes another program: descriptors that are to be closed at exec are.
    Exec,
    Call(Called),
}

/// A call with what it is to be called with, and what came of it in the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    pub call: Call,
    /// As in a trace (docs/reference/trace-format.md, "An event"); where data stand in memory is 0.
    pub arguments: [u64; 6],
    /// Paths are within the directory of the replay, whose root it is: `/usr/include` is there `usr/include`.
    pub texts: SmallVec<[Text; 1]>,
    /// -errno for an error.
    pub result: i64,
    /// ns; None where it is not known.
    pub duration_ns: Option<u64>,
}

/// A result that is not known.
pub const UNKNOWN: i64 = i64::MIN;

/// Calls of one name that are in the recording and not among the steps, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    pub call: String,
    pub why: String,
    pub calls: u64,
    /// Bytes that they moved; of mappings, bytes through which the program could store.
    pub bytes: u64,
    /// Transfers whose bytes are not recorded; `UNCOUNTED` or more where it is not known how many.
    pub requests: u64,
    pub ns: u64,
}

/// Bytes that a pipe holds while nobody reads it.
pub(crate) const PIPE_ROOM: u64 = 64 << 10;

/// Stands for transfers whose number is not known: more than any program makes.
pub const UNCOUNTED: u64 = 1 << 48;

impl Dropped {
    /// Whether they moved data, or may have.
    pub fn moves(&self) -> bool {
        let moves = Call::named(&self.call).is_some_and(|call| call.row().moves != Moves::Nothing);
        moves || self.bytes > 0 || self.requests > 0 || self.waits_for_requests()
    }

    fn waits_for_requests(&self) -> bool {
        matches!(self.call.as_str(), "io_getevents" | "io_pgetevents" | "io_submit" | "io_uring_enter")
    }

    /// As many of them as `times` recordings have.
    #[must_use]
    pub fn times(&self, times: u64) -> Dropped {
        let [calls, bytes, requests, ns] =
            [self.calls, self.bytes, self.requests, self.ns].map(|each| each.saturating_mul(times));
        Dropped { calls, bytes, requests, ns, ..self.clone() }
    }

    /// Those of another recording on top.
    pub fn add(&mut self, other: &Dropped) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.requests = self.requests.saturating_add(other.requests);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Something that the first call already finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    pub path: Arc<[u8]>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    File {
        bytes: u64,
        /// Less than `bytes`: it is sparse, and has so many on disk.
        allocated: Option<u64>,
        /// Whether the size was seen; else it is the least that the calls need.
        seen: bool,
    },
    Directory,
    /// A symbolic link, and what stands in it.
    Link(Arc<[u8]>),
    /// Another name of a file.
    HardLink(Arc<[u8]>),
}
