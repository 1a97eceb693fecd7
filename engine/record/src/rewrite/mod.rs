//! Rewriting a running program's own code, on x86-64.

pub(crate) mod clock;
mod code;
pub(crate) mod cost;
mod elf;
pub(crate) mod hook;
#[cfg(test)]
mod hook_tests;
pub(crate) mod image;
pub(crate) mod layout;
mod maps;
mod native;
mod patch;
pub(crate) mod remote;
pub(crate) mod ring;
pub(crate) mod rings;
pub mod start;
pub mod stops;
pub(crate) mod tracer;
