"""Limiting factors: for each configuration the factor that improves the response most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from etude.surface.factors import Configuration, Factor, magnitude
from etude.surface.ranges import LITTLE
from etude.surface.surface_result import Filled, z_of

NOTHING = "nothing that was varied"


@dataclass(frozen=True)
class Limit:
    """The limiting factor at one configuration."""

    cell: Configuration
    name: str
    """Name of the configuration."""
    factor: str | None
    """None: the next level of no factor has an effect."""
    elasticity: float
    """d log response / d log level of that factor, positive for an improvement; 1: proportional."""
    gain: float
    """Relative improvement of the response by its next level (for a cost, the reduction)."""
    sure: bool
    """True if the interval of the gain excludes 0."""
    beyond: bool
    """True if the factor is at its highest level: the gain is then that of the previous step."""


def limits(filled: Filled, better: str = "higher", little: float = LITTLE) -> tuple[Limit, ...]:
    """Limits of all known configurations, in the order of the space.

    Only factors with ordered levels can limit: the one with the largest elasticity of those whose next level improves
    the response by `little` or more. A step of an ordered factor counts as a doubling.
    """
    sign = 1.0 if better == "higher" else -1.0
    return tuple(_limit(filled, cell, sign, little) for cell in filled.space if filled.known[cell])


def _limit(filled: Filled, cell: Configuration, sign: float, little: float) -> Limit:
    name = filled.space.name(cell)
    found = [
        limit
        for at in range(len(cell))
        if (limit := _step(filled, cell, at, sign)) is not None and limit.gain > little
    ]
    if not found:
        return Limit(cell, name, None, 0.0, 0.0, sure=False, beyond=False)
    return max(found, key=lambda each: each.elasticity)


def _step(filled: Filled, cell: Configuration, at: int, sign: float) -> Limit | None:
    """Effect of the next level of one factor; at its highest level, that of the last step."""
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
    """Log ratio of a level and the next one; that of a doubling if they are not numbers."""
    if factor.numeric and magnitude(factor.levels[level]) > 0:
        return math.log(magnitude(factor.levels[level + 1]) / magnitude(factor.levels[level]))
    return math.log(2)
