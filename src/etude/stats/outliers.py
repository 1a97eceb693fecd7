"""Outliers of a sample. They are flagged, never deleted."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from etude.stats.samples import finite_sample

MINIMUM = 5
"""Minimum sample size for outliers."""

MOST = 500
"""Maximum number of suspects in one sample, which bounds the time."""


def count_outliers(x: ArrayLike, *, level: float = 0.05) -> int:
    """Number of outliers of `x`, shape (n,): generalised ESD on the logarithms.

    Plain values are used if any is zero or below. At most max(1, n//4) values, and never more than 500,
    are suspected. Always 0 below five values.
    Source: Rosner (1983), "Percentage points for a generalized ESD many-outlier procedure". Logarithms
    keep the skew of times from being flagged.
    """
    return int(outlier_places(x, level=level).size)


def outlier_places(x: ArrayLike, *, level: float = 0.05) -> NDArray[np.intp]:
    """Indices, in order, of the outliers of `x`, shape (n,), counted by `count_outliers`."""
    values = finite_sample(x)
    if values.size < MINIMUM:
        return np.empty(0, dtype=np.intp)
    if bool(np.all(values > 0.0)):
        values = np.log(values)
    order = np.argsort(values, kind="stable")
    below, above = _generalised_esd(values[order], min(max(1, values.size // 4), MOST), level)
    return np.sort(np.concatenate((order[:below], order[order.size - above :])))


def _generalised_esd(ordered: NDArray[np.float64], suspects: int, level: float) -> tuple[int, int]:
    """Number of outliers at either end: the largest number of removals whose last one exceeds its critical value."""
    values = (ordered - ordered.mean()).tolist()
    critical = _critical_values(len(values), suspects, level)
    low, high, found = 0, len(values) - 1, (0, 0)
    total, squares = math.fsum(values), math.fsum(v * v for v in values)
    for removed in range(1, suspects + 1):
        n = high - low + 1
        mean = total / n
        variance = (squares - n * mean * mean) / (n - 1)
        if values[low] == values[high] or variance <= 0.0:
            break
        below, above = mean - values[low], values[high] - mean
        gone = values[low] if below > above else values[high]
        low, high = (low + 1, high) if below > above else (low, high - 1)
        if max(below, above) > critical[removed - 1] * math.sqrt(variance):
            found = (low, len(values) - 1 - high)
        total, squares = total - gone, squares - gone * gone
    return found


@lru_cache(maxsize=16)
def _critical_values(n: int, suspects: int, level: float) -> tuple[float, ...]:
    """Critical values at `level` of the largest deviation of n, n - 1, … normal values, in standard deviations."""
    left = n - np.arange(suspects)
    t = stdtrit(left - 2, 1.0 - level / (2.0 * left))
    return tuple(((left - 1) * t / np.sqrt((left - 2 + t * t) * left)).tolist())
