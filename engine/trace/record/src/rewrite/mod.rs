//! Recording a running program. On x86-64 its own code is rewritten; its calls can stop it on every processor.

pub(crate) mod clock;
pub(crate) mod preparation;
pub(crate) mod remote;
// Without a hook nobody writes to the rings, and each call goes to the queue at once.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod layout;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod maps;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod ring;

mod attach;
pub(crate) mod exec_start;
pub(crate) mod method;
mod process_tree;
pub(crate) mod ptrace_stops;
pub(crate) mod queues;
pub(crate) mod rights;
pub(crate) mod signals;
pub(crate) mod tracer;

// The hook, and what brings it into a program.
#[cfg(target_arch = "x86_64")]
mod batch;
#[cfg(target_arch = "x86_64")]
mod breakpoint_sites;
#[cfg(target_arch = "x86_64")]
mod breakpoints;
#[cfg(target_arch = "x86_64")]
pub(crate) mod code;
#[cfg(target_arch = "x86_64")]
mod descriptor_passing;
#[cfg(target_arch = "x86_64")]
mod elf;
#[cfg(target_arch = "x86_64")]
mod filters;
#[cfg(target_arch = "x86_64")]
mod frame;
#[cfg(target_arch = "x86_64")]
pub(crate) mod hook;
#[cfg(target_arch = "x86_64")]
pub(crate) mod hook_cost;
#[cfg(all(test, target_arch = "x86_64"))]
mod hook_tests;
#[cfg(target_arch = "x86_64")]
mod image;
#[cfg(target_arch = "x86_64")]
mod image_patching;
#[cfg(not(target_arch = "x86_64"))]
#[path = "outside.rs"]
mod image_patching;
#[cfg(target_arch = "x86_64")]
mod in_flight_record;
#[cfg(all(test, target_arch = "x86_64"))]
mod in_flight_record_tests;
#[cfg(target_arch = "x86_64")]
mod in_process;
#[cfg(target_arch = "x86_64")]
mod patch;
#[cfg(target_arch = "x86_64")]
mod remote_process;
#[cfg(target_arch = "x86_64")]
mod setup;
#[cfg(target_arch = "x86_64")]
mod writing;
