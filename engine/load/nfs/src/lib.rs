//! NFS version 3 spoken directly over TCP (RFC 1813; RPC: RFC 5531; the port mapper: RFC 1833), for offering load.
//!
//! Read `record.rs` for how messages stand in a stream, `rpc.rs` for what is around each, `call.rs` and `reply.rs` for what is
//! asked and answered; `connection.rs` has many calls under way at once, `client.rs` one at a time. Types of what is asked are
//! those of `nfs3_types`; answers are read by `xdr.rs`, which never makes room for what has not come.

mod call;
mod client;
mod connection;
mod export;
mod failure;
mod handle;
mod record;
mod reply;
mod rpc;
mod socket;
mod xdr;

pub use call::Call;
pub use client::{Client, Mounted};
pub use connection::Connection;
pub use export::Export;
pub use failure::Failure;
pub use handle::Handle;
pub use record::{MOST_BYTES, Records};
pub use reply::{Attributes, Entries, Entry, Form, Info, Space};
pub use rpc::Credentials;

/// Readers of answers' bodies.
pub mod answers {
    pub use crate::reply::{
        access, attributes, changed, committed, created, data, entries, info, looked_up, renamed, space,
        target, written,
    };
}
