//! What the bits and numbers of arguments are called.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::OnceLock;

/// Names that belong together. The values are those of x86-64 ([`crate::canonical_open_flags`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    Open,
    /// Of pipe2 and dup3: those of open that a descriptor can have from the beginning.
    Descriptor,
    Whence,
    Prot,
    Map,
    At,
    Unlink,
    Eaccess,
    Access,
    Fcntl,
    Ioctl,
    Msync,
    Madvise,
    Mremap,
    Fadvise,
    Fallocate,
    SyncRange,
    Splice,
    Rename,
    Flock,
    Domain,
    Socket,
    Msg,
    Shutdown,
    Statx,
    Rwf,
    CloseRange,
    Memfd,
    Eventfd,
    Inotify,
    Xattr,
    Enter,
    Register,
    /// How a request of io_uring or aio is made.
    Request,
    /// Kinds of requests of io_uring.
    Opcode,
    Futex,
}

impl Set {
    /// The names with their values; of two that share bits the one with more of them comes first.
    pub const fn names(self) -> &'static [(u64, &'static str)] {
        match self {
            Set::Open => OPEN,
            Set::Descriptor => DESCRIPTOR,
            Set::Whence => WHENCE,
            Set::Prot => PROT,
            Set::Map => MAP,
            Set::At => AT,
            Set::Unlink => UNLINK,
            Set::Eaccess => EACCESS,
            Set::Access => ACCESS,
            Set::Fcntl => FCNTL,
            Set::Ioctl => IOCTL,
            Set::Msync => MSYNC,
            Set::Madvise => MADVISE,
            Set::Mremap => MREMAP,
            Set::Fadvise => FADVISE,
            Set::Fallocate => FALLOCATE,
            Set::SyncRange => SYNC_RANGE,
            Set::Splice => SPLICE,
            Set::Rename => RENAME,
            Set::Flock => FLOCK,
            Set::Domain => DOMAIN,
            Set::Socket => SOCKET,
            Set::Msg => MSG,
            Set::Shutdown => SHUTDOWN,
            Set::Statx => STATX,
            Set::Rwf => RWF,
            Set::CloseRange => CLOSE_RANGE,
            Set::Memfd => MEMFD,
            Set::Eventfd => EVENTFD,
            Set::Inotify => INOTIFY,
            Set::Xattr => XATTR,
            Set::Enter => ENTER,
            Set::Register => REGISTER,
            Set::Request => REQUEST,
            Set::Opcode => OPCODE,
            Set::Futex => FUTEX,
        }
    }

    /// What no bit at all is called.
    const fn none(self) -> &'static str {
        match self {
            Set::Open => "O_RDONLY",
            Set::Prot => "PROT_NONE",
            Set::Access => "F_OK",
            _ => "0",
        }
    }

    /// Writes a sum of bits as strace does: `O_WRONLY|O_CREAT`, what has no name as a number.
    pub fn write_flags(self, out: &mut impl Write, value: u64) -> fmt::Result {
        let (mut rest, mut first) = (value, true);
        // O_RDONLY is the absence of the other two.
        if value == 0 || self == Set::Open && value & 3 == 0 && value & 0o10000000 == 0 {
            out.write_str(self.none())?;
            first = false;
        }
        for &(bits, name) in self.names() {
            if bits != 0 && rest & bits == bits {
                out.write_str(if first { "" } else { "|" })?;
                out.write_str(name)?;
                (rest, first) = (rest & !bits, false);
            }
        }
        if rest != 0 {
            write!(out, "{}{rest:#x}", if first { "" } else { "|" })?;
        }
        Ok(())
    }

    /// The name of one of several numbers.
    pub fn name(self, value: u64) -> Option<&'static str> {
        self.names().iter().find(|(number, _)| *number == value).map(|(_, name)| *name)
    }

    /// Writes one of several numbers; one without a name as a number.
    pub fn write_choice(self, out: &mut impl Write, value: u64) -> fmt::Result {
        let value = u64::from(value as u32);
        match self.name(value) {
            Some(name) => out.write_str(name),
            None if value < 1 << 16 => write!(out, "{value}"),
            None => write!(out, "{value:#x}"),
        }
    }
}

