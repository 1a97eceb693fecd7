"""Processes that the OOM killer ended inside cgroups, as their memory controller counts them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_FILES = ("memory.events", "memory.oom_control")
"""Of version 2, and of version 1 from Linux 4.13 on; each has a line `oom_kill COUNT`."""


def oom_kills(groups: Iterable[str]) -> int:
    """How many since these groups were made; 0 where none has a memory controller, or the kernel does not count."""
    return sum(_count(Path(group) / name) for group in groups for name in _FILES)


def _count(file: Path) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return int(counts[0]) if counts else 0
