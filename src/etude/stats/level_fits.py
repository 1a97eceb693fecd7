"""Components of level fits: the likeliest steps; design matrices of segments and a line, and scales of the noise that
are robust to steps.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from etude.stats.means import BEND

Floats = NDArray[np.float64]


def scale_of(values: Floats, dependence: float) -> float:
    """Robust standard deviation of the noise, from differences of neighbours."""
    steps = np.abs(np.diff(values))
    found = float(np.median(steps)) * 1.4826 if steps.size else 0.0
    if found == 0.0 and steps.size:
        found = float(np.mean(steps)) * math.sqrt(math.pi / 2.0)
    return found / math.sqrt(2.0 * (1.0 - dependence))


def time_of(n: int) -> Floats:
    """Indices of n values, centred."""
    found: Floats = np.arange(n, dtype=np.float64) - (n - 1) / 2.0
    return found


def design_of(bounds: list[int], sloping: bool) -> Floats:
    """Design matrix with a column per segment, and the time as the last one if `sloping`."""
    n, lengths = bounds[-1], np.diff(bounds)
    found = np.zeros((n, lengths.size + sloping))
    found[np.arange(n), np.repeat(np.arange(lengths.size), lengths)] = 1.0
    if sloping:
        found[:, -1] = time_of(n)
    return found


def winsorised(values: Floats) -> Floats:
    """Values winsorised at `BEND` standard deviations of the noise from the median of five neighbours."""
    middle: Floats = np.median(
        np.lib.stride_tricks.sliding_window_view(np.pad(values, 2, mode="edge"), 5), axis=1
    )
    reach = BEND * scale_of(values, 0.0)
    found: Floats = middle + np.clip(values - middle, -reach, reach)
    return found


def spread_of(values: Floats, bounds: list[int]) -> float:
    """Robust standard deviation around the medians of the segments."""
    medians = [np.median(values[a:b]) for a, b in pairwise(bounds)]
    return 1.4826 * float(np.median(np.abs(values - np.repeat(medians, np.diff(bounds)))))


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
