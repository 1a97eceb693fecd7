"""Cost model of configurations: a plane through the logs of the benchmarking time of measured ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from etude.surface.factors import Configuration, Floats, Space
from etude.surface.samples import Sample
from etude.surface.surrogates.selection import trend

LEAST_COSTS = 4
"""Minimum number of samples."""
NEWEST_COSTS = 500
"""Number of last samples that are used."""
COST_VARIANCE = 1.0
"""Residual variance of a log cost, relative to slopes of prior variance 1 (ridge regression)."""


def expected_cost(space: Space, samples: Sequence[Sample]) -> Callable[[Configuration], float] | None:
    """Expected cost of a configuration, s; None with too few samples."""
    paid = [each for each in samples[-NEWEST_COSTS:] if each.cost_s > 0]
    if len(paid) < LEAST_COSTS:
        return None
    logs = np.log([each.cost_s for each in paid])
    rows = _terms(space, [each.cell for each in paid])
    ridge = COST_VARIANCE * np.eye(rows.shape[1])
    slopes = np.linalg.solve(rows.T @ rows + ridge, rows.T @ (logs - logs.mean()))
    return lambda cell: float(np.exp(logs.mean() + _terms(space, [cell])[0] @ slopes))


def _terms(space: Space, cells: Sequence[Configuration]) -> Floats:
    """Model terms: a slope for each ordered factor, an indicator for each level of a categorical one."""
    kinds = [
        np.array([[float(cell[at] == level) for level in range(len(factor.levels))] for cell in cells])
        for at, factor in enumerate(space.factors)
        if factor.scale == "categorical"
    ]
    return np.hstack([trend(space, cells), *kinds])