const ALL: &[Set] = &[
    Set::Open,
    Set::Descriptor,
    Set::Whence,
    Set::Prot,
    Set::Map,
    Set::At,
    Set::Unlink,
    Set::Eaccess,
    Set::Access,
    Set::Fcntl,
    Set::Ioctl,
    Set::Msync,
    Set::Madvise,
    Set::Mremap,
    Set::Fadvise,
    Set::Fallocate,
    Set::SyncRange,
    Set::Splice,
    Set::Rename,
    Set::Flock,
    Set::Domain,
    Set::Socket,
    Set::Msg,
    Set::Shutdown,
    Set::Statx,
    Set::Rwf,
    Set::CloseRange,
    Set::Memfd,
    Set::Eventfd,
    Set::Inotify,
    Set::Xattr,
    Set::Enter,
    Set::Register,
    Set::Request,
    Set::Opcode,
    Set::Futex,
];

/// The value of a name of any set (`O_CREAT`, `SEEK_END`, `AT_FDCWD` …).
pub fn value(name: &str) -> Option<u64> {
    static VALUES: OnceLock<HashMap<&'static str, u64>> = OnceLock::new();
    let others = [
        (0, "O_RDONLY"),
        (0, "PROT_NONE"),
        (0, "F_OK"),
        (0, "MAP_FILE"),
        (0o4000, "O_NDELAY"),
        (0o20000, "O_ASYNC"),
        (0, "AT_STATX_SYNC_AS_STAT"),
        (1, "FD_CLOEXEC"),
        (0, "NULL"),
        (-100_i64 as u64, "AT_FDCWD"),
        (1, "PF_UNIX"),
        (2, "PF_INET"),
        (10, "PF_INET6"),
        (0, "IPPROTO_IP"),
        (6, "IPPROTO_TCP"),
        (17, "IPPROTO_UDP"),
        (0x7fff_f000, "MAX_RW_COUNT"),
    ];
    let all = || {
        let named = ALL.iter().flat_map(|set| set.names().iter().copied());
        named.chain(others).map(|(value, name)| (name, value)).collect()
    };
    VALUES.get_or_init(all).get(name).copied()
}

