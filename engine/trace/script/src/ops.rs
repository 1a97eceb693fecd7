//! Scripts made of scripts. Each of these functions leaves its input as it is, and gives a script that is sound
//! (`check`) if its input was.

mod apart;
pub(crate) mod builder;
mod cut;
mod glob;
mod moved;
mod pipes;
mod positions;
mod prune;
mod repeat;
mod scale;
mod select;
mod side;
#[cfg(test)]
mod tests;

pub use cut::cut;
pub use glob::Glob;
pub use repeat::{Rounds, repeat};
pub use scale::{Sizes, scale_gaps, scale_sizes};
pub use select::{Class, filter, only_below, only_files};
pub use side::{clone, merge};

use crate::model::Script;

/// What was asked for cannot be made of this script; one line that says why and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

type Made = Result<Script, Refused>;
