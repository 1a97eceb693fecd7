"""Which values of a sample do not belong with the rest. They are flagged, never deleted."""

from __future__ import annotations

import math

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
    values = finite_sample(x)
    if values.size < MINIMUM:
        return 0
    if bool(np.all(values > 0.0)):
        values = np.log(values)
    return _generalised_esd(np.sort(values), min(max(1, values.size // 4), MOST), level)


def _generalised_esd(ordered: NDArray[np.float64], suspects: int, level: float) -> int:
    """The largest number of removals whose last removed value was still too far out."""
    low, high, found = 0, ordered.size, 0
    for removed in range(1, suspects + 1):
        rest = ordered[low:high]
        spread = 0.0 if rest[0] == rest[-1] else float(rest.std(ddof=1))
        if spread == 0.0:
            break
        mean = float(rest.mean())
        below, above = mean - float(rest[0]), float(rest[-1]) - mean
        if max(below, above) / spread > _critical_value(rest.size, level):
            found = removed
        if below > above:
            low += 1
        else:
            high -= 1
    return found


def _critical_value(n: int, level: float) -> float:
    """What the farthest of n normal values exceeds, in deviations, with probability `level`."""
    t = float(stdtrit(n - 2, 1.0 - level / (2.0 * n)))
    return (n - 1) * t / math.sqrt((n - 2 + t * t) * n)
