//! Which calls cannot be replayed whatever they are about, and what errors say of a path.

use etude_calls::{Call, Kind, Processor, Range, RangeLock};
use etude_trace::Event;

use crate::check::exceeds;

/// Why a call can be none that was recorded, though a file holds it: files are not trusted.
pub(crate) fn impossible(event: &Event) -> Option<&'static str> {
    let mut normal = event.arguments;
    event.call.normalise(Processor::X86_64, &mut normal);
    if normal != event.arguments {
        return Some("arguments that no call can have");
    }
    if exceeds(event.call, &event.arguments, event.result).is_some() {
        return Some("result that no call can have");
    }
    let ends_early = |index| matches!(event.call.kind(&event.arguments, index), Kind::Path | Kind::Name);
    let nonsense = event.texts.iter().any(|text| ends_early(text.argument.into()) && text.bytes.contains(&0));
    nonsense.then_some("path with a zero byte")
}

/// How many bytes of a text a recording keeps at most, by its technique: who has so many may have had more.
pub(crate) fn cut_at(technique: &str) -> usize {
    match technique {
        "rewrite" | "ptrace" => 1899,
        "ebpf" => 191,
        _ => usize::MAX,
    }
}

/// Why no call of this name is replayed.
pub(crate) fn never(name: &str) -> Option<&'static str> {
    Some(match name {
        "socket" | "connect" | "accept" | "accept4" | "bind" | "sendmmsg" | "recvmmsg" => "socket",
        "io_setup" | "io_destroy" | "io_uring_setup" | "io_uring_register" => {
            "queue of requests: a replay makes its own"
        }
        "futex" => "neither a wait nor a wake",
        "memfd_create" => "file in memory",
        "eventfd2" | "inotify_add_watch" => "events",
        "openat2" => "its flags are not recorded",
        "open_by_handle_at" | "name_to_handle_at" => "handle of a file",
        "vmsplice" | "tee" => "pipe",
        _ => return None,
    })
}

/// Why a call of this kind is not replayed, though its descriptor or path be.
pub(crate) fn refused(event: &Event) -> Option<&'static str> {
    let words = &event.arguments;
    match (event.call.name(), words[1]) {
        // F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, pipe sizes
        ("fcntl", 0 | 1 | 2 | 3 | 4 | 1030 | 1031 | 1032) => None,
        ("fcntl", _) if RangeLock::of(event.call, words).is_some() => refused_lock(event),
        ("fcntl", _) => Some("what its structure held is not recorded"),
        // FS_IOC_GETFLAGS, FIONREAD, FIOCLEX, FIONCLEX, TCGETS
        ("ioctl", 0x8008_6601 | 0x541b | 0x5451 | 0x5450 | 0x5401) => None,
        ("ioctl", _) => Some("what its structure held is not recorded"),
        ("getcwd", _) if event.result == -2 => Some("path of a directory that was removed"),
        _ => match event.result {
            -14 => Some("bad address"),
            -4 | -530..=-512 => Some("interrupted"),
            -38 => Some("not in the recorded kernel"),
            _ => None,
        },
    }
}

/// Why a lock of a range is not replayed.
fn refused_lock(event: &Event) -> Option<&'static str> {
    match event.result {
        0 if event.text(2).is_some_and(|text| Range::of(text).is_some()) => None,
        -4 | -530..=-512 => Some("interrupted"),
        // Who has it then is a matter of time: of calls that overlap a trace does not say which came first.
        -11 => Some("lock that was refused, and not waited for"),
        -35 => Some("lock for which it would have waited for ever"),
        0 => Some("what its structure held is not recorded"),
        _ => Some("failed"),
    }
}

/// The same by fcntl, of an ioctl that sets whether a descriptor is closed at exec: a replay makes no ioctl.
pub(crate) fn by_fcntl(event: &Event) -> Option<Event> {
    const F_SETFD: u64 = 2;
    let [descriptor, request, ..] = event.arguments;
    // FIONCLEX, FIOCLEX
    if event.call.name() != "ioctl" || request & !1 != 0x5450 || event.result < 0 {
        return None;
    }
    let call = Call::named("fcntl").expect("it is in the table");
    Some(Event { call, arguments: [descriptor, F_SETFD, request & 1, 0, 0, 0], ..event.clone() })
}

/// Whether an error tells that there is something at the path.
pub(crate) fn tells_of_a_file(name: &str, errno: i64) -> bool {
    // EEXIST, EXDEV, EISDIR, EINVAL (of readlink), ENOTEMPTY, ENODATA, EOPNOTSUPP; EACCES of access
    matches!(errno, 17 | 18 | 21 | 39 | 61 | 95)
        || errno == 22 && name.starts_with("readlink")
        || errno == 13 && (name == "access" || name.starts_with("faccessat"))
}

