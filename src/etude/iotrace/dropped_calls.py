"""Calls of a recording that are not in its script: the time within calls that no replay makes (docs/scripts.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from etude.errors import InputError
from etude.iotrace.calls import BOTH, READS, WRITES

_HEAD = ("etude script ", "#", "scheduling ", "file ", "directory ", "link ", "name ", "dropped ")
"""How lines above the first step begin."""
_DROPPED = re.compile(r'dropped (\w+) "(?:[^"\\]|\\.)*" \d+ calls \d+ bytes \d+ requests (\d+\.\d+)')


@dataclass(frozen=True)
class Dropped:
    """Time within calls that are not in a script, s."""

    read_s: float = 0.0
    write_s: float = 0.0
    all_s: float = 0.0


def dropped_by(script: Path) -> Dropped:
    """Add up what a script says of calls that it has not; zeros for a script that says nothing.

    Raises:
        InputError: it cannot be read.
    """
    try:
        found = list(_calls(script))
    except OSError as error:
        raise InputError(f"{script}: {error.strerror}") from None
    return Dropped(
        read_s=sum(seconds for name, seconds in found if name in (*READS, *BOTH)),
        write_s=sum(seconds for name, seconds in found if name in (*WRITES, *BOTH)),
        all_s=sum(seconds for _, seconds in found),
    )


def _calls(script: Path) -> Iterator[tuple[str, float]]:
    with script.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith(_HEAD):
                return
            if known := _DROPPED.match(line):
                yield known[1], float(known[2])
