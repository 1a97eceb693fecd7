//! HTTP/1.1, as much of it as a load and a server need: messages, the socket, and a server as a target.

pub(crate) mod message;
pub(crate) mod target;
pub(crate) mod wire;
