//! The actions of a program on files, with their times, without the program (docs/howto/scripts.md): a script.

mod check;
mod command;
mod export;
mod from_trace;
mod hash;
mod import;
mod model;
mod names;
pub mod ops;
mod parse;
mod prepare;
mod snapshot;
mod text;
mod times;
mod untouched;
mod world;
mod wrong;

pub use check::{MOST_MOVED, check};
pub use command::{events, main};
pub use export::{Exported, iolog};
pub use from_trace::{Kept, Options, Report, from_trace};
pub use hash::random_key;
pub use import::{Imported, import};
pub use model::{Action, Called, Dropped, Needed, Script, Step, UNCOUNTED, UNKNOWN, What};
pub use names::{Substitution, Why};
pub use parse::{Parsed, parse};
pub use prepare::{
    PREPARED, Preparation, Prepared, Refused, Shared, main as prepare_main, planted_link, prepare,
    prepare_sharing, room_of,
};
pub use snapshot::{Limits, snapshot};
pub use text::{step as step_text, write};
pub use untouched::Untouched;
pub use wrong::Wrong;
