"""Differences of monotonic counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def growth(
    before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """Increase of each row of counters; rows without any increase are left out.

    A row that is new, or in which a counter fell, belongs to something that was created in between and counts from 0.
    """
    grown = {}
    for name, late in after.items():
        early = before.get(name, ())
        change = tuple(b - a for a, b in zip(early, late, strict=False))
        if len(early) != len(late) or any(by < 0 for by in change):
            change = tuple(late)
        if any(change):
            grown[name] = change
    return grown


def to_ints(words: Sequence[str]) -> tuple[int, ...] | None:
    """The words as whole numbers of 0 or more; None if one is not."""
    return tuple(map(int, words)) if all(word.isascii() and word.isdecimal() for word in words) else None
