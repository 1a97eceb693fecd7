//! The changes of a call that was made: its row (`rows.rs`) with its arguments.

use etude_calls::{Call, Moves};

use crate::flags::{O_APPEND, O_CLOEXEC, O_RDWR, effective, opens_through};
use crate::rows::{Done, Follows, OfDescriptors, OfNames, Opens, Places, row};

/// A change of a process's descriptors, or of its working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorChange {
    Nothing,
    /// A new descriptor; `flags` are those of open, also of what open does not make.
    Opens {
        descriptor: i32,
        what: Opens,
        flags: u64,
    },
    /// Both ends of a pipe, or a pair of sockets; None where the descriptors are not recorded.
    OpensPair {
        descriptors: Option<[i32; 2]>,
        sockets: bool,
        flags: u64,
    },
    /// `replaces`: what was open as `to` is closed (dup2, dup3).
    Copies {
        from: i32,
        to: i32,
        replaces: bool,
        closes_at_exec: bool,
    },
    Closes(i32),
    ClosesRange {
        first: i32,
        last: i32,
    },
    /// A range is closed at exec (CLOSE_RANGE_CLOEXEC).
    MarksRange {
        first: i32,
        last: i32,
    },
    /// A descriptor is closed at exec, or not (FD_CLOEXEC).
    Marks {
        descriptor: i32,
        closes_at_exec: bool,
    },
    /// Flags of what is open (F_SETFL).
    SetsFlags {
        descriptor: i32,
        flags: u64,
    },
    /// A socket is connected.
    Connects(i32),
    /// The process goes to the directory that the call names.
    EntersPath,
    EntersDescriptor(i32),
}

/// A change of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameChange {
    Nothing,
    MakesDirectory,
    /// A file, a pipe, a device or a socket, by its mode.
    MakesNode {
        mode: u64,
    },
    /// A link whose target is text 0.
    MakesLink,
    Removes {
        directory: bool,
    },
    /// `swaps`: RENAME_EXCHANGE.
    Renames {
        swaps: bool,
    },
    Links,
    /// An open file gets one more name (AT_EMPTY_PATH).
    LinksDescriptor(i32),
}

/// A change of the length of the file that a call names, or whose descriptor it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChange {
    Nothing,
    Sets(u64),
    /// So many bytes at least.
    Reaches(u64),
    /// A range is taken out of it (FALLOC_FL_COLLAPSE_RANGE).
    Shrinks(u64),
    /// A range is put into it (FALLOC_FL_INSERT_RANGE).
    Grows(u64),
    /// Room within it, or behind its end, that changes no length.
    Allocates,
}

/// One side of a transfer: a file and a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The argument with the descriptor.
    pub argument: usize,
    /// Place in the file; None for the descriptor's own position, which moves.
    pub at: Option<u64>,
    pub writes: bool,
    /// True if it goes to the end of the file, whatever the flags of what is open (RWF_APPEND).
    pub appends: bool,
}

/// True if a call may change descriptors, or what stands behind them, by its name alone.
pub fn is_of_descriptors(call: Call) -> bool {
    !matches!(
        row(call).descriptors,
        OfDescriptors::Nothing | OfDescriptors::Ioctl | OfDescriptors::Chdir | OfDescriptors::Fchdir
    )
}

/// True if a call moves its process to another directory.
pub fn is_of_directory(call: Call) -> bool {
    matches!(row(call).descriptors, OfDescriptors::Chdir | OfDescriptors::Fchdir)
}

/// The flags with which a call opens what it names, without those that have no effect; None where it opens nothing.
pub fn open_flags(done: &Done) -> Option<u64> {
    match row(done.call).descriptors {
        OfDescriptors::Opens(Opens::Path, flags) => Some(effective(flags.of(done))),
        _ => None,
    }
}

/// True if argument `index` is a text that a link shall hold, and no path to go.
pub fn is_link_target(call: Call, index: usize) -> bool {
    index == 0 && matches!(row(call).names, OfNames::Symlink)
}

/// True if a call goes through a link that is the last component of its path in argument `index`.
pub fn follows(done: &Done, index: usize) -> bool {
    match row(done.call).follows {
        Follows::Always => true,
        Follows::Never => false,
        Follows::Open(flags) => opens_through(effective(flags.of(done))),
        Follows::With(argument, bit) => index == 1 && done.arguments[argument] & bit != 0,
        Follows::Without(argument, bit) => done.arguments[argument] & bit == 0,
    }
}

