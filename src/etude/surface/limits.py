"""What limits at each cell: the factor of which more would help most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from etude.surface.factors import Cell, Factor, magnitude
from etude.surface.ranges import LITTLE
from etude.surface.surface_result import Filled, z_of

NOTHING = "nothing that was varied"


@dataclass(frozen=True)
class Limit:
    """What more of a factor does at one cell."""

    cell: Cell
    name: str
    """Of the cell."""
    factor: str | None
    """None: a next level of none of them does anything."""
    elasticity: float
    """d log response / d log level of that factor, counted so that more is better; 1: in proportion."""
    gain: float
    """What its next level adds to the response, a share; of a cost, what it takes off."""
    sure: bool
    """Whether the interval of the gain excludes none."""
    beyond: bool
    """Whether it has its highest level here: then the gain is that of the step before."""


def limits(filled: Filled, better: str = "higher", little: float = LITTLE) -> tuple[Limit, ...]:
    """Of each cell that is known, in the order of the space.

    Only factors whose levels rise can limit. Of those whose next level changes the response for the better by `little`
    or more it is the one with the largest elasticity; an ordered factor's step counts as a doubling.
    """
    sign = 1.0 if better == "higher" else -1.0
    return tuple(_limit(filled, cell, sign, little) for cell in filled.space if filled.known[cell])


def _limit(filled: Filled, cell: Cell, sign: float, little: float) -> Limit:
    name = filled.space.name(cell)
    found = [
        limit
        for at in range(len(cell))
        if (limit := _step(filled, cell, at, sign)) is not None and limit.gain > little
    ]
    if not found:
        return Limit(cell, name, None, 0.0, 0.0, sure=False, beyond=False)
    return max(found, key=lambda each: each.elasticity)


def _step(filled: Filled, cell: Cell, at: int, sign: float) -> Limit | None:
    """What the next level of one factor does; at its highest, what the last step did."""
    factor = filled.space.factors[at]
    beyond = cell[at] == len(factor.levels) - 1
    below = cell[at] - 1 if beyond else cell[at]
    if factor.scale == "categorical" or below < 0:
        return None
    low, high = ((*cell[:at], level, *cell[at + 1 :]) for level in (below, below + 1))
    if not (filled.known[low] and filled.known[high]):
        return None
    gain = sign * float(filled.log[high] - filled.log[low])
    sd = math.hypot(float(filled.sd[low]), float(filled.sd[high]))
    sure = gain - z_of(filled.confidence) * sd > 0
    share = math.expm1(gain) if sign > 0 else -math.expm1(-gain)
    return Limit(
        cell, filled.space.name(cell), factor.name, gain / _log_step(factor, below), share, sure, beyond
    )


def _log_step(factor: Factor, level: int) -> float:
    """From a level to the next in log; a doubling where that is no number."""
    if factor.numeric and magnitude(factor.levels[level]) > 0:
        return math.log(magnitude(factor.levels[level + 1]) / magnitude(factor.levels[level]))
    return math.log(2)
