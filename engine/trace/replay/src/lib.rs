//! Replaying recorded I/O in time (docs/howto/replay.md).
//!
//! A script becomes a roll (`compile.rs`; `order.rs` says who has to wait for whom; `roll.rs` is the file). A replay
//! (`replay.rs`) is a process that cannot leave its directory; in it each thread plays its calls (`player.rs`), by a clock
//! of its own (`clock.rs`), with live descriptors, mappings and queues of requests for recorded ones (`perform.rs`,
//! `table.rs`, `maps.rs`, `requests.rs`);
//! what is measured stands in shared memory (`shared.rs`) and is told at the end (`report.rs`, `report_text.rs`), and while it plays (`windows.rs`).

pub mod capture;
mod children;
mod clock;
mod command;
mod compile;
mod feed;
mod maps;
mod order;
mod other_results;
mod pages;
mod pass;
mod perform;
mod place;
mod player;
mod replay;
mod report;
mod report_text;
mod requests;
mod roll;
mod schedule;
mod shared;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod unplayed;
mod unrolled;
mod watch;
mod windows;

pub use command::{compile_main, needed_by, replay_main};
pub use compile::{Compiled, compile, compile_with};
pub use order::{Edge, Edges};
pub use pass::{Answers, Ended, Offered, Pass, Played};
pub use replay::Refused;
pub use report_text::time as time_text;
pub use roll::{Reading, Roll};
pub use schedule::{Changes, Score};
pub use shared::Sums;
pub use unrolled::{only_below, untouched};
