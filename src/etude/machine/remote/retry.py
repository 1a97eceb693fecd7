"""Reaching a host: tried again for as long as its patience lasts, and which part of the way it was that failed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

from etude.errors import MachineRefuses
from etude.machine.remote.hosts import Entry

PAUSE_S = 1.0
"""Between two attempts."""
_KINDS = (
    ("address", True, r"Temporary failure in name|No route to host|is unreachable|timed out"),
    ("address", False, r"Could not resolve|Name or service not known"),
    ("key", True, r"[Mm]unge|authentication (?:error|credential)"),
    ("key", False, r"Permission denied|[Hh]ost key|Load key|Unable to negotiate|Too many authentication"),
    ("port", True, r"refused|kex_exchange|banner exchange|Connection (?:closed|reset)"),
)
"""Last words of ssh: the part of the hosts file that they are about, whether the fault may pass by itself, as while a
host starts, and the words."""

Reached = TypeVar("Reached")


class Unreached(MachineRefuses):
    """A host cannot be reached. `part`: the address, the port, the key or the program, "" where ssh does not say."""

    def __init__(self, entry: Entry, why: str, part: str | None = None) -> None:
        """`part`: where it is known; else it is read from ssh's words."""
        found = next(((p, passes) for p, passes, words in _KINDS if re.search(words, why)), ("", False))
        self.part, self.passes = found if part is None else (part, False)
        about = f" ({self.part})" if self.part else ""
        what = "used" if self.part == "program" else "reached"
        super().__init__(f"{entry.shown}: cannot be {what}{about}: {why}")


def reach(
    way: Callable[[Entry], Reached],
    entry: Entry,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Reached:
    """What `way` leads to; what may pass is tried again until the host's patience is over.

    Raises:
        MachineRefuses: as `way`, the last time.
    """
    until, attempts = clock() + entry.patience_s, 1
    while True:
        try:
            return way(entry)
        except Unreached as error:
            if not error.passes:
                raise
            if clock() + PAUSE_S > until:
                error.args = (f"{error}; tried {attempts} times in {entry.patience_s:g} s",)
                raise
        pause(PAUSE_S)
        attempts += 1