#[rustfmt::skip]
const OPEN: &[(u64, &str)] = &[(0o1, "O_WRONLY"), (0o2, "O_RDWR"), (0o100, "O_CREAT"), (0o200, "O_EXCL"), (0o400, "O_NOCTTY"), (0o1000, "O_TRUNC"), (0o2000, "O_APPEND"), (0o4000, "O_NONBLOCK"), (0o4010000, "O_SYNC"), (0o10000, "O_DSYNC"), (0o20000, "FASYNC"), (0o40000, "O_DIRECT"), (0o100000, "O_LARGEFILE"), (0o20200000, "O_TMPFILE"), (0o200000, "O_DIRECTORY"), (0o400000, "O_NOFOLLOW"), (0o1000000, "O_NOATIME"), (0o2000000, "O_CLOEXEC"), (0o10000000, "O_PATH")];
#[rustfmt::skip]
const DESCRIPTOR: &[(u64, &str)] = &[(0o4000, "O_NONBLOCK"), (0o40000, "O_DIRECT"), (0o2000000, "O_CLOEXEC")];
#[rustfmt::skip]
const WHENCE: &[(u64, &str)] = &[(0, "SEEK_SET"), (1, "SEEK_CUR"), (2, "SEEK_END"), (3, "SEEK_DATA"), (4, "SEEK_HOLE")];
#[rustfmt::skip]
const PROT: &[(u64, &str)] = &[(1, "PROT_READ"), (2, "PROT_WRITE"), (4, "PROT_EXEC"), (0x1000000, "PROT_GROWSDOWN"), (0x2000000, "PROT_GROWSUP")];
#[rustfmt::skip]
const MAP: &[(u64, &str)] = &[(3, "MAP_SHARED_VALIDATE"), (1, "MAP_SHARED"), (2, "MAP_PRIVATE"), (0x10, "MAP_FIXED"), (0x20, "MAP_ANONYMOUS"), (0x40, "MAP_32BIT"), (0x100, "MAP_GROWSDOWN"), (0x800, "MAP_DENYWRITE"), (0x1000, "MAP_EXECUTABLE"), (0x2000, "MAP_LOCKED"), (0x4000, "MAP_NORESERVE"), (0x8000, "MAP_POPULATE"), (0x10000, "MAP_NONBLOCK"), (0x20000, "MAP_STACK"), (0x40000, "MAP_HUGETLB"), (0x80000, "MAP_SYNC"), (0x100000, "MAP_FIXED_NOREPLACE")];
#[rustfmt::skip]
const AT: &[(u64, &str)] = &[(0x100, "AT_SYMLINK_NOFOLLOW"), (0x400, "AT_SYMLINK_FOLLOW"), (0x800, "AT_NO_AUTOMOUNT"), (0x1000, "AT_EMPTY_PATH"), (0x2000, "AT_STATX_FORCE_SYNC"), (0x4000, "AT_STATX_DONT_SYNC")];
#[rustfmt::skip]
const UNLINK: &[(u64, &str)] = &[(0x200, "AT_REMOVEDIR")];
#[rustfmt::skip]
const EACCESS: &[(u64, &str)] = &[(0x200, "AT_EACCESS"), (0x100, "AT_SYMLINK_NOFOLLOW"), (0x1000, "AT_EMPTY_PATH")];
#[rustfmt::skip]
const ACCESS: &[(u64, &str)] = &[(4, "R_OK"), (2, "W_OK"), (1, "X_OK")];
#[rustfmt::skip]
const FCNTL: &[(u64, &str)] = &[(0, "F_DUPFD"), (1, "F_GETFD"), (2, "F_SETFD"), (3, "F_GETFL"), (4, "F_SETFL"), (5, "F_GETLK"), (6, "F_SETLK"), (7, "F_SETLKW"), (8, "F_SETOWN"), (9, "F_GETOWN"), (0xa, "F_SETSIG"), (0xb, "F_GETSIG"), (0xf, "F_SETOWN_EX"), (0x10, "F_GETOWN_EX"), (0x24, "F_OFD_GETLK"), (0x25, "F_OFD_SETLK"), (0x26, "F_OFD_SETLKW"), (0x400, "F_SETLEASE"), (0x401, "F_GETLEASE"), (0x402, "F_NOTIFY"), (0x406, "F_DUPFD_CLOEXEC"), (0x407, "F_SETPIPE_SZ"), (0x408, "F_GETPIPE_SZ"), (0x409, "F_ADD_SEALS"), (0x40a, "F_GET_SEALS"), (0x40b, "F_GET_RW_HINT"), (0x40c, "F_SET_RW_HINT"), (0x40d, "F_GET_FILE_RW_HINT"), (0x40e, "F_SET_FILE_RW_HINT")];
#[rustfmt::skip]
const IOCTL: &[(u64, &str)] = &[(0x40049409, "FICLONE"), (0x4020940d, "FICLONERANGE"), (0xc0189436, "FIDEDUPERANGE"), (0xc020660b, "FS_IOC_FIEMAP"), (0x80086601, "FS_IOC_GETFLAGS"), (0x40086602, "FS_IOC_SETFLAGS"), (0xc0185879, "FITRIM"), (2, "FIGETBSZ"), (0x541b, "FIONREAD"), (0x5421, "FIONBIO"), (0x5451, "FIOCLEX"), (0x5450, "FIONCLEX"), (0x5401, "TCGETS"), (0x5402, "TCSETS"), (0x5403, "TCSETSW"), (0x5413, "TIOCGWINSZ"), (0x540f, "TIOCGPGRP"), (0x5410, "TIOCSPGRP"), (0x80081272, "BLKGETSIZE64"), (0x1277, "BLKDISCARD"), (0x1268, "BLKSSZGET"), (0x127b, "BLKPBSZGET"), (0x125e, "BLKROGET"), (0x1261, "BLKFLSBUF")];
#[rustfmt::skip]
const MSYNC: &[(u64, &str)] = &[(1, "MS_ASYNC"), (2, "MS_INVALIDATE"), (4, "MS_SYNC")];
#[rustfmt::skip]
const MADVISE: &[(u64, &str)] = &[(0, "MADV_NORMAL"), (1, "MADV_RANDOM"), (2, "MADV_SEQUENTIAL"), (3, "MADV_WILLNEED"), (4, "MADV_DONTNEED"), (8, "MADV_FREE"), (9, "MADV_REMOVE"), (0xa, "MADV_DONTFORK"), (0xb, "MADV_DOFORK"), (0xc, "MADV_MERGEABLE"), (0xd, "MADV_UNMERGEABLE"), (0xe, "MADV_HUGEPAGE"), (0xf, "MADV_NOHUGEPAGE"), (0x10, "MADV_DONTDUMP"), (0x11, "MADV_DODUMP"), (0x12, "MADV_WIPEONFORK"), (0x13, "MADV_KEEPONFORK"), (0x14, "MADV_COLD"), (0x15, "MADV_PAGEOUT"), (0x16, "MADV_POPULATE_READ"), (0x17, "MADV_POPULATE_WRITE"), (0x18, "MADV_DONTNEED_LOCKED"), (0x19, "MADV_COLLAPSE"), (0x64, "MADV_HWPOISON")];
#[rustfmt::skip]
const MREMAP: &[(u64, &str)] = &[(1, "MREMAP_MAYMOVE"), (2, "MREMAP_FIXED"), (4, "MREMAP_DONTUNMAP")];
#[rustfmt::skip]
const FADVISE: &[(u64, &str)] = &[(0, "POSIX_FADV_NORMAL"), (1, "POSIX_FADV_RANDOM"), (2, "POSIX_FADV_SEQUENTIAL"), (3, "POSIX_FADV_WILLNEED"), (4, "POSIX_FADV_DONTNEED"), (5, "POSIX_FADV_NOREUSE")];
#[rustfmt::skip]
const FALLOCATE: &[(u64, &str)] = &[(1, "FALLOC_FL_KEEP_SIZE"), (2, "FALLOC_FL_PUNCH_HOLE"), (4, "FALLOC_FL_NO_HIDE_STALE"), (8, "FALLOC_FL_COLLAPSE_RANGE"), (0x10, "FALLOC_FL_ZERO_RANGE"), (0x20, "FALLOC_FL_INSERT_RANGE"), (0x40, "FALLOC_FL_UNSHARE_RANGE")];
#[rustfmt::skip]
const SYNC_RANGE: &[(u64, &str)] = &[(1, "SYNC_FILE_RANGE_WAIT_BEFORE"), (2, "SYNC_FILE_RANGE_WRITE"), (4, "SYNC_FILE_RANGE_WAIT_AFTER")];
#[rustfmt::skip]
const SPLICE: &[(u64, &str)] = &[(1, "SPLICE_F_MOVE"), (2, "SPLICE_F_NONBLOCK"), (4, "SPLICE_F_MORE"), (8, "SPLICE_F_GIFT")];
#[rustfmt::skip]
const RENAME: &[(u64, &str)] = &[(1, "RENAME_NOREPLACE"), (2, "RENAME_EXCHANGE"), (4, "RENAME_WHITEOUT")];
#[rustfmt::skip]
const FLOCK: &[(u64, &str)] = &[(1, "LOCK_SH"), (2, "LOCK_EX"), (4, "LOCK_NB"), (8, "LOCK_UN")];
#[rustfmt::skip]
const DOMAIN: &[(u64, &str)] = &[(0, "AF_UNSPEC"), (1, "AF_UNIX"), (2, "AF_INET"), (0xa, "AF_INET6"), (0x10, "AF_NETLINK"), (0x11, "AF_PACKET"), (0x26, "AF_ALG"), (0x28, "AF_VSOCK")];
#[rustfmt::skip]
const SOCKET: &[(u64, &str)] = &[(5, "SOCK_SEQPACKET"), (3, "SOCK_RAW"), (1, "SOCK_STREAM"), (2, "SOCK_DGRAM"), (0x800, "SOCK_NONBLOCK"), (0x80000, "SOCK_CLOEXEC")];
#[rustfmt::skip]
const MSG: &[(u64, &str)] = &[(1, "MSG_OOB"), (2, "MSG_PEEK"), (4, "MSG_DONTROUTE"), (8, "MSG_CTRUNC"), (0x20, "MSG_TRUNC"), (0x40, "MSG_DONTWAIT"), (0x80, "MSG_EOR"), (0x100, "MSG_WAITALL"), (0x800, "MSG_CONFIRM"), (0x2000, "MSG_ERRQUEUE"), (0x4000, "MSG_NOSIGNAL"), (0x8000, "MSG_MORE"), (0x10000, "MSG_WAITFORONE"), (0x4000000, "MSG_ZEROCOPY"), (0x20000000, "MSG_FASTOPEN"), (0x40000000, "MSG_CMSG_CLOEXEC")];
#[rustfmt::skip]
const SHUTDOWN: &[(u64, &str)] = &[(0, "SHUT_RD"), (1, "SHUT_WR"), (2, "SHUT_RDWR")];
#[rustfmt::skip]
const STATX: &[(u64, &str)] = &[(0xfff, "STATX_ALL"), (0x7ff, "STATX_BASIC_STATS"), (1, "STATX_TYPE"), (2, "STATX_MODE"), (4, "STATX_NLINK"), (8, "STATX_UID"), (0x10, "STATX_GID"), (0x20, "STATX_ATIME"), (0x40, "STATX_MTIME"), (0x80, "STATX_CTIME"), (0x100, "STATX_INO"), (0x200, "STATX_SIZE"), (0x400, "STATX_BLOCKS"), (0x800, "STATX_BTIME"), (0x1000, "STATX_MNT_ID"), (0x2000, "STATX_DIOALIGN")];
#[rustfmt::skip]
const RWF: &[(u64, &str)] = &[(1, "RWF_HIPRI"), (2, "RWF_DSYNC"), (4, "RWF_SYNC"), (8, "RWF_NOWAIT"), (0x10, "RWF_APPEND")];
#[rustfmt::skip]
const CLOSE_RANGE: &[(u64, &str)] = &[(2, "CLOSE_RANGE_UNSHARE"), (4, "CLOSE_RANGE_CLOEXEC")];
#[rustfmt::skip]
const MEMFD: &[(u64, &str)] = &[(1, "MFD_CLOEXEC"), (2, "MFD_ALLOW_SEALING"), (4, "MFD_HUGETLB"), (8, "MFD_NOEXEC_SEAL"), (0x10, "MFD_EXEC")];
#[rustfmt::skip]
const EVENTFD: &[(u64, &str)] = &[(1, "EFD_SEMAPHORE"), (0x800, "EFD_NONBLOCK"), (0x80000, "EFD_CLOEXEC")];
#[rustfmt::skip]
const INOTIFY: &[(u64, &str)] = &[(0xfff, "IN_ALL_EVENTS"), (1, "IN_ACCESS"), (2, "IN_MODIFY"), (4, "IN_ATTRIB"), (8, "IN_CLOSE_WRITE"), (0x10, "IN_CLOSE_NOWRITE"), (0x20, "IN_OPEN"), (0x40, "IN_MOVED_FROM"), (0x80, "IN_MOVED_TO"), (0x100, "IN_CREATE"), (0x200, "IN_DELETE"), (0x400, "IN_DELETE_SELF"), (0x800, "IN_MOVE_SELF"), (0x1000000, "IN_ONLYDIR"), (0x2000000, "IN_DONT_FOLLOW"), (0x4000000, "IN_EXCL_UNLINK"), (0x10000000, "IN_MASK_CREATE"), (0x20000000, "IN_MASK_ADD"), (0x40000000, "IN_ISDIR"), (0x80000000, "IN_ONESHOT")];
#[rustfmt::skip]
const XATTR: &[(u64, &str)] = &[(1, "XATTR_CREATE"), (2, "XATTR_REPLACE")];
#[rustfmt::skip]
const ENTER: &[(u64, &str)] = &[(1, "IORING_ENTER_GETEVENTS"), (2, "IORING_ENTER_SQ_WAKEUP"), (4, "IORING_ENTER_SQ_WAIT"), (8, "IORING_ENTER_EXT_ARG"), (0x10, "IORING_ENTER_REGISTERED_RING")];
#[rustfmt::skip]
const REGISTER: &[(u64, &str)] = &[(0, "IORING_REGISTER_BUFFERS"), (1, "IORING_UNREGISTER_BUFFERS"), (2, "IORING_REGISTER_FILES"), (3, "IORING_UNREGISTER_FILES"), (4, "IORING_REGISTER_EVENTFD"), (5, "IORING_UNREGISTER_EVENTFD"), (6, "IORING_REGISTER_FILES_UPDATE"), (7, "IORING_REGISTER_EVENTFD_ASYNC"), (8, "IORING_REGISTER_PROBE"), (9, "IORING_REGISTER_PERSONALITY"), (0xa, "IORING_UNREGISTER_PERSONALITY"), (0xb, "IORING_REGISTER_RESTRICTIONS"), (0xc, "IORING_REGISTER_ENABLE_RINGS")];
/// Those of an entry of io_uring, and above them those of read and write of which each request has its own.
#[rustfmt::skip]
const REQUEST: &[(u64, &str)] = &[(1, "IOSQE_FIXED_FILE"), (2, "IOSQE_IO_DRAIN"), (4, "IOSQE_IO_LINK"), (8, "IOSQE_IO_HARDLINK"), (0x10, "IOSQE_ASYNC"), (0x20, "IOSQE_BUFFER_SELECT"), (0x40, "IOSQE_CQE_SKIP_SUCCESS"), (0x200, "IOCB_DSYNC"), (0x400, "IOCB_SYNC"), (0x1000, "IOCB_APPEND")];
#[rustfmt::skip]
const OPCODE: &[(u64, &str)] = &[(0, "IORING_OP_NOP"), (1, "IORING_OP_READV"), (2, "IORING_OP_WRITEV"), (3, "IORING_OP_FSYNC"), (4, "IORING_OP_READ_FIXED"), (5, "IORING_OP_WRITE_FIXED"), (6, "IORING_OP_POLL_ADD"), (7, "IORING_OP_POLL_REMOVE"), (8, "IORING_OP_SYNC_FILE_RANGE"), (9, "IORING_OP_SENDMSG"), (10, "IORING_OP_RECVMSG"), (11, "IORING_OP_TIMEOUT"), (12, "IORING_OP_TIMEOUT_REMOVE"), (13, "IORING_OP_ACCEPT"), (14, "IORING_OP_ASYNC_CANCEL"), (15, "IORING_OP_LINK_TIMEOUT"), (16, "IORING_OP_CONNECT"), (17, "IORING_OP_FALLOCATE"), (18, "IORING_OP_OPENAT"), (19, "IORING_OP_CLOSE"), (20, "IORING_OP_FILES_UPDATE"), (21, "IORING_OP_STATX"), (22, "IORING_OP_READ"), (23, "IORING_OP_WRITE"), (24, "IORING_OP_FADVISE"), (25, "IORING_OP_MADVISE"), (26, "IORING_OP_SEND"), (27, "IORING_OP_RECV"), (28, "IORING_OP_OPENAT2"), (29, "IORING_OP_EPOLL_CTL"), (30, "IORING_OP_SPLICE"), (31, "IORING_OP_PROVIDE_BUFFERS"), (32, "IORING_OP_REMOVE_BUFFERS"), (33, "IORING_OP_TEE"), (34, "IORING_OP_SHUTDOWN"), (35, "IORING_OP_RENAMEAT"), (36, "IORING_OP_UNLINKAT"), (37, "IORING_OP_MKDIRAT"), (38, "IORING_OP_SYMLINKAT"), (39, "IORING_OP_LINKAT"), (40, "IORING_OP_MSG_RING"), (41, "IORING_OP_FSETXATTR"), (42, "IORING_OP_SETXATTR"), (43, "IORING_OP_FGETXATTR"), (44, "IORING_OP_GETXATTR"), (45, "IORING_OP_SOCKET"), (46, "IORING_OP_URING_CMD"), (47, "IORING_OP_SEND_ZC"), (48, "IORING_OP_SENDMSG_ZC"), (49, "IORING_OP_READ_MULTISHOT"), (50, "IORING_OP_WAITID"), (51, "IORING_OP_FUTEX_WAIT"), (52, "IORING_OP_FUTEX_WAKE"), (53, "IORING_OP_FUTEX_WAITV"), (54, "IORING_OP_FIXED_FD_INSTALL"), (55, "IORING_OP_FTRUNCATE"), (56, "IORING_OP_BIND"), (57, "IORING_OP_LISTEN"), (58, "IORING_OP_RECV_ZC"), (59, "IORING_OP_EPOLL_WAIT"), (60, "IORING_OP_READV_FIXED"), (61, "IORING_OP_WRITEV_FIXED"), (62, "IORING_OP_PIPE")];
#[rustfmt::skip]
const FUTEX: &[(u64, &str)] = &[(0, "FUTEX_WAIT"), (1, "FUTEX_WAKE"), (2, "FUTEX_FD"), (3, "FUTEX_REQUEUE"), (4, "FUTEX_CMP_REQUEUE"), (5, "FUTEX_WAKE_OP"), (6, "FUTEX_LOCK_PI"), (7, "FUTEX_UNLOCK_PI"), (8, "FUTEX_TRYLOCK_PI"), (9, "FUTEX_WAIT_BITSET"), (10, "FUTEX_WAKE_BITSET"), (11, "FUTEX_WAIT_REQUEUE_PI"), (12, "FUTEX_CMP_REQUEUE_PI"), (13, "FUTEX_LOCK_PI2"), (128, "FUTEX_WAIT_PRIVATE"), (129, "FUTEX_WAKE_PRIVATE"), (131, "FUTEX_REQUEUE_PRIVATE"), (132, "FUTEX_CMP_REQUEUE_PRIVATE"), (133, "FUTEX_WAKE_OP_PRIVATE"), (134, "FUTEX_LOCK_PI_PRIVATE"), (135, "FUTEX_UNLOCK_PI_PRIVATE"), (136, "FUTEX_TRYLOCK_PI_PRIVATE"), (137, "FUTEX_WAIT_BITSET_PRIVATE"), (138, "FUTEX_WAKE_BITSET_PRIVATE"), (139, "FUTEX_WAIT_REQUEUE_PI_PRIVATE"), (140, "FUTEX_CMP_REQUEUE_PI_PRIVATE"), (141, "FUTEX_LOCK_PI2_PRIVATE"), (256, "FUTEX_CLOCK_REALTIME")];
