"""Opens files of results, which are untrusted."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

MAX_HOLE_BYTES = 64 << 20
"""Results are never sparse; smaller files are read whatever a file system reports of their blocks."""
_BLOCK_BYTES = 512


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """A file opened for reading; refuses a FIFO or a device, which would not end, and a huge hole, which costs its
    maker no space. `follow`: symbolic links too.

    Raises:
        OSError: it is no regular file, is almost all hole, or cannot be opened.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    file = open(os.open(path, flags), "rb")  # noqa: SIM115
    found = os.fstat(file.fileno())
    why = None
    if not stat.S_ISREG(found.st_mode):
        why = OSError(errno.EINVAL, "is no regular file", os.fspath(path))
    elif _is_hole(file.fileno(), found):
        told = f"is sparse: {found.st_size >> 20} MiB, almost all of it a hole"
        why = OSError(errno.EFBIG, told, os.fspath(path))
    if why is not None:
        file.close()
        raise why
    return file


def _is_hole(file: int, found: os.stat_result) -> bool:
    """True if the file starts with a hole. Blocks alone are no evidence: some network file systems count none, and
    others compress."""
    if found.st_size - found.st_blocks * _BLOCK_BYTES <= MAX_HOLE_BYTES:
        return False
    hole = os.lseek(file, 0, os.SEEK_HOLE)
    os.lseek(file, 0, os.SEEK_SET)
    return hole < found.st_size


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """All of it. Raises OSError: same as `open_regular`, or it is larger than the memory."""
    with open_regular(path) as file:
        try:
            return file.read()
        except MemoryError:
            raise OSError(errno.ENOMEM, "is larger than the memory that there is", os.fspath(path)) from None
