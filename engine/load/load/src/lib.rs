//! Load: a generator that offers requests by a schedule and reports windows, targets that it asks, and a server whose capacity
//! is known (docs/howto/load.md).
//!
//! Read `run/target.rs` and `run/plan.rs` for what is asked and how, `run/` for one run, `options/` for what can be asked for,
//! `report/` for what is reported when. `http/`, `nfs/`, `files/` and `roll/` are what is loaded, `file_set/` the files of the
//! middle two; `known_server/` is the server.

mod command;
mod exit;
mod file_set;
mod files;
mod http;
mod known_server;
mod nfs;
mod options;
mod poller;
mod report;
mod roll;
mod run;

pub use command::load_main;
pub use known_server::known_server_main;
