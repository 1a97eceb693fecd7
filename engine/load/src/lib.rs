//! Load: a server whose capacity is known, and an open-loop client that reports windows (docs/load.md).
//!
//! Read `station.rs` for what the server is, `client.rs` for one run of the client; `law.rs` draws, `http.rs` reads what is
//! on the wire, `tally.rs` says what happened in a window.

mod client;
mod command;
mod http;
mod known;
mod law;
mod poller;
mod station;
mod tally;
mod url;
mod window;
mod wire;

pub use command::{known_server_main, load_main};
