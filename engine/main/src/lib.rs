//! The command lines of the engine's programs.

mod capture;
mod columns;
mod flame_graph;
mod measure;
mod serve;
mod tracing;

pub use capture::capture;
pub use columns::columns;
pub use etude_record::main as record;
pub use flame_graph::flame_graph;
pub use measure::measure;
pub use serve::serve;
pub use tracing::trace;
