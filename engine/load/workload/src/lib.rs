//! Workloads: what files there are, and what is done with them, from knobs. Nothing here does I/O or looks at a clock.
//!
//! A [`Workload`] is a value for each knob. A [`FileSet`] is the files, directories and links that it has at some load;
//! a [`Stream`] is what is done with them, one [`Operation`] after another, without an end. Both are the same for the same
//! workload and seed on every machine: all arithmetic is on integers, or on floats by operations that IEEE 754 defines
//! exactly, and logarithms and powers are computed by the same code everywhere.

mod check;
mod choice;
mod fileset;
#[cfg(test)]
mod fileset_tests;
mod iosize;
mod kind;
mod knobs;
mod law;
mod mix;
#[cfg(test)]
mod model_tests;
mod parse;
mod permutation;
mod presets;
mod random;
mod runs;
mod slots;
mod state;
mod stream;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod testing;
mod text;
#[cfg(test)]
mod text_tests;
mod zipf;

pub use fileset::{Directory, File, FileSet, Link};
pub use kind::{Kind, Object, Operation};
pub use knobs::Workload;
pub use stream::Stream;
