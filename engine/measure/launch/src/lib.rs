//! One launch of one or many workers: resolve, start, wait, limits, leftovers, capture.
//!
//! Read `trial.rs` first: it is one launch from its start to its end.

mod barrier;
mod capture;
pub mod child;
mod files;
mod futex;
pub mod inside_barrier;
mod kept_processes;
mod live_worker;
mod outcome;
mod prepare;
pub mod resolve;
mod shared;
pub mod spawn;
pub mod sys;
pub mod time_of_day;
mod tree;
mod trial;
mod watch;
mod workers;

pub use etude_clock as clock;
pub use outcome::{Orphans, Outcome, Status, Usage, WorkerOutcome};
pub use prepare::{Options, Prepared, explain};
pub use trial::Launcher;
pub use watch::{Control, Patient};
