"""Atomic file replacement, locks, and private scratch directories that are removed even after a kill."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from etude.errors import UsageError

PREFIX = "etude-scratch-"


def path_text(path: object, name: str) -> str:
    """The text of a path. Raises UsageError: it is none, with the name of the argument."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text:
        raise UsageError(f"{name} {path!r:.80}: expected a path")
    return text


def replace_file(path: Path, text: bytes, *, mode: int | None = None, sync: bool = True) -> None:
    """Write a file atomically: as `.NAME.new` beside it, synced, renamed. It has `mode`; default: by the umask.

    `sync` makes the contents durable; `sync_directory` the name.

    Raises:
        OSError: it cannot be written; the file is unchanged, and no temporary file is left.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(beside, flags, 0o666 if mode is None else 0o600), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed or the process ends; False while another process has the lock.

    Raises:
        OSError: its file system has no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_holder(lock: Path, kind: str = "FLOCK", table: Path = Path("/proc/locks")) -> int | None:
    """Process that locked a file, 0 if unknown; None if there is no known holder.

    kind: of lock, as in /proc/locks: FLOCK by flock(2), POSIX by fcntl(2).
    """
    try:
        found = os.stat(lock, follow_symlinks=False)
        lines = table.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    name = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for _, each, *_, pid, file, _, _ in (line.split() for line in lines if "->" not in line):
        if each == kind and file == name:
            return max(int(pid), 0)
    return None


def named_process(pid: int) -> str | None:
    """A process, its program and user, for messages; None if it has ended."""
    try:
        program = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        return f"process {pid}, {program}, of user {os.stat(f'/proc/{pid}').st_uid}"
    except OSError:
        return None


@contextmanager
def scratch_directory(parent: str | None = None) -> Iterator[Path]:
    """A directory for this user alone, removed afterwards, or by the next one if its process is killed.

    Its lock shows that its process lives. `parent`: default the directory for temporary files.

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
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            lock = _open(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.is_dir():
                return path, lock
            os.close(lock)


def _remove_if_left(path: Path) -> None:
    """Remove a directory unless it is another user's, or its process lives."""
    try:
        lock = _open(path)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid() and try_lock(lock):
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
