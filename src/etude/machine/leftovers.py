"""Processes that outlived the run that started them: found by their environment or cgroup, and ended."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from etude.osutil.processes import read_stat

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")


def marked_processes(variable: str, value: str) -> list[int]:
    """Processes with this variable in their environment, except this one and its ancestors. Processes of other users
    are visible only to root."""
    mark = f"{variable}={value}".encode()
    return [pid for pid in _others() if mark in _read(pid, "environ").split(b"\0")]


def in_groups_of(etudes: Collection[int]) -> list[int]:
    """Processes in the cgroups that Études of these process ids had made for their tests."""
    marks = [f"/etude-{etude}-".encode() for etude in etudes]
    if not marks:
        return []
    groups = ((pid, _read(pid, "cgroup")) for pid in _others())
    return [pid for pid, group in groups if any(mark in group for mark in marks)]


def remove_groups(etudes: Collection[int]) -> None:
    """Remove the empty cgroups that Études of these process ids had made for their tests."""
    names = tuple(f"etude-{etude}-" for etude in etudes)
    for place, _, _ in os.walk(GROUPS, topdown=False):
        if names and any(part.startswith(names) for part in Path(place).parts):
            with suppress(OSError):  # not empty, or gone
                os.rmdir(place)


def stop(
    members: Callable[[], Sequence[int]], grace_s: float, poll: Callable[[], object] = lambda: None
) -> None:
    """SIGTERM to all of them, and SIGKILL to the rest after the grace period; `poll` reaps our own children."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for pid in members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        until = time.monotonic() + patience_s
        while True:
            poll()
            if all(map(is_gone, members())):
                return
            if time.monotonic() >= until:
                break
            time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """True if the process is gone, or has ended and was not reaped."""
    found = read_stat(pid)
    return found is None or found.ended


def name(pid: int) -> str:
    """Its name and process id, for a message."""
    return f"{_read(pid, 'comm').decode('utf-8', 'replace').strip() or '?'} (process {pid})"


def _others() -> Iterator[int]:
    own = {os.getpid(), *_ancestors()}
    return (int(entry) for entry in os.listdir(PROC) if entry.isdigit() and int(entry) not in own)


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 0:
        yield pid
        found = read_stat(pid)
        pid = 0 if found is None else found.parent


def _read(pid: int, file: str) -> bytes:
    try:
        return (PROC / str(pid) / file).read_bytes()
    except OSError:  # it has ended, or belongs to another user
        return b""


_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
"""Options of prctl(2), since Linux 3.4."""


class Orphans:
    """Processes orphaned between its creation and `close`, and all of their descendants."""

    def __init__(self) -> None:
        self._former = _subreaper()
        _call(_SET_SUBREAPER, ctypes.c_ulong(1))
        self._before = {pid for pid, parent in _parents().items() if parent == os.getpid()}

    def close(self) -> None:
        """Orphans go to their former subreaper again."""
        _call(_SET_SUBREAPER, ctypes.c_ulong(self._former))

    def members(self) -> list[int]:
        """Present orphans; running commands count too: end these before."""
        parents = _parents()
        found = {pid for pid, parent in parents.items() if parent == os.getpid() and self._adopted(pid)}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def reap(self) -> None:
        """Reap those that have ended."""
        for pid in self.members():
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)

    def _adopted(self, pid: int) -> bool:
        with suppress(OSError):
            return pid not in self._before and os.getsid(pid) != os.getsid(0)
        return False


def _parents() -> dict[int, int]:
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (seen := read_stat(entry)) is not None:
            found[seen.pid] = seen.parent
    return found


def _subreaper() -> int:
    value = ctypes.c_int()
    _call(_GET_SUBREAPER, ctypes.byref(value))
    return value.value


def _call(option: int, argument: object) -> None:
    ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)
