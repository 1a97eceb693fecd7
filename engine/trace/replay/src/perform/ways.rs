//! How each call is made again; and what is never played: it would reach beyond the replay's directory, or what it means
//! is not known.

use std::sync::LazyLock;

use etude_calls::{Call, Kind, Processor, Role};
use etude_trace::Event;

use super::Performer;
use super::locks::{is_of_range, may_wait};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Close,
    CloseRange,
    Duplicate,
    Memory,
    Pipe,
    /// A pair of sockets.
    Sockets,
    /// One that is not connected.
    Socket,
    Connect,
    Accept,
    Control,
    Lock,
    /// `creat`, which cannot be given flags.
    Create,
    /// With the place of the argument that says what it makes.
    Node(usize),
    Attribute,
    Asynchronous(Role),
    /// Its order says all.
    Order,
    Ordinary,
    Never,
}

/// What is known of a call before any is made.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub way: Way,
    pub number: u16,
    pub waits: Waits,
}

/// By which call a stream of bytes moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `read` and `write`.
    File,
    /// `recvfrom` and `sendto`.
    Socket,
    /// `recvmsg` and `sendmsg`.
    Message,
}

/// For what it waits in the kernel that other threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    Never,
    Lock,
    /// For data in a pipe, if it reads one.
    Reads(By),
    /// For room in a pipe.
    Writes(By),
    Both,
    Connection,
}

static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| Call::all().map(plan).collect());

/// By their codes, from 1.
pub fn plans() -> &'static [Plan] {
    &PLANS
}

fn plan(call: Call) -> Plan {
    if let Some(role) = call.role().filter(|_| !call.is_unknown_request()) {
        return Plan { way: Way::Asynchronous(role), number: 0, waits: Waits::Never };
    }
    if call.name() == "futex" {
        return Plan { way: Way::Order, number: 0, waits: Waits::Never };
    }
    match Processor::own().and_then(|processor| call.number(processor)) {
        Some(number) => Plan { way: way(call), number, waits: waits(call.name()) },
        None => Plan { way: Way::Never, number: 0, waits: Waits::Never },
    }
}

fn waits(name: &str) -> Waits {
    match name {
        "flock" | "fcntl" => Waits::Lock,
        "read" | "readv" => Waits::Reads(By::File),
        "write" | "writev" => Waits::Writes(By::File),
        "recvfrom" => Waits::Reads(By::Socket),
        "sendto" => Waits::Writes(By::Socket),
        "recvmsg" => Waits::Reads(By::Message),
        "sendmsg" => Waits::Writes(By::Message),
        "splice" | "sendfile" => Waits::Both,
        "accept" | "accept4" => Waits::Connection,
        _ => Waits::Never,
    }
}

fn way(call: Call) -> Way {
    match call.name() {
        "close" => Way::Close,
        "close_range" => Way::CloseRange,
        "dup2" | "dup3" => Way::Duplicate,
        "mmap" | "munmap" | "mremap" | "mprotect" | "msync" | "madvise" | "brk" => Way::Memory,
        "pipe" | "pipe2" => Way::Pipe,
        "fcntl" => Way::Control,
        "flock" => Way::Lock,
        "creat" => Way::Create,
        "mknod" => Way::Node(1),
        "mknodat" => Way::Node(2),
        "openat2" | "open_by_handle_at" | "name_to_handle_at" | "ioctl" | "sync" | "vmsplice" | "tee" => {
            Way::Never
        }
        "memfd_create" | "eventfd2" | "inotify_add_watch" => Way::Never,
        "socketpair" => Way::Sockets,
        "socket" => Way::Socket,
        "connect" => Way::Connect,
        "accept" | "accept4" => Way::Accept,
        // Of sockets that a replay has, which are pairs.
        "sendto" | "recvfrom" | "sendmsg" | "recvmsg" | "shutdown" => Way::Ordinary,
        "sendmmsg" | "recvmmsg" => Way::Never,
        name if name.starts_with("io_") || call.row().arguments.contains(&Kind::Socket) => Way::Never,
        name if name.ends_with("xattr") => Way::Attribute,
        _ => Way::Ordinary,
    }
}

