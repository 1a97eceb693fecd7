//! What the kernel counts of a call: `syscr`, `syscw`, `rchar` and `wchar` of `/proc/PID/io`, foretold from its
//! arguments and result. Nothing else adds to them but reads and writes that the kernel makes for itself: of a program
//! and its interpreter at exec, of a core at the end. (fs/read_write.c of Linux 5.4 to 6.18.)

use crate::Call;

/// How a call is counted. The kernel counts at the end of the common path, so a call that was refused before is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Not at all: splice, tee, vmsplice, sockets' own calls, getdents, aio, io_uring.
    Never,
    /// read, pread64 (vfs_read): unless the descriptor, the address, the length or the offset is refused.
    Read,
    /// write, pwrite64 (vfs_write): likewise.
    Write,
    /// readv (do_readv): always, whatever is wrong with the descriptor.
    Readv,
    Writev,
    /// preadv (do_preadv): always, but for an offset below 0.
    Preadv,
    Pwritev,
    /// preadv2: as preadv, and with an offset of -1 as readv.
    Preadv2,
    Pwritev2,
    /// sendfile (do_sendfile): one read and one write, unless refused.
    Sendfile,
    /// copy_file_range (vfs_copy_file_range): one read and one write; not at the end of the file, where the length
    /// is cut to 0, which returns before the count.
    CopyRange,
}

/// What a call adds to the kernel's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// To `syscr`.
    pub reads: u64,
    /// To `syscw`.
    pub writes: u64,
    /// To `rchar`, bytes.
    pub read_bytes: u64,
    /// To `wchar`, bytes.
    pub written_bytes: u64,
    /// Whether that cannot be told from outside: an error which has causes on both sides of the count. Then
    /// `reads` and `writes` are the most that is possible, and each may be 0.
    pub uncertain: bool,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.uncertain |= other.uncertain;
    }
}

const EBADF: i64 = -9;
const EACCES: i64 = -13;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const ESPIPE: i64 = -29;
const EPERM: i64 = -1;
const ENOSYS: i64 = -38;

/// The lowest address that no process may pass (x86-64 with four levels of pages, and aarch64 with 48 bits).
const LIMIT: u64 = 0x7fff_ffff_f000;

enum Counted {
    Yes,
    No,
    Perhaps,
}

impl Call {
    /// What the kernel has counted of this call. `result` is -errno for an error.
    ///
    /// A call that a signal interrupts and the kernel starts again by itself counts once more each time, which is not
    /// seen here.
    pub fn counts(self, arguments: &[u64; 6], result: i64) -> Counts {
        let (reads, writes) = match self.row().rule {
            Rule::Never => return Counts::default(),
            Rule::Read | Rule::Readv | Rule::Preadv | Rule::Preadv2 => (1, 0),
            Rule::Write | Rule::Writev | Rule::Pwritev | Rule::Pwritev2 => (0, 1),
            Rule::Sendfile | Rule::CopyRange => (1, 1),
        };
        let uncertain = match counted(self.row().rule, self.row().arguments.len(), arguments, result) {
            Counted::No => return Counts::default(),
            Counted::Yes => false,
            Counted::Perhaps => true,
        };
        let bytes = result.max(0) as u64;
        Counts { reads, writes, read_bytes: reads * bytes, written_bytes: writes * bytes, uncertain }
    }
}

fn counted(rule: Rule, many: usize, arguments: &[u64; 6], result: i64) -> Counted {
    // The kernel has no such call, or a filter refused it: what would have counted it was not reached.
    if result == ENOSYS {
        return Counted::No;
    }
    match rule {
        Rule::Never => Counted::No,
        Rule::Readv | Rule::Writev => Counted::Yes,
        Rule::Preadv | Rule::Pwritev => {
            if (arguments[3] as i64) < 0 {
                Counted::No
            } else {
                Counted::Yes
            }
        }
        Rule::Preadv2 | Rule::Pwritev2 => {
            if (arguments[3] as i64) < -1 {
                Counted::No
            } else {
                Counted::Yes
            }
        }
        Rule::Read | Rule::Write => counted_plain(many, arguments, result),
        Rule::Sendfile => match result {
            0.. => Counted::Yes,
            EBADF | ESPIPE => Counted::No,
            EINVAL | EFAULT | EPERM | EACCES | -75 => Counted::Perhaps,
            _ => Counted::Yes,
        },
        Rule::CopyRange => match result {
            0 => Counted::No,
            1.. => Counted::Yes,
            EBADF | EFAULT => Counted::No,
            _ => Counted::Perhaps,
        },
    }
}

/// read, write, pread64, pwrite64.
fn counted_plain(many: usize, arguments: &[u64; 6], result: i64) -> Counted {
    let (address, size) = (arguments[1], arguments[2]);
    let offset = if many > 3 { arguments[3] as i64 } else { 0 };
    let outside = address.checked_add(size).is_none_or(|end| end > LIMIT);
    match result {
        EBADF => Counted::No,
        ESPIPE if many > 3 => Counted::No,
        EFAULT if outside => Counted::No,
        EINVAL if (size as i64) < 0 || offset < 0 => Counted::No,
        // A descriptor that cannot be read at all (epoll), or one that refuses this length (O_DIRECT, eventfd).
        EINVAL | EPERM | EACCES => Counted::Perhaps,
        _ => Counted::Yes,
    }
}
