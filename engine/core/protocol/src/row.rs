//! What one worker of one trial gave.

use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::Metrics;

/// One worker of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which of the workers started at once, from 0.
    pub worker: usize,
    /// Time of day at the start: UTC, RFC 3339, nanoseconds. None if it was not started.
    pub start: Option<String>,
    /// The same instant on the monotonic clock, ns.
    pub start_ns: Option<u64>,
    /// Launches in this trial.
    pub inner: u32,
    /// What the command returned.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Ended by us because its time was over.
    pub timed_out: bool,
    /// Ended by us for another reason.
    pub cancelled: bool,
    /// Why it could not be started.
    pub error: Option<String>,
    /// What was measured.
    pub metrics: Metrics,
    /// The captured standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Captured>,
    /// The captured standard error, unless it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Captured>,
    /// What a reader should know of this trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A captured stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Its whole length.
    pub bytes: u64,
    /// SHA-256 of all of it, in hexadecimal.
    pub sha256: String,
    /// Its end.
    pub tail: String,
}

/// One line of a journal: a whole measurement.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// Members that only the requester knows.
    #[serde(flatten)]
    pub head: &'a Map<String, serde_json::Value>,
    /// Number of the trial.
    pub trial: u64,
    /// Number of its block.
    pub block: u64,
    /// Whether it enters the statistics.
    pub kept: bool,
    /// If not, why.
    pub why: Option<&'static str>,
    /// The rest of the measurement.
    #[serde(flatten)]
    pub row: &'a Row,
}

impl Line<'_> {
    /// The members that the engine writes itself; they are not taken from a head.
    pub const OWN: [&'static str; 17] = [
        "trial",
        "block",
        "kept",
        "why",
        "worker",
        "start",
        "start_ns",
        "inner",
        "exit_status",
        "signal",
        "timed_out",
        "cancelled",
        "error",
        "metrics",
        "stdout",
        "stderr",
        "notes",
    ];
}
