"""Processes that lose their parent become children of this one, so that none escapes by an environment of its own.

What the commands of a harness start is in sessions of their own, whatever it becomes; other children of this process
are in its own session, or were there before.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

from etude.osutil.processes import read_stat

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
