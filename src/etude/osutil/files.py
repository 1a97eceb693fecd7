"""Private directories for temporary files: those of processes that were killed are removed by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "etude-scratch-"


@contextmanager
def scratch_directory(parent: str | None = None) -> Iterator[Path]:
    """A directory for this user alone. It goes away afterwards, or with the next one if its process is killed.

    Its lock shows that its process lives. `parent` is the directory for temporary files unless it is given.

    Raises:
        OSError: none can be made.
    """
    for left in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _remove_if_left(left)
    path, lock = _locked_directory(parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _locked_directory(parent: str | None) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # another process has removed it before it was locked
            lock = _open(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.is_dir():
                return path, lock
            os.close(lock)


def _remove_if_left(path: Path) -> None:
    """Unless it is another user's, or its process lives."""
    try:
        lock = _open(path)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
