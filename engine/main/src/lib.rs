//! The command lines of the engine's programs.

mod capture;
mod columns;
mod measure;
mod serve;
mod tracing;

pub use capture::capture;
pub use columns::columns;
pub use etude_record::main as record;
pub use measure::measure;
pub use serve::serve;
pub use tracing::trace;
