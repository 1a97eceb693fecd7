//! Bits of arguments that say what a call does, as x86-64 numbers them ([`etude_calls::canonical_open_flags`]).

pub const O_ACCMODE: u64 = 3;
pub const O_WRONLY: u64 = 1;
pub const O_RDWR: u64 = 2;
pub const O_CREAT: u64 = 0o100;
pub const O_EXCL: u64 = 0o200;
pub const O_TRUNC: u64 = 0o1000;
pub const O_APPEND: u64 = 0o2000;
pub const O_DIRECTORY: u64 = 0o200000;
pub const O_NOFOLLOW: u64 = 0o400000;
pub const O_CLOEXEC: u64 = 0o2000000;
pub const O_PATH: u64 = 0o10000000;
/// `__O_TMPFILE | O_DIRECTORY`: a test needs both bits ([`is_nameless`]).
pub const O_TMPFILE: u64 = 0o20000000 | O_DIRECTORY;
/// Flags of something open that F_SETFL can change: O_APPEND, O_NONBLOCK, O_DIRECT, O_NOATIME.
pub const SETTABLE: u64 = O_APPEND | 0o4000 | 0o40000 | 0o1000000;

pub const AT_FDCWD: i32 = -100;

/// True if an open makes a file without a name. O_DIRECTORY alone opens a directory, and `__O_TMPFILE` alone is refused
/// (EINVAL) by each kernel that knows it (since Linux 3.11); older ones ignore it, and open what is there.
pub const fn is_nameless(flags: u64) -> bool {
    flags & O_TMPFILE == O_TMPFILE
}

/// Flags of open and openat without those that the kernel ignores beside O_PATH: it neither makes nor empties anything.
pub const fn effective(flags: u64) -> u64 {
    if flags & O_PATH != 0 { flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) } else { flags }
}

/// True if an open goes through a link that is the last component of its path.
pub const fn opens_through(flags: u64) -> bool {
    flags & O_NOFOLLOW == 0 && flags & (O_CREAT | O_EXCL) != O_CREAT | O_EXCL
}