/// The change of descriptors by a call: none where it failed. A close that fails has closed, unless there was nothing to
/// close (EBADF).
pub fn descriptor_change(done: &Done) -> DescriptorChange {
    use DescriptorChange as Change;
    const EBADF: i64 = -9;
    let of = row(done.call).descriptors;
    let (first, result) = (done.descriptor(0), done.result as i32);
    if let OfDescriptors::Close = of
        && done.result != EBADF
    {
        return Change::Closes(first);
    }
    if done.failed() {
        return Change::Nothing;
    }
    match of {
        OfDescriptors::Nothing | OfDescriptors::Close | OfDescriptors::Shutdown => Change::Nothing,
        // A script may leave a result out.
        OfDescriptors::Opens(..) | OfDescriptors::Dup | OfDescriptors::DupTo(_) if done.result < 0 => {
            Change::Nothing
        }
        OfDescriptors::Opens(what, flags) => {
            let flags = flags_of_new(what, flags.of(done));
            Change::Opens { descriptor: result, what, flags }
        }
        OfDescriptors::OpensPair { sockets, flags } => {
            let flags = if sockets { flags.of(done) & !SOCKET_TYPE } else { flags.of(done) };
            Change::OpensPair { descriptors: done.pair(), sockets, flags }
        }
        OfDescriptors::Dup => {
            Change::Copies { from: first, to: result, replaces: false, closes_at_exec: false }
        }
        OfDescriptors::DupTo(_) if first == result => Change::Nothing,
        OfDescriptors::DupTo(flags) => {
            let closes_at_exec = flags.of(done) & O_CLOEXEC != 0;
            Change::Copies { from: first, to: result, replaces: true, closes_at_exec }
        }
        OfDescriptors::CloseRange => close_range(done.arguments),
        OfDescriptors::Fcntl => fcntl(done),
        OfDescriptors::Ioctl => {
            const FIONCLEX: u64 = 0x5450;
            const FIOCLEX: u64 = 0x5451;
            match done.arguments[1] {
                FIONCLEX | FIOCLEX => {
                    Change::Marks { descriptor: first, closes_at_exec: done.arguments[1] == FIOCLEX }
                }
                _ => Change::Nothing,
            }
        }
        OfDescriptors::Connect => Change::Connects(first),
        OfDescriptors::Chdir => Change::EntersPath,
        OfDescriptors::Fchdir => Change::EntersDescriptor(first),
    }
}

/// Bits of a socket's type that are no flags.
const SOCKET_TYPE: u64 = 0xf;

fn flags_of_new(what: Opens, flags: u64) -> u64 {
    const MFD_CLOEXEC: u64 = 1;
    match what {
        Opens::Path => effective(flags),
        Opens::Socket => flags & !SOCKET_TYPE | O_RDWR,
        Opens::Accepted => flags | O_RDWR,
        Opens::Events => flags & O_CLOEXEC | O_RDWR,
        Opens::Memory => ((flags & MFD_CLOEXEC) * O_CLOEXEC) | O_RDWR,
        Opens::Handle | Opens::Ring => flags,
    }
}

fn close_range(arguments: &[u64; 6]) -> DescriptorChange {
    const CLOSE_RANGE_CLOEXEC: u64 = 4;
    let [first, last] = [0, 1].map(|index| i32::try_from(arguments[index]).unwrap_or(i32::MAX));
    if first > last {
        DescriptorChange::Nothing
    } else if arguments[2] & CLOSE_RANGE_CLOEXEC != 0 {
        DescriptorChange::MarksRange { first, last }
    } else {
        DescriptorChange::ClosesRange { first, last }
    }
}

const F_DUPFD: u64 = 0;
const F_SETFD: u64 = 2;
const F_SETFL: u64 = 4;
const F_DUPFD_CLOEXEC: u64 = 1030;

fn fcntl(done: &Done) -> DescriptorChange {
    let [_, command, value, ..] = *done.arguments;
    let descriptor = done.descriptor(0);
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC if done.result >= 0 => DescriptorChange::Copies {
            from: descriptor,
            to: done.result as i32,
            replaces: false,
            closes_at_exec: command == F_DUPFD_CLOEXEC,
        },
        F_SETFD => DescriptorChange::Marks { descriptor, closes_at_exec: value & 1 != 0 },
        F_SETFL => DescriptorChange::SetsFlags { descriptor, flags: value },
        _ => DescriptorChange::Nothing,
    }
}

const AT_REMOVEDIR: u64 = 0x200;
const AT_EMPTY_PATH: u64 = 0x1000;

/// The change of names by a call; none where it failed.
pub fn name_change(done: &Done) -> NameChange {
    if done.failed() { NameChange::Nothing } else { name_operation(done) }
}

