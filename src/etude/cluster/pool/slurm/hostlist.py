"""Slurm's lists of nodes: `n[1-3,07],login` is n1, n2, n3, n07 and login (hostlist of Slurm's manual)."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_NODES = 65536
"""Maximum nodes of a list: Slurm's own bound."""

_PART = re.compile(r"[A-Za-z0-9._-]+|\[([0-9,-]+)\]")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def expand(text: str) -> tuple[str, ...] | None:
    """The names, in order; an empty tuple for an empty list, None for an invalid one."""
    names: list[str] = []
    for word in re.split(r",(?![^\[]*\])", text) if text else ():
        found = _names(word)
        if found is None or len(names) + len(found) > MAX_NODES:
            return None
        names += found
    return tuple(names)


def _names(word: str) -> list[str] | None:
    names, at = [""], 0
    while at < len(word):
        part = _PART.match(word, at)
        ends = [part[0]] if part and part[1] is None else _ends(part[1]) if part else None
        if part is None or ends is None or len(names) * len(ends) > MAX_NODES:
            return None
        names = [name + end for name in names for end in ends]
        at = part.end()
    return names if word else None


def _ends(ranges: str) -> list[str] | None:
    ends: list[str] = []
    for each in ranges.split(","):
        found = _RANGE.fullmatch(each)
        if found is None:
            return None
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < first + MAX_NODES:
            return None
        ends += _numbers(first, last, len(found[1]))
    return ends if len(ends) <= MAX_NODES else None


def _numbers(first: int, last: int, width: int) -> Iterator[str]:
    """Numbers padded to the width of the first: [07-10] is 07, 08, 09, 10."""
    return (str(number).zfill(width) for number in range(first, last + 1))
