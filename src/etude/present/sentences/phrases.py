"""Phrases that several sentences share."""

from __future__ import annotations

import math
from collections.abc import Sequence

NAMED = 5
"""Maximum number of trials whose numbers are named."""
EXTENDED = "extended after inspecting results"
"""Mark of intervals whose confidence holds only if no result was seen before the last trials were made."""
INSTEAD = "make each trial longer, judge a less noisy metric, or accept a coarser precision"
"""The alternatives to more trials."""
WITHOUT_SHELL = "leave out --shell, or give the command more to do"


def named(trials: Sequence[int]) -> str:
    """`trial 4`, `trials 4, 9 and 17`, `trials 4, 9, 17, 18, 20 and 3 more`."""
    first = [str(t) for t in trials[:NAMED]]
    if len(trials) == 1:
        return f"trial {first[0]}"
    if len(trials) > NAMED:
        return f"trials {', '.join(first)} and {len(trials) - NAMED} more"
    return f"trials {', '.join(first[:-1])} and {first[-1]}"


def signed(relative: float) -> str:
    """`23 % above`, `4.1 % below`; `2.1 times`, from twice as much on."""
    if 1 <= relative < math.inf:
        return f"{1 + relative:.3g} times"
    return f"{size(relative)} {'above' if relative > 0 else 'below'}"


def size(relative: float) -> str:
    """A change without its sign, as percent; beyond ten times as such."""
    value = abs(relative)
    if not value < 10:
        return f"{value:.3g} times the median" if math.isfinite(value) else "any number of %"
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


def some_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{separator.join(texts[:most])}{more}"


def every(seconds: float) -> str:
    """`1 s`, `100 ms`: the time between readings."""
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"
