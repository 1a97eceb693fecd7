//! What the engine is asked to do.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One request: one line of standard input.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Run one trial, or the same trial many times.
    Launch(Box<Launch>),
    /// End what earlier launches were told to keep.
    End {
        /// Echoed in the answer.
        id: u64,
    },
    /// End the launch under way.
    Cancel,
    /// Open the barrier at which the workers of the launch under way stand.
    Release {
        /// Of that launch.
        id: u64,
        /// When they start: an instant of this machine's monotonic clock, ns.
        at_ns: u64,
    },
    /// Tell the monotonic clock.
    Clock {
        /// Echoed in the answer.
        id: u64,
    },
    /// Tell the CPU time of processes and kernel threads.
    Processes {
        /// Echoed in the answer.
        id: u64,
        /// What they are called.
        names: Vec<String>,
    },
}

/// One trial, or with `repeat` many of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Echoed in the answer.
    pub id: u64,
    /// The processes to start at once; at least one.
    pub workers: Vec<Worker>,
    /// Seconds after which the whole tree gets SIGTERM.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// Seconds between SIGTERM and SIGKILL.
    #[serde(default = "default_grace_s")]
    pub grace_s: f64,
    /// Launches within the trial, one after the other.
    #[serde(default = "default_inner")]
    pub inner: u32,
    /// Name of the control group to run in.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Which perf events to count.
    #[serde(default)]
    pub counters: Counting,
    /// Bytes kept of the end of each captured stream.
    #[serde(default = "default_capture_bytes")]
    pub capture_bytes: usize,
    /// What becomes of processes that outlive the workers.
    #[serde(default)]
    pub leftovers: Leftovers,
    /// Which exits are a success.
    #[serde(default)]
    pub accept: Accept,
    /// Where several workers wait for each other.
    #[serde(default)]
    pub barrier: Barrier,
    /// Who opens the barrier once all stand there.
    #[serde(default)]
    pub release: Release,
    /// Repetitions with nothing in between.
    #[serde(default)]
    pub repeat: Option<Repeat>,
}

/// Which perf events to count. Each one that is open costs every launch some microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counting {
    /// None; they are not reported.
    #[default]
    Off,
    /// All, if the machine has hardware events; else none, each reported with the reason.
    Auto,
    /// All that the machine has.
    On,
}

fn default_grace_s() -> f64 {
    2.0
}

fn default_inner() -> u32 {
    1
}

fn default_capture_bytes() -> usize {
    4096
}

/// One process to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Changes to the engine's environment; null removes a variable.
    #[serde(default)]
    pub env: BTreeMap<String, Option<String>>,
    /// Working directory; null is the engine's.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Standard input.
    #[serde(default)]
    pub stdin: Stdio,
    /// Standard output.
    #[serde(default)]
    pub stdout: Stdio,
    /// Standard error.
    #[serde(default)]
    pub stderr: Stdio,
    /// CPUs that it may run on; null is all of the engine's.
    #[serde(default)]
    pub cpus: Option<Vec<u32>>,
}

/// Where a standard stream comes from or goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdio {
    /// `/dev/null`.
    #[default]
    Null,
    /// The engine's own.
    Inherit,
    /// Counted and digested by the engine, its end kept.
    Capture,
    /// A file: read, or created and appended to. Relative to the worker's directory.
    File(String),
}

/// What becomes of processes that outlive the workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leftovers {
    /// They are ended before the record is sent.
    #[default]
    End,
    /// They live until the request `end`.
    Keep,
}

/// Which exits are a success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accept {
    /// Only the exit status 0 of every worker.
    #[default]
    Zero,
    /// Any, if the worker was started and not ended by us.
    Any,
}

/// Where several workers wait for each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Barrier {
    /// At their start.
    #[default]
    Start,
    /// There, and again wherever a command of each has itself measured with `--barrier`.
    Inside,
}

/// Who opens a barrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// The engine, at once.
    #[default]
    Own,
    /// The requester: the engine answers `ready`, and waits for the request `release`.
    Told,
}

/// Repetitions of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// How many trials.
    pub count: u64,
    /// No trial but the first begins once so many seconds have passed.
    #[serde(default)]
    pub within_s: Option<f64>,
    /// Path of the results that each finished trial is appended to.
    pub journal: String,
    /// Number of the first trial; the next ones count up.
    pub trial: u64,
    /// Number of the first trial's block; the next ones count up.
    pub block: u64,
    /// Members that stand in front of each line.
    #[serde(default)]
    pub head: Map<String, Value>,
}

/// Reads one request. The error is the request's `id`, as far as it could be read, and one line on what is wrong.
pub fn parse(line: &[u8]) -> Result<Request, (Value, String)> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let hint = "expected one JSON object a line, as docs/reference/formats.md describes";
        (Value::Null, format!("request: not JSON: {error}; {hint}"))
    })?;
    let id = match value.get("id") {
        Some(id @ Value::Number(_)) => id.clone(),
        _ => Value::Null,
    };
    let wanted = value.get("do").and_then(Value::as_str).map(str::to_owned);
    let parsed = match wanted.as_deref() {
        Some("launch") => member(value).map(|launch| Request::Launch(Box::new(launch))),
        Some("end") => member(value).map(|End { id }| Request::End { id }),
        Some("cancel") => Ok(Request::Cancel),
        Some("release") => member(value).map(|At { id, at_ns }| Request::Release { id, at_ns }),
        Some("clock") => member(value).map(|End { id }| Request::Clock { id }),
        Some("processes") => member(value).map(|Named { id, names }| Request::Processes { id, names }),
        Some(other) => Err(format!("do: unknown request {other:?}; expected {KNOWN}")),
        None => Err(format!("do: missing; expected {KNOWN}")),
    };
    parsed.map_err(|error| (id, format!("request: {error}")))
}

const KNOWN: &str = "launch, end, cancel, release, clock or processes";

#[derive(Deserialize)]
struct End {
    id: u64,
}

#[derive(Deserialize)]
struct At {
    id: u64,
    at_ns: u64,
}

#[derive(Deserialize)]
struct Named {
    id: u64,
    names: Vec<String>,
}

fn member<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| match error.path().to_string().as_str() {
        "." => error.inner().to_string(),
        path => format!("{path}: {}", error.inner()),
    })
}

impl Serialize for Request {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "do", rename_all = "lowercase")]
        enum Tagged<'a> {
            Launch(&'a Launch),
            End { id: u64 },
            Cancel,
            Release { id: u64, at_ns: u64 },
            Clock { id: u64 },
            Processes { id: u64, names: &'a [String] },
        }
        match self {
            Request::Launch(launch) => Tagged::Launch(launch),
            Request::End { id } => Tagged::End { id: *id },
            Request::Cancel => Tagged::Cancel,
            Request::Release { id, at_ns } => Tagged::Release { id: *id, at_ns: *at_ns },
            Request::Clock { id } => Tagged::Clock { id: *id },
            Request::Processes { id, names } => Tagged::Processes { id: *id, names },
        }
        .serialize(serializer)
    }
}
