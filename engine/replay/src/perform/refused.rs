//! What is never played: it would reach beyond the replay's directory, or what it means is not known.

use etude_calls::{Call, Kind};
use etude_trace::Event;

use super::Performer;

impl Performer {
    /// Whether an attribute is one that means nothing to the kernel.
    pub(super) fn is_users(&self, event: &Event) -> bool {
        let name = event.call.row().arguments.iter().position(|kind| *kind == Kind::Name);
        name.is_none_or(|index| {
            let name = (event.arguments[index] as usize).checked_sub(1).and_then(|name| self.names.get(name));
            name.is_some_and(|name| name.as_bytes().starts_with(b"user."))
        })
    }
}

/// Commands of fcntl: flags of descriptors, and what is asked of pipes and seals. Others send signals to processes, or
/// mean something in memory.
const HARMLESS: [u64; 6] = [1, 2, 3, 4, 1032, 1034];

/// What is never played: it would reach beyond the replay's directory, or what it means is not known.
pub(super) fn refused(name: &str, event: &Event) -> bool {
    match name {
        "openat2" | "open_by_handle_at" | "name_to_handle_at" | "ioctl" | "sync" | "vmsplice" | "tee" => true,
        "fcntl" => !HARMLESS.contains(&event.arguments[1]),
        "mknod" | "mknodat" => {
            let mode = event.arguments[if name == "mknod" { 1 } else { 2 }] as u32 & libc::S_IFMT;
            !matches!(mode, 0 | libc::S_IFREG | libc::S_IFIFO)
        }
        "memfd_create" | "eventfd2" | "inotify_add_watch" => true,
        _ => {
            name.starts_with("io_")
                || event.call.row().arguments.contains(&Kind::Socket)
                || is_of_sockets(event.call)
        }
    }
}

fn is_of_sockets(call: Call) -> bool {
    const SOCKETS: [&str; 8] =
        ["socket", "socketpair", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "accept4"];
    SOCKETS.contains(&call.name())
}
