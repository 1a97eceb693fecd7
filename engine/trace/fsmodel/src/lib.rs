//! One model of what system calls do to descriptors, working directories, names, links and sizes.
//!
//! [`descriptor_change`], [`name_change`], [`size_change`] and [`ends`] say what one call did, by its row (`rows.rs`);
//! they need no state; nor does [`subject`], which file a call is about. [`Table`] holds the descriptors of a process, [`resolve`] leads a path through links, and [`Model`]
//! holds all that calls find and change. Calls are given with their results: the model predicts no error.
//!
//! It depends on `calls`, the table of what arguments are, and is therefore among `engine/trace` and not in `engine/core`.
//! `tests/kernel.rs` compares it with the kernel.

mod apply;
mod changes;
mod data;
pub mod flags;
mod model;
mod names;
mod paths;
mod requests;
mod rows;
mod subject;
mod table;

pub use changes::{
    DescriptorChange, End as DataEnd, NameChange, SizeChange, appends, descriptor_change, ends, follows,
    is_link_target, is_of_descriptors, is_of_directory, name_change, name_operation, open_flags, size_change,
};
pub use data::from_positions;
pub use model::{Description, Effect, End, Model, Moved, Opened, Process};
pub use names::{Names, Node, NodeId, NodeKind, ROOT, unknown_file};
pub use paths::{EMPTY, SLASH, directory_of, key, moved, named, resolve, written};
pub use requests::Requests;
pub use rows::{Done, Opens};
pub use subject::{Subject, subject};
pub use table::{Closed, Reuse, Slot, Table};
