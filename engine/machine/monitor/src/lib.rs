//! The state of the machine while trials run (docs/howto/monitor.md).
//!
//! Read `monitor.rs` for one run from start to end, `sampler.rs` for one sample, `scan.rs` for how the busiest processes
//! are found at little cost.

mod command;
mod cost;
mod disks;
mod frequency;
mod kept;
mod keyed;
mod lines;
mod machine;
mod messages;
mod monitor;
mod net;
mod output;
mod pressure;
mod process;
mod sampler;
mod scan;
mod source;
mod temperature;
mod text;
mod throttle;
mod ticks;
mod top;
mod wait;

#[cfg(test)]
mod lines_tests;
#[cfg(test)]
mod sampler_tests;
#[cfg(test)]
mod top_tests;
#[cfg(test)]
mod tree;

pub use command::monitor_main;

use etude_options::Failed;
