//! The system calls that a recording holds: what they are called, what their numbers are on each processor, what
//! their arguments and results mean, and what the kernel counts of them.
//!
//! `table.rs` has a row a call; `roles.rs` says which are about asynchronous I/O, and which wait and wake,
//! `lock.rs` which lock a range; `counts.rs` has the rule by which `/proc/PID/io` can be foretold from a recording.

mod address;
mod counts;
pub mod errors;
mod lock;
mod roles;
mod sets;
mod table;

pub use address::Address;
pub use counts::{Counts, Rule};
pub use lock::{LockOwner, Range, RangeKind, RangeLock};
pub use roles::{Futex, Interface, Role};
pub use sets::{Set, value};

/// A recorded call, by its code: the same in every trace and on every processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call(u16);

/// What there is to know of a call.
#[derive(Debug)]
pub struct Row {
    /// As the kernel calls it, such as `pread64`.
    pub name: &'static str,
    /// None where that processor has no such call.
    pub x86_64: Option<u16>,
    pub aarch64: Option<u16>,
    pub arguments: &'static [Kind],
    pub outcome: Outcome,
    pub moves: Moves,
    pub rule: Rule,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A descriptor.
    Fd,
    /// A directory's descriptor, or AT_FDCWD.
    DirFd,
    /// Where a path stands.
    Path,
    /// Where another text stands: an attribute's name, a memory file's.
    Name,
    /// Where data stand, or shall stand.
    Buffer,
    /// Bytes.
    Size,
    /// A place in a file, in bytes; or a signed length of one.
    Offset,
    /// Where an offset stands; 0 for none.
    OffsetAt,
    /// Where the list of a vectored call's buffers stands.
    Iovec,
    /// Where something else stands.
    Pointer,
    /// A signed number of 32 bits.
    Int,
    /// An unsigned number of 32 bits.
    Count,
    /// A place in memory that is the subject itself.
    Address,
    /// A sum of bits.
    Flags(Set),
    /// One of several numbers.
    Choice(Set),
    /// Permissions.
    Mode,
    /// A user or a group; -1 for none.
    Id,
    Device,
    /// Where two descriptors will stand.
    Pair,
    /// Where the range of a lock stands (`struct flock`).
    Range,
    /// Where a socket's address stands.
    Socket,
    /// What it is depends on the command before it ([`Call::kind`]).
    Command,
    /// Of no meaning on processors of 64 bits.
    Unused,
}

/// What a result is, where it is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 0.
    Status,
    /// Bytes moved.
    Bytes,
    /// A new descriptor.
    Descriptor,
    /// A place in a file.
    Offset,
    /// A place in memory.
    Address,
    Number,
}

/// Whether a call moves data, seen from the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    Nothing,
    Reads,
    Writes,
    /// From one descriptor to another.
    Both,
}

/// Processors whose calls are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    X86_64,
    Aarch64,
}

impl Processor {
    /// The one that this program was compiled for; None for another.
    pub const fn own() -> Option<Processor> {
        if cfg!(target_arch = "x86_64") {
            Some(Processor::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Processor::Aarch64)
        } else {
            None
        }
    }

    /// As `uname -m` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Processor::X86_64 => "x86_64",
            Processor::Aarch64 => "aarch64",
        }
    }
}

const X86_64: [u16; 512] = by_number(Processor::X86_64);
const AARCH64: [u16; 512] = by_number(Processor::Aarch64);

const fn by_number(processor: Processor) -> [u16; 512] {
    let (mut codes, mut at) = ([0; 512], 0);
    while at < table::TABLE.len() {
        let row = &table::TABLE[at];
        let number = match processor {
            Processor::X86_64 => row.x86_64,
            Processor::Aarch64 => row.aarch64,
        };
        if let Some(number) = number {
            codes[number as usize] = at as u16 + 1;
        }
        at += 1;
    }
    codes
}

impl Call {
    /// How many calls are known; their codes are 1 to this.
    pub const MANY: u16 = table::TABLE.len() as u16;

    /// All, by their codes.
    pub fn all() -> impl Iterator<Item = Call> {
        (1..=Self::MANY).map(Call)
    }

    /// The call of a code; None where this version knows none.
    pub const fn from_code(code: u16) -> Option<Call> {
        if code == 0 || code > Self::MANY { None } else { Some(Call(code)) }
    }

    pub const fn code(self) -> u16 {
        self.0
    }

    /// The call with a number on a processor; None where it is not recorded.
    pub const fn from_number(processor: Processor, number: u64) -> Option<Call> {
        if number >= 512 {
            return None;
        }
        let codes = match processor {
            Processor::X86_64 => &X86_64,
            Processor::Aarch64 => &AARCH64,
        };
        Self::from_code(codes[number as usize])
    }

