//! Load: a driver that offers requests by a schedule and reports windows, targets that it asks, and a server whose capacity
//! is known (docs/load.md).
//!
//! Read `target.rs` and `plan.rs` for what is asked and how, `driver.rs` and `run.rs` for one run, `options.rs` for what can
//! be asked for; `mmc_queue.rs` for what the server is. `distribution.rs` and `schedule.rs` draw, `http.rs` reads what is on the wire,
//! `tally.rs` and `summary.rs` say what happened (`report_line.rs`: what is reported when), `window_writer.rs` as JSON and
//! `text_report.rs` for people.

mod command;
mod cpu_demand;
mod distribution;
mod driver;
mod exit;
mod files;
mod gate;
mod http;
mod http_target;
mod incompressible_data;
mod known_server;
mod known_server_command;
mod mmc_queue;
mod named_workload;
mod nfs;
mod nfs_url;
mod options;
mod outstanding;
mod plan;
mod poller;
mod population;
mod progress;
mod report_line;
mod roll;
mod run;
mod schedule;
mod stalls;
mod summary;
mod tally;
mod target;
mod text_report;
mod url;
mod window;
mod window_writer;
mod wire;

pub use command::load_main;
pub use known_server_command::known_server_main;
