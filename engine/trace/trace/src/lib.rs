//! The file of a recording (docs/reference/trace-format.md): what a program's threads asked of the kernel, when, with which
//! result. Written as a stream, read as one, in bounded memory.
//!
//! `frame.rs` is the file's outer form, `chunk.rs` how events become a few bytes each; `order.rs` puts those of several
//! threads in order of time; `print.rs`, `columns.rs` and `import.rs` are what becomes of a trace, and where one can
//! come from; `files.rs` says which file each event is about, `window.rs` what of a recorded replay is replayed.

mod chunk;
mod columns;
mod dictionary;
mod event;
mod files;
mod frame;
pub mod import;
mod meta;
mod order;
pub mod ordinary;
mod print;
mod reader;
mod scheduling;
mod varint;
mod window;
pub mod words;
mod writer;

/// What else is made of the same parts.
pub mod parts {
    pub use crate::chunk::{Decoder, Encoder, Head, MOST_EVENTS};
    pub use crate::frame::{HEAD, Kind, checked, head};
    pub use crate::varint::{put, take, unzigzag, zigzag};
}

pub use columns::columns;
pub use event::{Event, Text};
pub use frame::Error;
pub use meta::{Clock, Footer, Found, Header, Image, Left, Meta, Open};
pub use order::{Failed, Ordered, in_order};
pub use print::print;
pub use reader::{Ending, Frame, Reader};
pub use scheduling::{Policy, Scheduling};
pub use writer::{MOST_EVENTS, Writer};
