"""Likeliest steps of a series with first-order autoregressive noise, around which the noise is estimated.

A step not removed from the noise looks like dependence, which hides steps: descriptions with an increasing number of
steps are therefore compared by likelihood, each with its own residual dependence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from etude.stats.level_fits import time_of

Floats = NDArray[np.float64]

MOST = 6
"""Maximum steps of a description."""

AHEAD = 2
"""Number of further steps tried beyond the best: one step up and one down explain little alone."""

PENALTY = 4.5
"""Penalty of a step, times ln n: minimum gain of twice the log likelihood."""

SLOPING = 7.0
"""The same with a slope, which explains much of what a few steps do."""

TINY = 1e-6


def likely_steps(x: Floats, shortest: int, *, sloping: bool = False, least: int = 0) -> list[int]:
    """Begins of the likeliest segments of `x`, shape (n,), except the first.

    shortest: minimum values of a segment. sloping: with a straight line. least: minimum number of steps.
    Each step is placed where it explains most in addition to the earlier ones (forward selection).
    """
    n, each = x.size, (SLOPING if sloping else PENALTY) * math.log(x.size)
    free = np.ones(n - 1, dtype=bool)  # a step may be at place + 1
    free[: shortest - 1] = free[n - shortest :] = False
    left = n - np.arange(1.0, n)  # unexplained squares of a step there
    rest, known = x, np.empty((n, 0))
    places: list[int] = []
    best: list[int] = []
    lowest, seen = math.inf, 0
    columns = [np.ones(n), time_of(n)][: 1 + sloping]
    while True:
        for column in columns:
            column = column - known @ (known.T @ column)
            column /= math.sqrt(float(column @ column))
            rest = rest - column * float(column @ rest)
            left = left - _tails(column) ** 2
            known = np.column_stack((known, column))
        if len(places) >= least:
            score = _unlikely(rest, places) + each * len(places)
            if score < lowest:
                best, lowest, seen = sorted(places), score, len(places)
            elif len(places) - seen >= AHEAD:
                return best
        able = free & (left > TINY)
        if len(places) == MOST or not able.any():
            return best
        gains = np.where(able, _tails(rest) ** 2 / np.maximum(left, TINY), -1.0)
        at = int(np.argmax(gains)) + 1
        places.append(at)
        columns = [(np.arange(n) >= at).astype(np.float64)]
        free[max(0, at - shortest) : at + shortest - 1] = False


def _tails(x: Floats) -> Floats:
    """Sums of the values from each index on, except the first."""
    found: Floats = np.cumsum(x[::-1], axis=0)[::-1][1:]
    return found


def _unlikely(rest: Floats, places: list[int]) -> float:
    """Minus twice the log likelihood, up to a constant."""
    squares = float(np.sum(rest**2))
    if squares <= 0.0:
        return -math.inf
    within = np.ones(rest.size - 1, dtype=bool)
    within[np.asarray(places, dtype=np.intp) - 1] = False
    r = float(np.sum((rest[1:] * rest[:-1])[within])) / squares
    return rest.size * math.log(squares * (1.0 - min(0.99, max(0.0, r)) ** 2))
