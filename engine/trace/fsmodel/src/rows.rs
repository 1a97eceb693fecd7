//! A call that was made, as the model reads it; and the effect of each call by its name: a row for each in the table of
//! `calls`.

use std::sync::LazyLock;

use etude_calls::{Call, Kind, Moves};
use smallvec::SmallVec;

use crate::flags::{O_CLOEXEC, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY};

/// A call, its arguments as a trace or a script holds them, its texts and its result.
pub struct Done<'a> {
    pub call: Call,
    pub arguments: &'a [u64; 6],
    /// -errno for an error.
    pub result: i64,
    /// Texts with the arguments in which they stand.
    texts: SmallVec<[(u8, &'a [u8]); 2]>,
}

impl<'a> Done<'a> {
    pub fn new(
        call: Call,
        arguments: &'a [u64; 6],
        result: i64,
        texts: impl Iterator<Item = (u8, &'a [u8])>,
    ) -> Done<'a> {
        Done { call, arguments, result, texts: texts.collect() }
    }

    /// The first text of an argument.
    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.texts().find(|(at, _)| *at == index).map(|(_, text)| text)
    }

    /// All texts, with their arguments.
    pub fn texts(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.texts.iter().map(|(at, text)| (usize::from(*at), *text))
    }

    /// True if the result is an error.
    pub fn failed(&self) -> bool {
        (-4095..0).contains(&self.result)
    }

    pub fn kind(&self, index: usize) -> Kind {
        self.call.kind(self.arguments, index)
    }

    /// An argument as a descriptor.
    pub fn descriptor(&self, index: usize) -> i32 {
        self.arguments[index] as i32
    }

    /// The descriptors of a pipe or of a pair of sockets; None where they are not recorded.
    pub fn pair(&self) -> Option<[i32; 2]> {
        let (_, text) = self.texts().find(|(_, text)| text.len() == 8)?;
        Some([0, 4].map(|at| i32::from_le_bytes(text[at..at + 4].try_into().expect("four bytes"))))
    }
}

/// The object behind a new descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// The file that the call names.
    Path,
    /// A file of which only a handle is known.
    Handle,
    /// A file in memory.
    Memory,
    Socket,
    /// A socket that is connected.
    Accepted,
    /// A counter of events.
    Events,
    /// A queue of requests.
    Ring,
}

/// The effect of a call, by its name alone.
#[derive(Clone, Copy)]
pub struct Row {
    pub descriptors: OfDescriptors,
    pub names: OfNames,
    pub follows: Follows,
    pub places: Places,
}

/// The place of flags.
#[derive(Clone, Copy)]
pub enum FlagsAt {
    Argument(usize),
    Always(u64),
}

impl FlagsAt {
    pub fn of(self, done: &Done) -> u64 {
        match self {
            FlagsAt::Argument(index) => done.arguments[index],
            FlagsAt::Always(flags) => flags,
        }
    }
}

/// The effect on descriptors.
#[derive(Clone, Copy)]
pub enum OfDescriptors {
    Nothing,
    Opens(Opens, FlagsAt),
    OpensPair { sockets: bool, flags: FlagsAt },
    Dup,
    DupTo(FlagsAt),
    Close,
    CloseRange,
    Fcntl,
    Ioctl,
    Connect,
    Shutdown,
    Chdir,
    Fchdir,
}

/// The effect on names.
#[derive(Clone, Copy)]
pub enum OfNames {
    Nothing,
    Mkdir,
    Mknod { mode: usize },
    Symlink,
    Unlink,
    UnlinkAt,
    Rmdir,
    Rename,
    RenameAt2,
    Link,
    LinkAt,
}

/// True if a call goes through a link that is the last component of its path.
#[derive(Clone, Copy)]
pub enum Follows {
    Always,
    Never,
    /// Depends on the flags of open.
    Open(FlagsAt),
    /// With a bit of an argument, the first of its paths only.
    With(usize, u64),
    Without(usize, u64),
}

/// The direction of a transfer.
#[derive(Clone, Copy)]
pub enum Places {
    Nowhere,
    /// At the position of descriptor 0.
    Position,
    /// At argument 3, or, where that is -1, at the position.
    Argument3,
    /// Likewise, and argument 5 may have RWF_APPEND.
    WithFlags,
    /// From descriptor 1 to descriptor 0.
    Sendfile,
    /// From descriptor 0 to descriptor 2.
    Between,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    Call::all()
        .map(|call| Row {
            descriptors: of_descriptors(call.name()),
            names: of_names(call.name()),
            follows: follows_of(call.name()),
            places: places_of(call),
        })
        .collect()
});

