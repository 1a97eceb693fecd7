"""Whether the values of a series rise or fall with time, and by how much.

A small p means "trend or autocorrelation": both look alike in one series.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etude.stats.samples import finite_sample

MINIMUM = 10
"""Series shorter than this are not tested."""

MOST_FOR_SLOPE = 1000
"""Theil-Sen compares every pair of values; of longer series it takes this many, evenly spaced."""


def trend_p(x: ArrayLike) -> float | None:
    """p-value of Mann and Kendall's test that `x`, shape (n,) in order of time, has no monotone trend.

    None below ten values; 1.0 where all values are equal. Source: scipy.stats.kendalltau against the
    position.
    """
    values = finite_sample(x)
    if values.size < MINIMUM:
        return None
    if _all_equal(values):
        return 1.0
    from scipy.stats import kendalltau

    return float(kendalltau(np.arange(values.size), values).pvalue)


def trend_slope(x: ArrayLike) -> float | None:
    """Change of `x`, shape (n,), over the whole series, as a fraction of its median (0.02: grew by 2 %).

    Theil-Sen's slope, which single outliers do not move. Of more than 1000 values, 1000 evenly spaced ones
    are taken. None below ten values, or where the median is zero. Source: scipy.stats.theilslopes.
    """
    values = finite_sample(x)
    centre = float(np.median(values)) if values.size else 0.0
    if values.size < MINIMUM or centre == 0.0:
        return None
    if _all_equal(values):
        return 0.0
    from scipy.stats import theilslopes

    places = np.arange(values.size)
    if values.size > MOST_FOR_SLOPE:
        places = np.linspace(0, values.size - 1, MOST_FOR_SLOPE).round().astype(np.intp)
    slope = float(theilslopes(values[places], places)[0])
    return slope * (values.size - 1) / abs(centre)


def _all_equal(values: NDArray[np.float64]) -> bool:
    return bool(np.all(values == values[0]))
