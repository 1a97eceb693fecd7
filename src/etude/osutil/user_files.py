"""Opens files that a user names, including pipes, except another user's pipes, which could block forever."""

from __future__ import annotations

import errno
import os
import stat

from etude.osutil.trust import trusted_users

WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def open_user_file(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Descriptor of a file, opened with `flags`. A pipe of this user waits for its other end, as in any program.

    Raises:
        OSError: it cannot be opened, or is a FIFO that another user has made.
    """
    try:
        waits = _is_pipe(path, os.stat(path))
    except FileNotFoundError:
        waits = False
    file = os.open(path, flags | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK), 0o666)
    if not waits:
        try:
            _is_pipe(path, os.fstat(file))  # it may have been created meanwhile
            os.set_blocking(file, True)
        except BaseException:
            os.close(file)
            raise
    return file


def write_user_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file's whole content. Raises OSError: same as `open_user_file`, or it cannot be written."""
    with open(open_user_file(path, WRITE), "wb") as file:
        file.write(content)


def _is_pipe(path: str | os.PathLike[str], found: os.stat_result) -> bool:
    if not stat.S_ISFIFO(found.st_mode):
        return False
    if found.st_uid not in trusted_users() | {os.geteuid()}:
        raise OSError(errno.EACCES, f"is a FIFO of user {found.st_uid}: refused", os.fspath(path))
    return True
