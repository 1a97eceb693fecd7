//! What a program did to files, and when, without the program (docs/scripts.md): a script.

mod check;
mod form;
mod model;
mod parse;
mod text;
mod wrong;

pub use check::check;
pub use model::{Action, Called, Needed, Script, Step, What};
pub use parse::{Parsed, parse};
pub use text::write;
pub use wrong::Wrong;
