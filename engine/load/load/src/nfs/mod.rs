//! NFSv3 as a target (docs/howto/nfs-load.md): the file set of a workload on a server, and its operations as calls, many under way.
//!
//! Read `populate.rs` for what is done before the load, `target.rs` for one request from its draw to its answer.

mod create_missing;
mod existing_files;
mod objects;
mod operation_calls;
mod pool;
mod populate;
mod population_jobs;
mod target;

pub(crate) use populate::{Prepared, Settings, prepare};
pub(crate) use target::NfsTarget;
