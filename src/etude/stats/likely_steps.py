"""Where a series most likely steps, if its noise is a first-order autoregression: what the noise is judged around.

A step that is not taken out of the noise looks like dependence, and dependence hides steps: so descriptions with more
and more steps compete by their likelihoods, each with the dependence that it leaves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from etude.stats.level_fits import time_of

Floats = NDArray[np.float64]

MOST = 6
"""Steps of a description."""

AHEAD = 2
"""So many further steps are looked at behind the best: one step up and one down explain little alone."""

PENALTY = 4.5
"""Times ln n: by so much a further step has to raise twice the logarithm of the likelihood."""

SLOPING = 7.0
"""The same beside a line, which explains much of what a few steps do."""

TINY = 1e-6


def likely_steps(x: Floats, shortest: int, *, sloping: bool = False, least: int = 0) -> list[int]:
    """Where the likeliest stretches of `x`, shape (n,), begin, but the first.

    shortest: values of a stretch at least. sloping: there is a straight line besides. least: so many steps at least.
    Each step is put where it explains most besides those before it (forward selection).
    """
    n, each = x.size, (SLOPING if sloping else PENALTY) * math.log(x.size)
    free = np.ones(n - 1, dtype=bool)  # a step may be here, at place + 1
    free[: shortest - 1] = free[n - shortest :] = False
    left = n - np.arange(1.0, n)  # squares of a step there that nothing explains yet
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
    """Sums of the values from each place on but the first."""
    found: Floats = np.cumsum(x[::-1], axis=0)[::-1][1:]
    return found


def _unlikely(rest: Floats, places: list[int]) -> float:
    """Minus twice the logarithm of the likelihood, but for a constant."""
    squares = float(np.sum(rest**2))
    if squares <= 0.0:
        return -math.inf
    within = np.ones(rest.size - 1, dtype=bool)
    within[np.asarray(places, dtype=np.intp) - 1] = False
    r = float(np.sum((rest[1:] * rest[:-1])[within])) / squares
    return rest.size * math.log(squares * (1.0 - min(0.99, max(0.0, r)) ** 2))
