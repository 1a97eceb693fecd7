"""Which values of a sample do not belong with the rest. They are flagged, never deleted."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from etude.stats.samples import finite_sample

MINIMUM = 5
"""Fewer values than this are never called outliers."""

MOST = 500
"""No more values than this are looked at in one sample, to bound the time."""


def count_outliers(x: ArrayLike, *, level: float = 0.05) -> int:
    """How many values of `x`, shape (n,), are outliers: generalised ESD on the logarithms.

    Plain values are taken when any is zero or below. At most max(1, n//4) values, and never more than 500,
    are suspected. Always 0 below five values.
    Source: Rosner (1983), "Percentage points for a generalized ESD many-outlier procedure". Logarithms
    keep the skew of times from being flagged.
    """
    return int(outlier_places(x, level=level).size)


def outlier_places(x: ArrayLike, *, level: float = 0.05) -> NDArray[np.intp]:
    """Which values of `x`, shape (n,), are outliers, as `count_outliers` counts them: their indices, in order."""
    values = finite_sample(x)
    if values.size < MINIMUM:
        return np.empty(0, dtype=np.intp)
    if bool(np.all(values > 0.0)):
        values = np.log(values)
    order = np.argsort(values, kind="stable")
    below, above = _generalised_esd(values[order], min(max(1, values.size // 4), MOST), level)
    return np.sort(np.concatenate((order[:below], order[order.size - above :])))


def _generalised_esd(ordered: NDArray[np.float64], suspects: int, level: float) -> tuple[int, int]:
    """How many values at either end: the largest number of removals whose last was still too far out."""
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
    """What the farthest of n, n - 1, … normal values exceeds, in deviations, with probability `level`."""
    left = n - np.arange(suspects)
    t = stdtrit(left - 2, 1.0 - level / (2.0 * left))
    return tuple(((left - 1) * t / np.sqrt((left - 2 + t * t) * left)).tolist())
