"""Crossovers: settings of a numeric factor at which one level of another factor overtakes a second one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude.surface.factors import Configuration, Factor
from etude.surface.surface_result import Filled, z_of
from etude.surface.surface_text import setting_text, settings_of


@dataclass(frozen=True)
class Crossover:
    """A crossover: above it level `over` is better, below it `under`."""

    factor: str
    over: str
    under: str
    along: str
    setting: str
    at: float
    """Value of `along`, linearly interpolated in its coded level between the two levels around it."""
    low: float | None
    high: float | None
    """Interval of `at`; None if it may extend beyond the measured levels."""


def crossovers(filled: Filled, better: str = "higher") -> tuple[Crossover, ...]:
    """Crossovers of all pairs of levels of each categorical factor along each numeric one, per setting of the
    others."""
    found: list[Crossover] = []
    factors = filled.space.factors
    for at, factor in enumerate(factors):
        if factor.scale == "categorical":
            for along, other in enumerate(factors):
                if other.numeric and len(other.levels) > 1:
                    for a, b in itertools.combinations(range(len(factor.levels)), 2):
                        found += level_crossovers(filled, at, (a, b), along, better)
    return tuple(found)


def level_crossovers(
    filled: Filled, factor: int, levels: tuple[int, int], along: int, better: str = "higher"
) -> list[Crossover]:
    """Crossovers of two levels of one factor (by its index) along a numeric one."""
    found = []
    which, other = filled.space.factors[factor], filled.space.factors[along]
    for cell in settings_of(filled.space, [factor, along]):
        setting = setting_text(filled.space.factors, cell, [factor, along])
        for x, low, high, rising in _sign_changes(filled, cell, (factor, *levels), along):
            over, under = levels if rising == (better == "higher") else levels[::-1]
            found.append(
                Crossover(
                    which.name,
                    which.text(over),
                    which.text(under),
                    other.name,
                    setting,
                    _decoded(other, x),
                    None if low is None else _decoded(other, low),
                    None if high is None else _decoded(other, high),
                )
            )
    return found


def _sign_changes(
    filled: Filled, cell: Configuration, pair: tuple[int, int, int], along: int
) -> list[tuple[float, float | None, float | None, bool]]:
    """Sign changes of log(first) - log(second): coded level, its interval, and True if the difference rises there."""
    factor, a, b = pair
    codes = filled.space.factors[along].coded()
    nodes: list[tuple[float, float, float]] = []
    for level, code in enumerate(codes):
        at = list(cell)
        at[along] = level
        one, other = ((*at[:factor], each, *at[factor + 1 :]) for each in (a, b))
        if filled.known[one] and filled.known[other]:
            sd = math.hypot(float(filled.sd[one]), float(filled.sd[other]))
            nodes.append((float(code), float(filled.log[one] - filled.log[other]), sd))
    found = []
    clear = [n for n, node in enumerate(nodes) if abs(node[1]) > 1e-12]
    for i, j in itertools.pairwise(clear):
        (x0, d0, s0), (x1, d1, s1) = nodes[i], nodes[j]
        if d0 * d1 > 0:
            continue
        share = d0 / (d0 - d1) if j == i + 1 else 0.5  # a tie at the levels between: their middle
        x, sd = x0 + share * (x1 - x0), s0 + share * (s1 - s0)
        z = z_of(filled.confidence)
        left = _told_apart([(x, 0.0, sd), *nodes[i::-1]], z)
        right = _told_apart([(x, 0.0, sd), *nodes[j:]], z)
        found.append((x, left, right, d1 > d0))
    return found


def _told_apart(path: Sequence[tuple[float, float, float]], z: float) -> float | None:
    """Coded level, outwards from the crossing, at which the difference first exceeds z sd; None if it never does."""
    for (x0, d0, s0), (x1, d1, s1) in itertools.pairwise(path):
        near, far = abs(d0) - z * s0, abs(d1) - z * s1
        if far > 0:
            return x0 + (x1 - x0) * (-near / (far - near)) if near < 0 else x0
    return None


def _decoded(factor: Factor, code: float) -> float:
    """Value at a coded level."""
    ends = np.array([float(factor.levels[0]), float(factor.levels[-1])])
    low, high = np.log(ends) if factor.scale == "log" else ends
    value = low + (code + 1) / 2 * (high - low)
    return float(np.exp(value) if factor.scale == "log" else value)
