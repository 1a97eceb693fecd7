//! What the engine answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Row;

/// One line of standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The first line, unasked.
    Hello {
        /// What the engine is and what this machine lets it do.
        hello: Hello,
    },
    /// A trial's rows, one a worker.
    Rows {
        /// Of the request.
        id: u64,
        /// In the order of the request's workers.
        rows: Vec<Row>,
    },
    /// Trials done so far in a repetition.
    Progress {
        /// Of the request.
        id: u64,
        /// Trials on disk.
        progress: u64,
    },
    /// The end of a repetition.
    Done {
        /// Of the request.
        id: u64,
        /// Trials on disk.
        done: u64,
        /// `failed`, `cancelled`, the text of a journal error; null if all were done.
        stopped: Option<String>,
    },
    /// The answer to `end`.
    Ended {
        /// Of the request.
        id: u64,
        /// Processes that were ended.
        ended: usize,
    },
    /// All workers of a launch that is released by the requester stand at its barrier.
    Ready {
        /// Of the request.
        id: u64,
        /// How many they are.
        ready: usize,
    },
    /// The answer to `clock`.
    Clock {
        /// Of the request.
        id: u64,
        /// The monotonic clock, ns.
        clock_ns: u64,
    },
    /// The answer to `processes`.
    Processes {
        /// Of the request.
        id: u64,
        /// Those that have one of the names, in the order of their numbers.
        processes: Vec<Process>,
    },
    /// The request itself is wrong.
    Error {
        /// Of the request, as far as it could be read.
        id: serde_json::Value,
        /// One line.
        error: String,
    },
}

/// What the engine is and what this machine lets it do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the boundary.
    pub protocol: u32,
    /// Version of the engine.
    pub engine: String,
    /// Its process.
    pub pid: u32,
    /// Resolution of the monotonic clock, ns.
    pub clock_resolution_ns: u64,
    /// CPUs it may run on.
    pub cpus: Vec<u32>,
    /// Control groups.
    pub cgroup: CgroupFace,
    /// For each counter: null if it can be counted, else why not.
    pub counters: BTreeMap<String, Option<String>>,
    /// The TLBs of its CPU; none where they are not known.
    #[serde(default)]
    pub tlb: Vec<TlbFace>,
}

/// A process, or a kernel thread, and the CPU time that it has had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// What it is called; the kernel keeps 15 bytes of a program's name.
    pub name: String,
    /// When it began, in ticks since boot: tells it from another that has had the number.
    pub began: u64,
    /// Of all its threads, also of those that have ended, ns: in whole ticks.
    pub cpu_ns: u64,
    /// Of each thread that lives, ns: exact; pairs with its number.
    pub threads: Vec<(i32, u64)>,
}

/// One translation lookaside buffer, for pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbFace {
    /// `data`, `instruction`, `unified`, `load` or `store`.
    pub kind: String,
    /// 1 is asked first.
    pub level: u8,
    /// Size of the pages, B.
    pub page_bytes: u64,
    /// How many pages it holds.
    pub entries: u32,
}

/// What control groups offer here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFace {
    /// 1 or 2; null where no group can be made.
    pub version: Option<u32>,
    /// Controllers that are used.
    pub controllers: Vec<String>,
    /// Why there is none.
    pub reason: Option<String>,
}
