//! Recording a program's I/O without disturbing it (docs/howto/recording.md).
//!
//! A launcher stays attached for exec, fork, clone and exit (`rewrite/tracer.rs`). On x86-64 it maps at each exec the
//! hook into the new image and writes jumps to it over the program's own `syscall` instructions (`rewrite/image.rs`,
//! `patch.rs`); the hook makes the call and writes a record into its thread's ring (`hook.S`, `layout.rs`), which the
//! launcher empties into the trace (`ring.rs`, `sink.rs`). The other way, by stops at each call, is that of every
//! processor (`ptrace_stops.rs`). Where root asks, bpftrace looks instead (`ebpf/`).

mod command;
mod ebpf;
mod output;
mod queue;
mod record;
mod requests;
mod rewrite;
mod scheduler;
mod sink;
mod urgent;

use etude_calls::Processor;

pub use command::main;

/// The processor whose calls are recorded.
const PROCESSOR: Processor = Processor::own().expect("a processor whose calls are in the table");
