"""Processes and threads as /proc/PID/stat shows them: the one place that takes its line apart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
"""What /proc counts CPU time and moments in."""


class Stat(NamedTuple):
    """One process, or one thread. Times are in ticks; `began` is one since boot, without the time asleep."""

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
        """Whether it has ended and is not waited for yet."""
        return self.state in "ZX"


def read_stat(pid: int | str, thread: int | None = None, root: Path | str = "/") -> Stat | None:
    """A process, or one of its threads, below any root; None if it is gone."""
    place = f"{pid}/stat" if thread is None else f"{pid}/task/{thread}/stat"
    return parse_stat(read_short(os.path.join(root, "proc", place)))


def parse_stat(line: bytes) -> Stat | None:
    """The line of a stat file; None if it is none."""
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
    """A file of /proc of at most 4096 B, by one read, which is all of it; empty if it cannot be read."""
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
