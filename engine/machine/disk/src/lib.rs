//! The state of a disk (docs/howto/disk-state.md): a file system aged by a history or filled to a level, what is in fragments,
//! and a device written until its throughput is steady.
//!
//! Read `history.rs` for what ageing does, `steady.rs` for when a device is steady.

mod age;
mod command;
mod command_age;
mod command_precondition;
mod content;
mod device;
mod ending;
mod extents;
mod fill;
mod fragments;
mod free;
mod grow;
mod history;
mod manifest;
mod precondition;
mod space;
mod steady;

use etude_options::Failed;

pub use command::{fill_main, fragments_main};
pub use command_age::age_main;
pub use command_precondition::precondition_main;

/// Bytes in which all sizes are counted: a page, and the block of nearly all file systems.
pub(crate) const BLOCK: u64 = 4096;

/// The longest duration of an option, ns.
pub(crate) const MOST_NS: u64 = 10_000_000_000_000_000;

/// The machine does not allow it.
pub(crate) fn machine(what: impl std::fmt::Display, error: &std::io::Error) -> Failed {
    (format!("{what}: {}", etude_micro::exit::said(error)), 5)
}
