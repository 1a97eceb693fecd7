//! Load: a driver that offers requests by a schedule and reports windows, targets that it asks, and a server whose capacity
//! is known (docs/load.md).
//!
//! Read `target.rs` and `plan.rs` for what is asked and how, `driver.rs` and `run.rs` for one run, `options.rs` for what can
//! be asked for; `station.rs` for what the server is. `law.rs` and `schedule.rs` draw, `http.rs` reads what is on the wire,
//! `tally.rs` and `summary.rs` say what happened (`report_line.rs`: what is reported when), `telling.rs` as JSON and
//! `text_report.rs` for people.

mod argument;
mod chosen;
mod command;
mod data;
mod driver;
mod exit;
mod files;
mod http;
mod http_target;
mod known;
mod known_command;
mod law;
mod nfs;
mod nfs_url;
mod options;
mod plan;
mod poller;
mod progress;
mod report_line;
mod roll;
mod run;
mod schedule;
mod stalls;
mod station;
mod summary;
mod tally;
mod target;
mod telling;
mod text_report;
mod under_way;
mod url;
mod wanted;
mod window;
mod wire;

pub use command::load_main;
pub use known_command::known_server_main;