    /// Its number on a processor; None where that has no such call.
    pub const fn number(self, processor: Processor) -> Option<u16> {
        match processor {
            Processor::X86_64 => self.row().x86_64,
            Processor::Aarch64 => self.row().aarch64,
        }
    }

    /// The call that the kernel calls so.
    pub fn named(name: &str) -> Option<Call> {
        table::TABLE.iter().position(|row| row.name == name).map(|at| Call(at as u16 + 1))
    }

    pub const fn row(self) -> &'static Row {
        &table::TABLE[self.0 as usize - 1]
    }

    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What argument `index` is in a call with these arguments.
    pub fn kind(self, arguments: &[u64; 6], index: usize) -> Kind {
        match self.row().arguments.get(index) {
            Some(Kind::Command) => command_argument(arguments[index - 1] as u32),
            Some(kind) => *kind,
            None => Kind::Unused,
        }
    }

    /// Whether it reads or writes a pipe or a socket as a stream of bytes.
    pub fn streams(self) -> Option<Moves> {
        match self.name() {
            "read" | "readv" | "recvfrom" | "recvmsg" => Some(Moves::Reads),
            "write" | "writev" | "sendto" | "sendmsg" => Some(Moves::Writes),
            _ => None,
        }
    }

    /// How many of the arguments mean something in this call: a mode needs O_CREAT, and so on.
    pub fn used(self, arguments: &[u64; 6]) -> usize {
        let all = self.row().arguments;
        let last = all.len().saturating_sub(1);
        let flags_before = |set: Set| last > 0 && all[last - 1] == Kind::Flags(set);
        let lacks = match all.last() {
            Some(Kind::Mode) if flags_before(Set::Open) => arguments[last - 1] & (O_CREAT | TMPFILE) == 0,
            Some(Kind::Address) if flags_before(Set::Mremap) => arguments[last - 1] & MREMAP_FIXED == 0,
            Some(Kind::Command) => command_argument(arguments[last - 1] as u32) == Kind::Unused,
            _ => false,
        };
        if lacks { last } else { all.len() }
    }

    /// Makes of six registers the arguments as a trace holds them: numbers of 32 bits are extended, flags are those
    /// of x86-64, what has no meaning is 0.
    pub fn normalise(self, processor: Processor, arguments: &mut [u64; 6]) {
        for index in 0..self.row().arguments.len() {
            let value = arguments[index];
            let open = |value| canonical_open_flags(processor, u64::from(value as u32));
            arguments[index] = match self.kind(arguments, index) {
                Kind::Fd | Kind::DirFd | Kind::Int | Kind::Id => i64::from(value as i32) as u64,
                Kind::Flags(Set::Open | Set::Descriptor) => open(value),
                Kind::Count | Kind::Device | Kind::Flags(_) | Kind::Choice(_) => u64::from(value as u32),
                Kind::Mode => value & 0xffff,
                Kind::Unused | Kind::Command => 0,
                _ => value,
            };
        }
        let used = self.used(arguments);
        arguments[used..].fill(0);
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

const O_CREAT: u64 = 0o100;
/// O_TMPFILE without the O_DIRECTORY in it.
const TMPFILE: u64 = 0o20000000;
const MREMAP_FIXED: u64 = 2;

/// What fcntl's third argument is.
fn command_argument(command: u32) -> Kind {
    match command {
        0 | 1030 => Kind::Int,
        1 | 3 | 9 | 11 | 1025 | 1032 | 1034 => Kind::Unused,
        2 => Kind::Int,
        4 => Kind::Flags(Set::Open),
        8 | 10 | 1024 | 1031 => Kind::Int,
        1026 | 1033 => Kind::Count,
        _ if RangeLock::by_command(command).is_some() => Kind::Range,
        _ => Kind::Pointer,
    }
}

/// Flags of open as x86-64 numbers them: four bits have other places on aarch64.
pub const fn canonical_open_flags(processor: Processor, flags: u64) -> u64 {
    /// O_DIRECTORY, O_NOFOLLOW, O_DIRECT, O_LARGEFILE: here, there.
    const MOVED: [(u64, u64); 4] =
        [(0o200000, 0o40000), (0o400000, 0o100000), (0o40000, 0o200000), (0o100000, 0o400000)];
    match processor {
        Processor::X86_64 => flags,
        Processor::Aarch64 => {
            let (mut moved, mut at) = (flags & !0o740000, 0);
            while at < MOVED.len() {
                if flags & MOVED[at].1 != 0 {
                    moved |= MOVED[at].0;
                }
                at += 1;
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests;
