"""Subjects of calls: calls that move data, arguments that are descriptors, texts that are paths."""

from __future__ import annotations

from dataclasses import dataclass

READS = ("read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg")
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg", "sendmmsg")
BOTH = ("sendfile", "copy_file_range", "splice", "tee", "vmsplice")
"""Calls that move bytes from one descriptor to another: they are read and written."""
COUNTED_IN_MESSAGES = ("recvmmsg", "sendmmsg")
"""Their results are no bytes."""
PLACED = ("pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2")
"""They say where, in their fourth argument; -1 of the last forms is the file's own place."""
IN_ORDER = ("read", "readv", "write", "writev")
"""They go on at the file's own place."""

CWD = -100
"""AT_FDCWD: the directory of the process, which is kept like a descriptor."""
NONE = -1
"""No such argument."""


@dataclass(frozen=True)
class Subject:
    """Numbers of the arguments and texts that name what a call is about."""

    descriptor: int = NONE
    """Argument."""
    directory: int = NONE
    """Argument with the descriptor that a path begins at; NONE: the directory of the process."""
    path: int = NONE
    """Number of the text that is the path."""
    source: int = NONE
    """Argument with the descriptor that data are read from, where it is another one."""


def _by_path(names: str) -> dict[str, Subject]:
    return {name: Subject(path=0) for name in names.split()}


def _by_directory(names: str) -> dict[str, Subject]:
    return {name: Subject(directory=0, path=0) for name in names.split()}


def _by_descriptor(names: str) -> dict[str, Subject]:
    return {name: Subject(descriptor=0) for name in names.split()}


SUBJECTS = {
    **_by_path(
        "open creat truncate stat lstat access readlink rename link unlink mkdir rmdir mknod chmod chown lchown utime "
        "utimes chdir statfs setxattr lsetxattr getxattr lgetxattr listxattr llistxattr removexattr lremovexattr"
    ),
    **_by_directory(
        "openat openat2 newfstatat statx faccessat faccessat2 readlinkat renameat renameat2 linkat unlinkat mkdirat "
        "mknodat fchmodat fchownat utimensat futimesat"
    ),
    **_by_descriptor(
        "close read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 vmsplice lseek fsync fdatasync "
        "sync_file_range syncfs ftruncate fallocate fadvise64 readahead fstat getdents getdents64 fchmod fchown fchdir "
        "dup dup2 dup3 fcntl ioctl flock io_uring_enter io_uring_register connect accept accept4 bind sendto recvfrom "
        "sendmsg recvmsg sendmmsg recvmmsg shutdown fstatfs fsetxattr fgetxattr flistxattr fremovexattr "
        "sqe_read sqe_write sqe_fsync sqe_fdatasync iocb_read iocb_write iocb_fsync iocb_fdatasync"
    ),
    "inotify_add_watch": Subject(path=0),
    "symlink": Subject(path=1),
    "symlinkat": Subject(directory=1, path=1),
    "mmap": Subject(descriptor=4),
    "sendfile": Subject(descriptor=0, source=1),
    "copy_file_range": Subject(descriptor=2, source=0),
    "splice": Subject(descriptor=2, source=0),
    "tee": Subject(descriptor=1, source=0),
}
"""Subjects by the call's name; a call that is not here is about no file."""
