"""Processes and threads from /proc/PID/stat: the only parser of its line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
"""Unit of CPU times and start times in /proc."""


class Stat(NamedTuple):
    """One process, or one thread. Times are in ticks; `began` is the start time since boot, without time asleep."""

    pid: int
    name: str
    state: str
    parent: int
    flags: int
    """PF_* of the kernel."""
    user: int
    system: int
    children: int
    """CPU time of children that have been waited for."""
    threads: int
    began: int

    @property
    def ended(self) -> bool:
        """True for a zombie."""
        return self.state in "ZX"


def read_stat(pid: int | str, thread: int | None = None, root: Path | str = "/") -> Stat | None:
    """A process, or one of its threads, below any root; None if it is gone."""
    place = f"{pid}/stat" if thread is None else f"{pid}/task/{thread}/stat"
    return parse_stat(read_short(os.path.join(root, "proc", place)))


def parse_stat(line: bytes) -> Stat | None:
    """Parsed line of a stat file; None if invalid."""
    head, _, tail = line.rpartition(b")")  # the name may hold blanks and parentheses: the last one ends it
    pid, bracket, name = head.partition(b" (")
    words = tail.split()
    if not bracket or len(words) < 20:
        return None
    try:
        return Stat(
            int(pid),
            name.decode("utf-8", "replace"),
            words[0].decode("ascii", "replace"),
            int(words[1]),
            int(words[6]),
            int(words[11]),
            int(words[12]),
            int(words[13]) + int(words[14]),
            int(words[17]),
            int(words[19]),
        )
    except ValueError:
        return None


def read_short(path: str) -> bytes:
    """Contents of a file of /proc of at most 4096 B, by one read; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
