//! NFSv3 as a target (docs/nfs-load.md): the file set of a workload on a server, and its operations as calls, many under way.
//!
//! Read `populate.rs` for what is done before the load, `target.rs` for one request from its draw to its answer.

mod asking;
mod look;
mod make;
mod objects;
mod pool;
mod populate;
mod target;
mod turns;
mod work;

pub(crate) use populate::{Prepared, Settings, prepare};
pub(crate) use target::NfsTarget;
