"""Lists and ranges of sizes."""

from __future__ import annotations

from etude.errors import UsageError
from etude.units.parsing import QuantityError, size


def sizes(text: str) -> tuple[int, ...]:
    """`16M`, `4K,64K` or `8..16M` (each twice the one before), in rising order, each once.

    Raises:
        UsageError: it is none of these.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return tuple(sorted({_size(part) for part in text.split(",")}))
    low, high = _size(first), _size(last)
    if low > high:
        raise UsageError(f"sizes {text}: the first is above the last")
    found = [low]
    while found[-1] * 2 <= high:
        found.append(found[-1] * 2)
    return tuple(found)


def _size(text: str) -> int:
    try:
        return size(text)
    except QuantityError as error:
        raise UsageError(f"size {error}") from None
