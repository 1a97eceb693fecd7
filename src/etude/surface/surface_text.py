"""Text of responses, ratios and settings of a surface."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from etude.surface.factors import Configuration, Factor, Space
from etude.surface.surface_result import Estimate
from etude.units.formatting import digits, quantity


def value_text(value: float | None, unit: str) -> str:
    """`512.4/s`, `38.12 ms`; a dash if there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if unit == "1/s":
        return f"{digits(value)}/s"
    return quantity(value, unit) if unit in ("s", "B", "B/s") else f"{digits(value)} {unit}".rstrip()


def span_text(low: float, high: float, unit: str) -> str:
    """`493.0/s … 537.0/s`; a question mark for a missing bound."""
    ends = ["?" if not 0 < end < math.inf else value_text(end, unit) for end in (low, high)]
    return ends[0] if ends[0] == ends[1] == "?" else f"{ends[0]} … {ends[1]}"


def estimate_text(each: Estimate, unit: str) -> str:
    """Value of a configuration; `> 5,000/s` if it has only a bound."""
    if each.value is not None:
        return value_text(each.value, unit)
    if each.state == "bounded" and each.low > 0 and math.isinf(each.high):
        return f"> {value_text(each.low, unit)}"
    if each.state == "bounded" and math.isfinite(each.high):
        return f"< {value_text(each.high, unit)}" if each.low <= 0 else span_text(each.low, each.high, unit)
    return "failed"


def axis_label(name: str, unit: str) -> str:
    """`peak rate (1/s)`."""
    return f"{name} ({unit})" if unit else name


def setting_text(factors: Sequence[Factor], cell: Configuration, without: Iterable[int] = ()) -> str:
    """`disks=2 fs=ext4`: levels of all factors except those of `without`."""
    left_out = set(without)
    pairs = [(f, level) for n, (f, level) in enumerate(zip(factors, cell, strict=True)) if n not in left_out]
    return " ".join(f"{factor.name}={factor.text(level)}" for factor, level in pairs)


def settings_of(space: Space, without: Iterable[int]) -> list[Configuration]:
    """One configuration for each setting of the other factors, with those of `without` at their lowest level, in
    order."""
    at = set(without)
    found = (tuple(0 if n in at else level for n, level in enumerate(cell)) for cell in space)
    return list(dict.fromkeys(found))


def row_of(cell: Configuration, factor: int, count: int) -> list[Configuration]:
    """The configurations that differ from `cell` in one factor, over all its levels."""
    return [(*cell[:factor], level, *cell[factor + 1 :]) for level in range(count)]


def joined(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
