//! What a program did to files, and when, without the program (docs/scripts.md): a script.

mod model;

pub use model::{Action, Called, Needed, Script, Step, What};
