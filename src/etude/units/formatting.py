"""Numbers as people read them: a quantity in the unit that suits it, with the digits that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

HOUR_S, DAY_S = 3600.0, 86400.0
YEAR_S = 365.25 * DAY_S
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
LONGEST_RATIO = 1e6
"""Ratios from here on have four digits and an exponent."""
WIDE = 100.0
"""The same from here on if the other end would be zero with two decimals."""
MOST_DECIMALS = 5


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """A divisor and a unit's name that make `value` pleasant to read."""
    if unit in ("B/s", "1/s"):
        divisor, name = scale_of(value, unit[0])
        return divisor, f"{name}/s"
    steps = {"s": _SECONDS, "B": _BYTES, "1": _COUNTS}.get(unit)
    if steps is None:
        return 1.0, unit
    for divisor, name in steps:
        if abs(value) >= divisor:
            return divisor, name
    return steps[0] if unit == "s" and value == 0 else steps[-1]


def quantity(value: float | None, unit: str, like: float | None = None) -> str:
    """`12.35 ms`: the value with four digits, in the unit that suits `like` (itself, unless given)."""
    if value is None or math.isnan(value):
        return "–"
    divisor, name = scale_of(value if like is None else like, unit)
    return f"{digits(value / divisor)} {name}".rstrip()


def rounded(value: float | None, unit: str, uncertainty: float | None, like: float | None = None) -> str:
    """The value with as many digits as its uncertainty (half the width of its interval) leaves: two of that one's.

    At least two digits and at most six; four where the uncertainty is not known.
    """
    if value is None or math.isnan(value):
        return "–"
    if uncertainty is None or not 0.0 < uncertainty < math.inf or value == 0.0 or not math.isfinite(value):
        return quantity(value, unit, like)
    divisor, name = scale_of(value if like is None else like, unit)
    significant = math.floor(math.log10(abs(value))) - math.floor(math.log10(uncertainty)) + 2
    return f"{digits(value / divisor, min(max(significant, 2), 6))} {name}".rstrip()


def digits(x: float, significant: int = 4) -> str:
    """Plain notation with that many significant digits, never fewer than the whole part needs."""
    if x == 0 or not 1e-15 < abs(x) < 1e15:
        return f"{x:.{significant}g}"
    exponent = int(f"{x:.{significant - 1}e}".partition("e")[2])  # of the rounded value: 9.9999 is 10.00
    return f"{x:,.{max(0, significant - 1 - exponent)}f}"


def percent(relative: float, *, up: bool = False) -> str:
    """`1.9 %`: two significant digits, and all of the whole part; up: rounded upwards, for a bound."""
    value = 100 * relative
    if not math.isfinite(value):
        return "any number of %"
    places = min(0 if value == 0 else max(0, 1 - math.floor(math.log10(abs(value)))), 3)
    if up:
        value = math.ceil(value * 10**places - 1e-9) / 10**places
    return f"{value:.{places}f} %"


def span(low: float, high: float) -> str:
    """`1.02–1.06`, with as many decimals as it takes to tell the ends apart, and each from 1."""
    form = ratio_format(max(low, high), low, high)
    return f"{low:{form}}–{high:{form}}"


def ratio_format(largest: float, low: float, high: float) -> str:
    """The format of ratios up to `largest` whose interval has these ends."""
    width = abs(high - low)
    ends = [end for end in (low, high) if math.isfinite(end)]
    largest = max((size for size in (largest, *ends) if size < math.inf), default=0.0)
    if width == 0 or largest >= LONGEST_RATIO or (largest >= WIDE and _vanishing(ends, 2)):
        return ".4g"
    places = 2 if not width < math.inf else max(2, 1 - math.floor(math.log10(width)))
    while places < MOST_DECIMALS and (
        _vanishing(ends, places) or any(end != 1.0 and round(end, places) == 1.0 for end in ends)
    ):
        places += 1
    places = min(places, MOST_DECIMALS)
    return ".4g" if _vanishing(ends, places) else f".{places}f"


def _vanishing(ends: Sequence[float], places: int) -> bool:
    """True if one that is not zero would be zero with so many decimals."""
    return any(end and not round(end, places) for end in ends)


def duration(seconds: float) -> str:
    """`20 ms`, `14 s`, `3 min`, `2.0 h`, `5 days`, `3 years`: for what is still to come."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * DAY_S:
        return f"{seconds / HOUR_S:.1f} h"
    return f"{seconds / DAY_S:,.0f} days" if seconds < 2 * YEAR_S else f"{seconds / YEAR_S:,.0f} years"


def counted(count: int, what: str) -> str:
    """`1 more pair`, `1,200 more pairs`, `4 processes`."""
    ending = "" if count == 1 else "es" if what.endswith("s") else "s"
    return f"{count:,} {what}{ending}"


def p_value(p: float) -> str:
    """`p = 0.0042`, `p < 0.0001`."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def level_text(confidence: float) -> str:
    """`95 %`; never 100 %, which nothing is."""
    text = f"{100 * confidence:.7g}"
    return f"{100 * confidence:.15g} %" if text == "100" else f"{text} %"
