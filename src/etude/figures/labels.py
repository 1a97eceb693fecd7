"""Texts that come from outside, as labels: short, of one line, and never taken for markup."""

from __future__ import annotations

from etude.errors import UsageError

LONGEST = 48
"""Characters of a label."""

MOST_SERIES = 24
"""More curves, or kinds of bars, cannot be told from each other."""


def label(text: str, longest: int = LONGEST) -> str:
    """The text in one line, without control characters, shortened in its middle."""
    clean = "".join(c if c.isprintable() else " " for c in text.encode("utf-8", "replace").decode("utf-8"))
    clean = " ".join(clean.split())
    if len(clean) <= longest:
        return clean
    half = (longest - 1) // 2
    return f"{clean[: longest - 1 - half]}…{clean[len(clean) - half :]}"


def check_count(count: int, what: str) -> None:
    """Raises UsageError where there are more than can be told from each other."""
    if count > MOST_SERIES:
        raise UsageError(
            f"{count} {what} in one figure are not distinguishable; choose at most {MOST_SERIES} "
            "(name fewer files, or --test)"
        )