/// The change of names by a call that succeeds.
pub fn name_operation(done: &Done) -> NameChange {
    const RENAME_EXCHANGE: u64 = 2;
    let words = done.arguments;
    match row(done.call).names {
        OfNames::Nothing => NameChange::Nothing,
        OfNames::Mkdir => NameChange::MakesDirectory,
        OfNames::Mknod { mode } => NameChange::MakesNode { mode: words[mode] },
        OfNames::Symlink => NameChange::MakesLink,
        OfNames::Unlink => NameChange::Removes { directory: false },
        OfNames::UnlinkAt => NameChange::Removes { directory: words[2] & AT_REMOVEDIR != 0 },
        OfNames::Rmdir => NameChange::Removes { directory: true },
        OfNames::Rename => NameChange::Renames { swaps: false },
        OfNames::RenameAt2 => NameChange::Renames { swaps: words[4] & RENAME_EXCHANGE != 0 },
        OfNames::LinkAt if words[4] & AT_EMPTY_PATH != 0 && done.text(1).is_none_or(<[u8]>::is_empty) => {
            NameChange::LinksDescriptor(done.descriptor(0))
        }
        OfNames::Link | OfNames::LinkAt => NameChange::Links,
    }
}

/// The change of a length by a call that succeeded, besides the writes that [`ends`] has.
pub fn size_change(done: &Done) -> SizeChange {
    const KEEP_SIZE: u64 = 1;
    const PUNCH_HOLE: u64 = 2;
    const COLLAPSE_RANGE: u64 = 8;
    const INSERT_RANGE: u64 = 0x20;
    let words = done.arguments;
    match done.call.name() {
        "truncate" | "ftruncate" => SizeChange::Sets(words[1]),
        "fallocate" => match words[1] {
            mode if mode & COLLAPSE_RANGE != 0 => SizeChange::Shrinks(words[3]),
            mode if mode & INSERT_RANGE != 0 => SizeChange::Grows(words[3]),
            mode if mode & (KEEP_SIZE | PUNCH_HOLE) != 0 => SizeChange::Allocates,
            _ => SizeChange::Reaches(words[2].saturating_add(words[3])),
        },
        _ => SizeChange::Nothing,
    }
}

/// The sides of a call's transfer: source and destination.
pub fn ends(done: &Done) -> [Option<End>; 2] {
    const RWF_APPEND: u64 = 0x10;
    let in_memory = |index: usize| done.text(index)?.try_into().ok().map(u64::from_le_bytes);
    let end = |argument, at, writes| Some(End { argument, at, writes, appends: false });
    let writes = done.call.row().moves == Moves::Writes;
    let offset = Some(done.arguments[3]).filter(|at| *at as i64 >= 0);
    match row(done.call).places {
        Places::Nowhere => [None, None],
        Places::Position => [end(0, None, writes), None],
        Places::Argument3 => [end(0, offset, writes), None],
        Places::WithFlags => {
            let appends = writes && done.arguments[5] & RWF_APPEND != 0;
            [Some(End { argument: 0, at: offset, writes, appends }), None]
        }
        Places::Sendfile => [end(1, in_memory(2), false), end(0, None, true)],
        Places::Between => [end(0, in_memory(1), false), end(2, in_memory(3), true)],
    }
}

/// True if writes to something open with these flags go to the end of its file.
pub const fn appends(flags: u64) -> bool {
    flags & O_APPEND != 0
}

#[cfg(test)]
mod tests {
    use etude_calls::{Call, Kind, Outcome};

    use super::*;
    use crate::flags::{O_DIRECTORY, O_TMPFILE, is_nameless};

    #[test]
    fn each_call_that_gives_descriptors_has_a_row_that_opens_or_copies() {
        for call in Call::all() {
            let row = call.row();
            let gives = row.outcome == Outcome::Descriptor || row.arguments.contains(&Kind::Pair);
            let done = Done::new(call, &[3, 4, 0, 0, 0, 0], 5, std::iter::empty());
            let opens = matches!(
                descriptor_change(&done),
                DescriptorChange::Opens { .. }
                    | DescriptorChange::OpensPair { .. }
                    | DescriptorChange::Copies { .. }
            );
            assert_eq!(opens, gives, "{call:?}");
        }
    }

    #[test]
    fn a_close_that_failed_has_closed_unless_nothing_was_open() {
        let close = |result| {
            let call = Call::named("close").unwrap();
            descriptor_change(&Done::new(call, &[3, 0, 0, 0, 0, 0], result, std::iter::empty()))
        };
        assert_eq!([0, -5, -4].map(close), [DescriptorChange::Closes(3); 3]);
        assert_eq!(close(-9), DescriptorChange::Nothing);
    }

    #[test]
    fn a_file_without_a_name_needs_both_bits() {
        assert!(is_nameless(O_TMPFILE | O_RDWR));
        assert!(!is_nameless(O_DIRECTORY) && !is_nameless(O_TMPFILE & !O_DIRECTORY | O_RDWR));
    }
}
