"""What measuring a cell will cost, by what others did: a plane through the logs of their benchmarking time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from etude.surface.factors import Cell, Floats, Space
from etude.surface.samples import Sample
from etude.surface.surrogates.selection import trend

LEAST = 4
"""Samples before one cell is said to cost more than another."""
NEWEST = 500
"""Of as many of the last samples."""
DOUBT = 1.0
"""Variance of a log cost around the plane, for slopes of variance about 1 before any sample (ridge regression)."""


def expected_cost(space: Space, samples: Sequence[Sample]) -> Callable[[Cell], float] | None:
    """Of a cell, s; None while samples are few."""
    paid = [each for each in samples[-NEWEST:] if each.cost_s > 0]
    if len(paid) < LEAST:
        return None
    logs = np.log([each.cost_s for each in paid])
    rows = _terms(space, [each.cell for each in paid])
    ridge = DOUBT * np.eye(rows.shape[1])
    slopes = np.linalg.solve(rows.T @ rows + ridge, rows.T @ (logs - logs.mean()))
    return lambda cell: float(np.exp(logs.mean() + _terms(space, [cell])[0] @ slopes))


def _terms(space: Space, cells: Sequence[Cell]) -> Floats:
    """A slope for each factor with an order, a level for each kind of a categorical one."""
    kinds = [
        np.array([[float(cell[at] == level) for level in range(len(factor.levels))] for cell in cells])
        for at, factor in enumerate(space.factors)
        if factor.scale == "categorical"
    ]
    return np.hstack([trend(space, cells), *kinds])