/// Commands of fcntl: flags of descriptors, and what is asked of pipes and seals; beside them locks of ranges. Others send signals to processes, or
/// mean something in memory.
const HARMLESS: [u64; 6] = [1, 2, 3, 4, 1032, 1034];
/// F_SETPIPE_SZ, up to what any user may ask for by default.
const SIZED: u64 = 1031;
const LARGEST_PIPE: u64 = 1 << 20;

pub fn is_harmless(event: &Event) -> bool {
    let [_, command, size, ..] = event.arguments;
    is_of_range(event) || HARMLESS.contains(&command) || command == SIZED && size <= LARGEST_PIPE
}

/// Whether a node is a file, a pipe, or a socket, which nobody serves.
pub fn is_no_device(mode: u64) -> bool {
    matches!(mode as u32 & libc::S_IFMT, 0 | libc::S_IFREG | libc::S_IFIFO | libc::S_IFSOCK)
}

/// Whether a socket, or a pair of them, is one of Unix streams, which a replay connects to none but its own.
pub fn is_stream_pair(event: &Event) -> bool {
    let [domain, kind, protocol, ..] = event.arguments;
    let flags = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u64;
    domain == libc::AF_UNIX as u64 && kind & !flags == libc::SOCK_STREAM as u64 && protocol == 0
}

impl Performer {
    /// True if a call may have to wait in the kernel until another thread of the replay has done something.
    pub fn may_wait(&self, event: &Event) -> bool {
        let pipe =
            |(kind, word): (&Kind, &u64)| *kind == Kind::Fd && self.process.table.is_pipe(*word as i64);
        match plans()[usize::from(event.call.code()) - 1].waits {
            Waits::Never => false,
            Waits::Lock => may_wait(event),
            Waits::Connection => true,
            _ => event.call.row().arguments.iter().zip(&event.arguments).any(pipe),
        }
    }

    /// Whether an attribute is one that means nothing to the kernel.
    pub(super) fn is_users(&self, event: &Event) -> bool {
        let name = event.call.row().arguments.iter().position(|kind| *kind == Kind::Name);
        name.is_none_or(|index| {
            let name = (event.arguments[index] as usize).checked_sub(1).and_then(|name| self.names.get(name));
            name.is_some_and(|name| name.as_bytes().starts_with(b"user."))
        })
    }
}

/// Whether a call is not made in any replay: known of it alone, before it is played.
pub fn is_never_played(event: &Event) -> bool {
    match plans()[usize::from(event.call.code()) - 1].way {
        Way::Never => true,
        Way::Control => !matches!(event.arguments[1], 0 | 1030) && !is_harmless(event),
        Way::Sockets | Way::Socket => !is_stream_pair(event),
        // The number of the connection.
        Way::Connect | Way::Accept => event.arguments[1] == 0,
        Way::Node(mode) => !is_no_device(event.arguments[mode]),
        _ => false,
    }
}

/// Whether it is a request, which is done later.
pub fn is_done_later(event: &Event) -> bool {
    matches!(plans()[usize::from(event.call.code()) - 1].way, Way::Asynchronous(Role::Request { .. }))
}

/// Whether it asks nothing of files itself: it is about requests, or about other threads.
pub fn is_between(event: &Event) -> bool {
    matches!(
        plans()[usize::from(event.call.code()) - 1].way,
        Way::Asynchronous(Role::Handover { .. } | Role::Completion { .. }) | Way::Order
    )
}

/// Whether a call is about memory alone, and asks no file for anything.
pub fn is_memory(event: &Event) -> bool {
    plans()[usize::from(event.call.code()) - 1].way == Way::Memory && event.call.name() != "msync"
}
