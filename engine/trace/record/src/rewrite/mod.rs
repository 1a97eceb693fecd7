//! Recording a running program. On x86-64 its own code is rewritten; its calls can stop it on every processor.

pub(crate) mod clock;
pub(crate) mod found;
pub(crate) mod remote;
// Without a hook nobody writes to the rings, and each call goes to the sink at once.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod layout;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod maps;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod ring;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod rings;

mod attach;
mod family;
pub(crate) mod queues;
pub(crate) mod rights;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod stops;
pub(crate) mod tracer;
pub(crate) mod way;

// The hook, and what brings it into a program.
#[cfg(target_arch = "x86_64")]
mod batch;
#[cfg(target_arch = "x86_64")]
mod borrow;
#[cfg(target_arch = "x86_64")]
mod breakpoints;
#[cfg(target_arch = "x86_64")]
pub(crate) mod code;
#[cfg(target_arch = "x86_64")]
pub(crate) mod cost;
#[cfg(target_arch = "x86_64")]
mod elf;
#[cfg(target_arch = "x86_64")]
mod filters;
#[cfg(target_arch = "x86_64")]
mod half;
#[cfg(all(test, target_arch = "x86_64"))]
mod half_tests;
#[cfg(target_arch = "x86_64")]
pub(crate) mod hook;
#[cfg(all(test, target_arch = "x86_64"))]
mod hook_tests;
#[cfg(target_arch = "x86_64")]
mod image;
#[cfg(target_arch = "x86_64")]
mod inside;
#[cfg(not(target_arch = "x86_64"))]
#[path = "outside.rs"]
mod inside;
#[cfg(target_arch = "x86_64")]
mod native;
#[cfg(target_arch = "x86_64")]
mod patch;
#[cfg(target_arch = "x86_64")]
mod setup;
#[cfg(target_arch = "x86_64")]
mod share;
#[cfg(target_arch = "x86_64")]
mod slow;
#[cfg(target_arch = "x86_64")]
mod writing;