/// The row of a call.
pub fn row(call: Call) -> Row {
    ROWS[usize::from(call.code()) - 1]
}

fn of_descriptors(name: &str) -> OfDescriptors {
    use FlagsAt::{Always, Argument};
    use OfDescriptors as Of;
    match name {
        "open" => Of::Opens(Opens::Path, Argument(1)),
        "openat" => Of::Opens(Opens::Path, Argument(2)),
        "creat" => Of::Opens(Opens::Path, Always(O_CREAT | O_TRUNC | O_WRONLY)),
        // Its flags stand in memory: it may read and write.
        "openat2" => Of::Opens(Opens::Path, Always(O_RDWR)),
        "open_by_handle_at" => Of::Opens(Opens::Handle, Argument(2)),
        "memfd_create" => Of::Opens(Opens::Memory, Argument(1)),
        "socket" => Of::Opens(Opens::Socket, Argument(1)),
        "accept" => Of::Opens(Opens::Accepted, Always(0)),
        "accept4" => Of::Opens(Opens::Accepted, Argument(3)),
        "eventfd2" => Of::Opens(Opens::Events, Argument(1)),
        // io_uring_install_fd has O_CLOEXEC always.
        "io_uring_setup" => Of::Opens(Opens::Ring, Always(O_RDWR | O_CLOEXEC)),
        "pipe" => Of::OpensPair { sockets: false, flags: Always(0) },
        "pipe2" => Of::OpensPair { sockets: false, flags: Argument(1) },
        "socketpair" => Of::OpensPair { sockets: true, flags: Argument(1) },
        "dup" => Of::Dup,
        "dup2" => Of::DupTo(Always(0)),
        "dup3" => Of::DupTo(Argument(2)),
        "close" => Of::Close,
        "close_range" => Of::CloseRange,
        "fcntl" => Of::Fcntl,
        "ioctl" => Of::Ioctl,
        "connect" => Of::Connect,
        "shutdown" => Of::Shutdown,
        "chdir" => Of::Chdir,
        "fchdir" => Of::Fchdir,
        _ => Of::Nothing,
    }
}

fn of_names(name: &str) -> OfNames {
    match name {
        "mkdir" | "mkdirat" => OfNames::Mkdir,
        "mknod" => OfNames::Mknod { mode: 1 },
        "mknodat" => OfNames::Mknod { mode: 2 },
        "symlink" | "symlinkat" => OfNames::Symlink,
        "unlink" => OfNames::Unlink,
        "unlinkat" => OfNames::UnlinkAt,
        "rmdir" => OfNames::Rmdir,
        "rename" | "renameat" => OfNames::Rename,
        "renameat2" => OfNames::RenameAt2,
        "link" => OfNames::Link,
        "linkat" => OfNames::LinkAt,
        _ => OfNames::Nothing,
    }
}

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const IN_DONT_FOLLOW: u64 = 0x0200_0000;

fn follows_of(name: &str) -> Follows {
    match name {
        "lstat" | "lchown" | "readlink" | "readlinkat" | "unlink" | "unlinkat" | "rename" | "renameat"
        | "renameat2" | "link" | "symlink" | "symlinkat" | "mkdir" | "mkdirat" | "rmdir" | "mknod"
        | "mknodat" | "lsetxattr" | "lgetxattr" | "llistxattr" | "lremovexattr" => Follows::Never,
        "linkat" | "name_to_handle_at" => Follows::With(4, AT_SYMLINK_FOLLOW),
        "newfstatat" | "utimensat" | "faccessat2" => Follows::Without(3, AT_SYMLINK_NOFOLLOW),
        "statx" => Follows::Without(2, AT_SYMLINK_NOFOLLOW),
        "fchownat" => Follows::Without(4, AT_SYMLINK_NOFOLLOW),
        "inotify_add_watch" => Follows::Without(2, IN_DONT_FOLLOW),
        "open" => Follows::Open(FlagsAt::Argument(1)),
        "openat" => Follows::Open(FlagsAt::Argument(2)),
        _ => Follows::Always,
    }
}

fn places_of(call: Call) -> Places {
    match call.name() {
        "pread64" | "preadv" | "pwrite64" | "pwritev" => Places::Argument3,
        "sqe_read" | "sqe_write" | "iocb_read" | "iocb_write" => Places::Argument3,
        "preadv2" | "pwritev2" => Places::WithFlags,
        "sendfile" => Places::Sendfile,
        "copy_file_range" | "splice" => Places::Between,
        _ if matches!(call.row().moves, Moves::Reads | Moves::Writes) => Places::Position,
        _ => Places::Nowhere,
    }
}
