//! What a program did to files, and when, without the program (docs/howto/scripts.md): a script.

mod check;
mod command;
mod export;
mod form;
mod from_trace;
mod hash;
mod import;
mod model;
mod names;
pub mod ops;
mod parse;
mod playable;
mod prepare;
mod snapshot;
mod text;
mod times;
mod untouched;
mod world;
mod wrong;

pub use check::check;
pub use command::{events, main};
pub use export::{Exported, iolog};
pub use from_trace::{Kept, Options, Report, from_trace};
pub use hash::random_key;
pub use import::{Imported, import};
pub use model::{Action, Called, Dropped, Needed, Script, Step, UNCOUNTED, UNKNOWN, What};
pub use names::{Substitution, Why};
pub use parse::{Parsed, parse};
pub use playable::MOST_MOVED;
pub use prepare::{
    PREPARED, Preparation, Prepared, Refused, Shared, main as prepare_main, planted_link, prepare,
    prepare_sharing, room_of,
};
pub use snapshot::{Limits, snapshot};
pub use text::{step as step_text, write};
pub use untouched::Untouched;
pub use wrong::Wrong;
