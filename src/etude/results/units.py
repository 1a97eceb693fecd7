"""Units in which values of other programs' files are stored, and the kind of a metric by its unit."""

from __future__ import annotations

import re

from etude.units.parsing import (
    PER_SECOND,
    SIZE,
    TIME,
    Unit,
    unit_of,
)


def stored_unit(text: str) -> Unit:
    """The unit in which a value in the named unit is stored: the base unit; the unit itself if it is unknown,
    or names what is counted, such as `req/s`."""
    known = unit_of(text)
    return Unit(text) if known is None or known == PER_SECOND else known


def is_rate(unit: str) -> bool:
    """True if the unit is something over a time: `ops/sec` and `Hz`, and unknown ones such as `Mbit/s`."""
    known = unit_of(unit)
    return (known.base if known else unit).endswith("/s")


def kind_of(unit: str) -> str:
    """The kind of a metric by its unit alone."""
    if unit == "ratio":
        return "ratio"
    if is_rate(unit):
        return "rate"
    known = unit_of(unit)
    unit = known.base if known else unit
    return "count" if unit in ("1", "%") else "cost"  # shares of a whole: neither high nor low is better


_BRACKETS = re.compile(r"(?P<name>.*\S)\s*[(\[]\s*(?P<unit>[^()\[\]]+?)\s*[)\]]\s*", re.DOTALL)
_SUFFIX = re.compile(r"(?P<name>.*[^_])_(?P<unit>[A-Za-z]+)", re.DOTALL)
_AFTER_UNDERSCORE = frozenset(name for name in (*TIME, *SIZE, "pct", "percent") if name not in ("B", "h"))


def heading(text: str) -> tuple[str, Unit | None]:
    """Name and unit of a column: `time (ms)`, `time [ms]` or `time_ms`; the text itself if it names no unit."""
    text = text.strip()
    match = _BRACKETS.fullmatch(text) if len(text) < 200 else None
    if match is not None and unit_of(match["unit"]) is not None:
        return match["name"].strip(), unit_of(match["unit"])
    match = _SUFFIX.fullmatch(text) if len(text) < 200 else None
    if match is not None and match["unit"] in _AFTER_UNDERSCORE:
        return match["name"], unit_of(match["unit"])
    return text, None
