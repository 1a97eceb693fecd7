//! What the micro-benchmarks `io` and `ipc` share.
//!
//! They follow the programs of Cambridge's L41 course: the same options, the same text, the same exit statuses of
//! sysexits(3). Nothing here starts a thread or reads /proc unless it is asked for: the time of a whole program is
//! one of the things that are measured with them.

pub mod buffer;
pub mod exit;
pub mod machine;
pub mod options;
pub mod pin;
pub mod report;
pub mod tlb;
pub mod usage;
