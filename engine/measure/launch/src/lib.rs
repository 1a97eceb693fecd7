//! One launch of one or many workers: resolve, start, wait, limits, leftovers, capture.
//!
//! Read `trial.rs` first: it is one launch from its start to its end.

mod alone;
mod barrier;
mod capture;
pub mod child;
pub mod day;
mod files;
mod futex;
pub mod inside;
mod kept;
mod live;
mod outcome;
mod prepare;
pub mod resolve;
mod shared;
pub mod spawn;
pub mod sys;
mod together;
mod tree;
mod trial;
mod watch;

pub use etude_clock as clock;
pub use outcome::{Orphans, Outcome, Status, Usage, WorkerOutcome};
pub use prepare::{Options, Prepared, explain};
pub use trial::Launcher;
pub use watch::{Control, Patient};
