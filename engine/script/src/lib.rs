//! What a program did to files, and when, without the program (docs/scripts.md): a script.

mod check;
mod command;
mod form;
mod model;
pub mod ops;
mod parse;
mod text;
mod times;
mod world;
mod wrong;

pub use check::check;
pub use command::{events, main};
pub use model::{Action, Called, Needed, Script, Step, What};
pub use parse::{Parsed, parse};
pub use text::write;
pub use wrong::Wrong;
