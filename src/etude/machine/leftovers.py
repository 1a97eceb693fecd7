"""Processes that outlived the run that started them: found by their environment or their cgroup, and ended."""

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
    """Processes with this in their environment, but not this one nor those that it descends from. Those of other users
    are not seen, unless by root."""
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
    """The empty cgroups that Études of these process ids had made for their tests."""
    names = tuple(f"etude-{etude}-" for etude in etudes)
    for place, _, _ in os.walk(GROUPS, topdown=False):
        if names and any(part.startswith(names) for part in Path(place).parts):
            with suppress(OSError):  # it is not empty, or gone
                os.rmdir(place)


def stop(
    members: Callable[[], Sequence[int]], grace_s: float, poll: Callable[[], object] = lambda: None
) -> None:
    """SIGTERM to all of them, and SIGKILL to what is left after the grace; `poll` waits for those that are ours."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for pid in members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        until = time.monotonic() + patience_s
        while True:
            poll()
            if all(map(zombie, members())):
                return
            if time.monotonic() >= until:
                break
            time.sleep(0.02)


def zombie(pid: int) -> bool:
    """Whether it is none any more, or ended and was not waited for."""
    found = read_stat(pid)
    return found is None or found.ended


def name(pid: int) -> str:
    """Its name and number, for a message."""
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
    except OSError:  # it has ended, or is not ours
        return b""


_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
"""Options of prctl(2), since Linux 3.4."""


class Orphans:
    """From its making until `close`: what lost its parent meanwhile, and all that descends from it."""

    def __init__(self) -> None:
        self._former = _subreaper()
        _call(_SET_SUBREAPER, ctypes.c_ulong(1))
        self._before = {pid for pid, parent in _parents().items() if parent == os.getpid()}

    def close(self) -> None:
        """Orphans go to whom they went before."""
        _call(_SET_SUBREAPER, ctypes.c_ulong(self._former))

    def members(self) -> list[int]:
        """Those that there are; commands that are still held count, too: end these before."""
        parents = _parents()
        found = {pid for pid, parent in parents.items() if parent == os.getpid() and self._adopted(pid)}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def reap(self) -> None:
        """Those that have ended."""
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
