"""Files of results, as whoever made the directory has left them."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file, opened to be read; a FIFO or a device in its place, or behind a link, would not end.

    Raises:
        OSError: it is no regular file, or cannot be opened.
    """
    file = open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))
    return file


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """All of it. Raises OSError as `open_regular`."""
    with open_regular(path) as file:
        return file.read()
