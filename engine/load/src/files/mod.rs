//! Load on a mounted directory (docs/file-load.md).
//!
//! Read `call.rs` for what a request is in system calls, `turn.rs` for who makes it, `state.rs` and `calls.rs` for a run by
//! threads, `ring.rs` for one by io_uring; `populate.rs` puts the files there.

mod call;
mod calls;
mod data;
mod errno;
mod handles;
mod order;
mod paths;
mod populate;
mod quantile;
mod space;
mod state;
mod turn;
mod wait;