/// The part of the calling process that a path in `/proc` goes through.
pub(crate) enum Itself {
    Root,
    Directory,
    Descriptor(i32),
}

/// The part of the program itself that a path goes through, and what of the path follows; None for all others.
pub(crate) fn through_itself(path: &[u8]) -> Option<(Itself, &[u8])> {
    let begins = [&b"/proc/self/"[..], b"/proc/thread-self/"];
    let inside = match path {
        b"/dev/stdin" => b"fd/0",
        b"/dev/stdout" => b"fd/1",
        b"/dev/stderr" => b"fd/2",
        _ if path.starts_with(b"/dev/fd/") => &path[b"/dev/".len()..],
        _ => begins.iter().find_map(|begin| path.strip_prefix(*begin))?,
    };
    let (part, rest) = first_of(inside);
    match part {
        b"root" => Some((Itself::Root, rest)),
        b"cwd" => Some((Itself::Directory, rest)),
        b"fd" => {
            let (number, rest) = first_of(rest);
            let number = std::str::from_utf8(number).ok()?.parse().ok()?;
            Some((Itself::Descriptor(number), rest))
        }
        _ => None,
    }
}

/// The first component of a relative path, and what follows it.
fn first_of(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    let (first, rest) = path.split_at(end);
    let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
    (first, &rest[slashes..])
}

/// Whether what is there is no file: reading it is not reading a disk, and no replay can make it.
pub(crate) fn is_device(path: &[u8]) -> bool {
    path.starts_with(b"/dev/") && !path.starts_with(b"/dev/shm/") && path != b"/dev/shm"
}

/// Whether what stands there is made by the kernel when it is read.
pub(crate) fn is_made_up(path: &[u8]) -> bool {
    path.starts_with(b"/proc/") || path.starts_with(b"/sys/")
}

/// The flag by which a call with an empty path is about the descriptor itself.
pub(crate) fn is_about_its_descriptor(event: &Event) -> bool {
    let words = &event.arguments;
    const EMPTY_PATH: u64 = 0x1000;
    match event.call.name() {
        "newfstatat" => words[3] & EMPTY_PATH != 0,
        "statx" => words[2] & EMPTY_PATH != 0,
        "faccessat2" => words[3] & EMPTY_PATH != 0,
        "fchownat" | "linkat" => words[4] & EMPTY_PATH != 0,
        "utimensat" | "futimesat" => words[1] == 0,
        _ => false,
    }
}

/// Whether it makes a ring whose requests a thread of the kernel takes (IORING_SETUP_SQPOLL). Older traces have an address
/// in place of the flags.
pub(crate) fn is_polled(event: &Event) -> bool {
    const SQPOLL: u64 = 2;
    const FLAGS: std::ops::Range<u64> = 0..1 << 24;
    let flags = event.arguments[1];
    event.call.name() == "io_uring_setup"
        && event.result >= 0
        && FLAGS.contains(&flags)
        && flags & SQPOLL != 0
}

/// Whether a request moves data, or may: opcodes of io_uring that only open, ask, wait or cancel do not.
pub(crate) fn may_move(event: &Event) -> bool {
    match (event.call.name(), event.arguments[0]) {
        // NOP, FSYNC, POLL_*, TIMEOUT*, ACCEPT, ASYNC_CANCEL, LINK_TIMEOUT, CONNECT, FALLOCATE, OPENAT, CLOSE,
        // FILES_UPDATE, STATX
        ("sqe_other", 0 | 3 | 6..=7 | 11..=21) => false,
        // FADVISE, MADVISE, OPENAT2, EPOLL_CTL, PROVIDE_BUFFERS, REMOVE_BUFFERS, SHUTDOWN, names, MSG_RING, attributes, SOCKET
        ("sqe_other", 24..=25 | 28..=29 | 31..=32 | 34..=45) => false,
        // WAITID, FUTEX_*, FIXED_FD_INSTALL, FTRUNCATE, BIND, LISTEN, EPOLL_WAIT, PIPE
        ("sqe_other", 50..=57 | 59 | 62) => false,
        ("sqe_fsync" | "sqe_fdatasync" | "iocb_fsync" | "iocb_fdatasync", _) => false,
        _ => true,
    }
}

/// How many requests a call handed over, as far as it says.
pub(crate) fn handed_over(event: &Event) -> u64 {
    const SQ_WAKEUP: u64 = 2;
    let result = u64::try_from(event.result).unwrap_or(0);
    match event.call.name() {
        "io_submit" => result,
        // Where a thread of the kernel takes requests, they are not counted by the call that wakes it.
        "io_uring_enter" if event.arguments[3] & SQ_WAKEUP != 0 => result.max(1),
        "io_uring_enter" => result,
        _ => 0,
    }
}
