"""Sizes in bytes, as the micro-benchmarks write them: K, M and G are powers of 1024."""

from __future__ import annotations

import re

from etude.errors import UsageError

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"(\d{1,19})([kKMGT]?)(iB|B)?")
_MOST = 2**63 - 1


def size(text: str) -> int:
    """`8`, `64K`, `64KiB` or `16M` in bytes.

    Raises:
        UsageError: it is none, or is 0, or above 2^63 - 1.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] == "B" and match[2]):
        raise UsageError(f"size {text!r}: expected bytes, or a number with K, M or G (powers of 1024)")
    value = int(match[1]) << 10 * _POWERS[match[2].upper()]
    if not 0 < value <= _MOST:
        raise UsageError(f"size {text!r}: expected 1 to {_MOST} bytes")
    return value


def sizes(text: str) -> tuple[int, ...]:
    """`16M`, `4K,64K` or `8..16M` (each twice the one before), in rising order, each once.

    Raises:
        UsageError: it is none of these.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return tuple(sorted({size(part) for part in text.split(",")}))
    low, high = size(first), size(last)
    if low > high:
        raise UsageError(f"sizes {text}: the first is above the last")
    found = [low]
    while found[-1] * 2 <= high:
        found.append(found[-1] * 2)
    return tuple(found)


def shown(value: int) -> str:
    """The size in the largest unit of which it is a whole number: `16KiB`, `1536B`."""
    for letter, power in reversed(_POWERS.items()):
        if letter and value % 1024**power == 0:
            return f"{value // 1024**power}{letter}iB"
    return f"{value}B"
