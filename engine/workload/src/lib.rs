//! Workloads: what files there are, and what is done with them, from knobs. Nothing here does I/O or looks at a clock.

mod kind;
mod stub;

pub use kind::{Kind, Object, Operation};
pub use stub::{Directory, File, FileSet, Link, Stream, Workload};
