//! Recording a program's I/O without disturbing it (docs/recording.md).
//!
//! A launcher stays attached for exec, fork, clone and exit alone (`rewrite/tracer.rs`). At each exec it maps the hook
//! into the new image and writes jumps to it over the program's own `syscall` instructions (`rewrite/image.rs`,
//! `patch.rs`); the hook makes the call and writes a record into its thread's ring (`hook.rs`, `layout.rs`), which the
//! launcher empties into the trace (`ring.rs`, `sink.rs`). Where root asks, bpftrace looks instead (`ebpf/`).

#![cfg(target_arch = "x86_64")]

mod command;
mod ebpf;
mod queue;
mod record;
mod rewrite;
mod sink;

pub use command::main;
