//! The lines that cross the boundary between Étude and its engine, as types.
//!
//! `docs/reference/formats.md` is the contract; `tests/data/vectors/boundary.jsonl` holds examples that both sides are checked against.

mod metrics;
mod reply;
mod request;
mod row;

pub use metrics::{Metric, Metrics, Value};
pub use reply::{CgroupFace, Hello, Process, Reply, TlbFace};
pub use request::{
    Accept, Barrier, Counting, Launch, Leftovers, Release, Repeat, Request, Stdio, Worker, parse,
};
pub use row::{Captured, Line, Row};

/// Version of the boundary: raised when an old reader would misunderstand a new line.
pub const PROTOCOL: u32 = 1;
