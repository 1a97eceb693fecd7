"""Effective ranges of factors, and the level of a factor at which a target is reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from etude.surface.factors import Configuration, Factor
from etude.surface.surface_result import Filled, z_of
from etude.surface.surface_text import row_of, setting_text, settings_of

LITTLE = 0.05
"""Relative change below which a response counts as unchanged."""


@dataclass(frozen=True)
class Range:
    """Range of levels of one factor over which the response changes ("the bounds of the effective range")."""

    factor: str
    setting: str
    """Setting of the other factors; empty: over all of them."""
    low: int
    """Lower bound: up to this level the response does not change; 0: it changes from the lowest one on."""
    high: int
    """Upper bound: from this level on the response does not change."""
    levels: tuple[str, ...]
    little: float
    could_be: float
    """Maximum relative change beyond `high` that the intervals allow; inf if there is no level beyond."""
    shown: int
    """Level from which on no change is significant; at most `high`."""

    @property
    def none(self) -> bool:
        """True if the factor has no effect."""
        return self.low >= self.high

    @property
    def open(self) -> bool:
        """True if the response still changes at the highest level."""
        return not self.none and self.high == len(self.levels) - 1


@dataclass(frozen=True)
class BreakEven:
    """The smallest level at which the response reaches a target."""

    factor: str
    setting: str
    target: float
    level: str | None
    """The level by the values; None if no level reaches the target."""
    earliest: str | None
    """The level by the better ends of the intervals: no lower level reaches the target."""
    surely: str | None
    """The level by the worse ends: it certainly reaches the target."""


def effective_ranges(filled: Filled, little: float = LITTLE) -> tuple[tuple[Range, tuple[Range, ...]], ...]:
    """Ranges of each factor with ordered levels: over all settings of the others, and for each of them."""
    found = []
    for at, factor in enumerate(filled.space.factors):
        if factor.scale == "categorical" or len(factor.levels) < 2:
            continue
        cells = settings_of(filled.space, [at])
        each = [r for cell in cells if (r := _range(filled, at, factor, cell, little)) is not None]
        if each:
            found.append((_overall(each, factor), tuple(each)))
    return tuple(found)


def break_evens(filled: Filled, factor: str, target: float, better: str = "higher") -> tuple[BreakEven, ...]:
    """Break-even levels for each setting of the others. Raises KeyError for an unknown factor."""
    names = [each.name for each in filled.space.factors]
    if factor not in names:
        raise KeyError(factor)
    at = names.index(factor)
    return tuple(_break_even(filled, at, cell, target, better) for cell in settings_of(filled.space, [at]))


def _range(filled: Filled, at: int, factor: Factor, cell: Configuration, little: float) -> Range | None:
    row = [each for each in row_of(cell, at, len(factor.levels)) if filled.known[each]]
    if len(row) < 2:
        return None
    numbers = [each[at] for each in row]
    logs = [float(filled.log[each]) for each in row]
    most = math.log1p(little) + 1e-12
    last = len(row) - 1
    low = max(n for n in range(len(row)) if all(abs(y - logs[n]) < most for y in logs[:n]))
    high = min(n for n in range(len(row)) if all(abs(y - logs[n]) < most for y in logs[n:]))
    low = low if low < high else 0  # small steps everywhere
    could = [_at_most(filled, row[high], each) for each in row[high + 1 :]]
    bound = max(could, default=0.0) if high < last else math.inf
    levels = tuple(map(factor.text, range(len(factor.levels))))
    shown = min(n for n in range(len(row)) if not any(_differ(filled, row[n], e) for e in row[n:]))
    setting = setting_text(filled.space.factors, cell, [at])
    return Range(
        factor.name, setting, numbers[low], numbers[high], levels, little, bound, numbers[min(shown, high)]
    )


def _differ(filled: Filled, one: Configuration, other: Configuration) -> bool:
    apart = abs(float(filled.log[one] - filled.log[other]))
    return apart > z_of(filled.confidence) * math.hypot(float(filled.sd[one]), float(filled.sd[other]))


def _at_most(filled: Filled, one: Configuration, other: Configuration) -> float:
    """Largest relative change between two configurations that their intervals allow."""
    apart = abs(float(filled.log[one] - filled.log[other]))
    return math.expm1(
        apart + z_of(filled.confidence) * math.hypot(float(filled.sd[one]), float(filled.sd[other]))
    )


def _overall(each: Sequence[Range], factor: Factor) -> Range:
    """Range from the lowest to the highest bound over the settings in which the factor has an effect."""
    working = [r for r in each if not r.none] or each
    low, high = min(r.low for r in working), max(r.high for r in working)
    could = max((r.could_be for r in working if r.high == high), default=math.inf)
    shown = max(r.shown for r in working)
    return Range(factor.name, "", low, high, each[0].levels, each[0].little, could, shown)


def _break_even(filled: Filled, at: int, cell: Configuration, target: float, better: str) -> BreakEven:
    factor, sign = filled.space.factors[at], 1.0 if better == "higher" else -1.0
    row = [each for each in row_of(cell, at, len(factor.levels)) if filled.known[each]]
    z, aim = z_of(filled.confidence), sign * math.log(target) - 1e-12

    def first(away: float) -> str | None:
        """The lowest level at which log + away * sd reaches the target."""
        reached = (e[at] for e in row if sign * filled.log[e] + away * filled.sd[e] >= aim)
        level = next(reached, None)
        return None if level is None else factor.text(level)

    setting = setting_text(filled.space.factors, cell, [at])
    return BreakEven(factor.name, setting, target, first(0.0), first(z), first(-z))
