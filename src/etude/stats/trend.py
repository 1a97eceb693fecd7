"""Trend of a series over time: test and slope, drift, and loss of free memory.

A small p means "trend or autocorrelation": both look alike in one series. Implemented with numpy because importing
scipy.stats takes longer than many experiments; tests compare the results with scipy's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtr

from etude.stats.intervals import effective_count, median_interval
from etude.stats.moments import deviation_of, mean_of
from etude.stats.samples import check_confidence, finite_sample

MINIMUM = 10
"""Minimum length of a tested series."""

MOST = 400
"""Maximum length: all pairs of values are compared, so longer series are first reduced to means of neighbours."""


def trend_p(x: ArrayLike) -> float | None:
    """p-value of Mann and Kendall's test that `x`, shape (n,) in order of time, has no monotone trend.

    None below ten values; 1.0 if all are equal. Normal approximation with corrections for ties and continuity.
    Source: Kendall (1975), "Rank Correlation Methods", 4th edition.
    """
    values = _thinned(_tamed(finite_sample(x)))
    n = values.size
    if n < MINIMUM:
        return None
    ties = _ties(values)
    variance = _variance(n, ties)
    score = 2 * _rises(values) + int((ties * (ties - 1)).sum()) // 2 - n * (n - 1) // 2
    if variance <= 0.0:
        return 1.0
    z = max(0.0, abs(score) - 1.0) / math.sqrt(variance)
    return float(2.0 * ndtr(-z))


def trend_slope(x: ArrayLike) -> float | None:
    """Change of `x`, shape (n,), over the whole series, as a fraction of its median (0.02: grew by 2 %).

    The median of the slopes between all pairs, robust against single outliers. None below ten values, or for a median
    of zero. Source: Sen (1968), "Estimates of the regression coefficient based on Kendall's tau".
    """
    values = _thinned(_tamed(finite_sample(x)))
    centre = float(np.median(values)) if values.size else 0.0
    if values.size < MINIMUM or centre == 0.0:
        return None
    earlier, later, distance = _pairs(values.size)
    slope = float(np.median((values[later] - values[earlier]) / distance))
    return slope * (values.size - 1) / abs(centre)


@dataclass(frozen=True)
class Slope:
    """Change per trial, in the unit of the values, with its interval."""

    per_trial: float
    low: float
    high: float


def slope_interval(x: ArrayLike, *, confidence: float = 0.95) -> Slope | None:
    """Theil and Sen's slope of `x`, shape (n,) in order of time, between two of the ordered slopes of all pairs.

    None below ten values. If the confidence exceeds that of all pairs, the limits are the outermost slopes.
    Source: Sen (1968), section 4, with Kendall's variance corrected for ties; as scipy.stats.theilslopes.
    """
    check_confidence(confidence)
    whole = finite_sample(x)
    tame = _tamed(whole)
    values, unit = _thinned(tame), 1.0 if tame is whole else 2.0**64
    n = values.size
    if n < MINIMUM:
        return None
    group = max(1, -(-whole.size // MOST))
    scale = float(np.max(np.abs(values))) or 1.0
    earlier, later, distance = _pairs(n)
    scaled = values / scale
    slopes = np.sort((scaled[later] - scaled[earlier]) / (distance * float(group)))
    variance = _variance(n, _ties(values))
    reach = float(ndtri((1.0 + confidence) / 2.0)) * math.sqrt(max(variance, 0.0))
    upper = min(round((slopes.size + reach) / 2.0), slopes.size - 1)
    lower = max(round((slopes.size - reach) / 2.0) - 1, 0)
    low, middle, high = (float(v) * scale * unit for v in (slopes[lower], np.median(slopes), slopes[upper]))
    return Slope(middle, low, high)


@lru_cache(maxsize=4)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Indices of every pair of n places, the earlier and the later, and their distances; cached for series of the same
    length.

    Read-only.
    """
    earlier, later = np.triu_indices(n, 1)
    return earlier, later, (later - earlier).astype(np.float64)


@lru_cache(maxsize=4)
def _above_diagonal(n: int) -> NDArray[np.bool_]:
    return np.triu(np.ones((n, n), dtype=np.bool_), 1)


def _rises(values: NDArray[np.float64]) -> int:
    """Number of pairs whose later value is larger."""
    return int(np.count_nonzero((values[:, None] < values[None, :]) & _above_diagonal(values.size)))


def _ties(values: NDArray[np.float64]) -> NDArray[np.intp]:
    ordered = np.sort(values)
    bounds = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return np.diff(bounds, prepend=0, append=values.size)


def _variance(n: int, ties: NDArray[np.intp]) -> float:
    """Variance of Kendall's score without a trend."""
    tied = int((ties * (ties - 1) * (2 * ties + 5)).sum())
    return (n * (n - 1) * (2 * n + 5) - float(tied)) / 18.0


def _tamed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The series, scaled so that differences and sums of its values do not overflow."""
    return values * 0.5**64 if values.size and float(np.max(np.abs(values))) > 1e290 else values


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The series itself, or means of neighbours that reduce it to `MOST` values."""
    if values.size <= MOST:
        return values
    group = -(-values.size // MOST)
    whole = values.size // group * group
    means: NDArray[np.float64] = values[:whole].reshape(-1, group).mean(axis=1)
    return means


Floats = NDArray[np.float64]

LEVEL = 0.01
"""Level of p for a trend, or autocorrelation, which are indistinguishable in one series."""

PRACTICAL_BYTES = 1 << 20
"""Usual fluctuation of free memory, bytes."""

PRACTICAL_DRIFT = 0.02
"""Smallest relevant change over the whole series, as a fraction of its median."""


@dataclass(frozen=True)
class Leak:
    """Decrease of free memory over the trials. Losses are positive."""

    p: float
    """p-value of Kendall's test for any trend."""
    bytes_per_trial: float
    low: float
    high: float
    """Limits of the interval of bytes_per_trial."""
    total_bytes: float
    """Loss from the first to the last trial, by the slope."""
    steady: bool
    """True if it falls from trial to trial, or the residuals of a straight line are independent: p is valid only
    then."""
    suspected: bool
    """True if the trend is significant (p < .01), downwards and steady, and the loss above the practical size."""


@dataclass(frozen=True)
class Drift:
    """Change of values over a series."""

    p: float
    change: float
    """Change from the first to the last trial by the slope, as a fraction of the middle.

    The middle is the median with Theil-Sen, the mean with least squares.
    """
    suspected: bool
    method: Literal["Theil-Sen", "least squares"]


def leak(
    free_bytes: ArrayLike, *, practical_bytes: float = PRACTICAL_BYTES, confidence: float = 0.95
) -> Leak | None:
    """Test for a loss of free memory, in bytes, shape (n,) after each trial in order of time, and its size per trial.

    practical_bytes: irrelevant loss over the whole series. None below ten trials.
    Source: Kendall's test (trend_p) and Theil and Sen's slope with Sen's interval. That test assumes independent
    trials; free memory of a machine with other load changes in lasting steps, so that every third series of 20 has a
    "trend". If the residuals of the line are autocorrelated, the loss must therefore also show in the steps from trial
    to trial: the interval of their median is below 0.
    """
    if not (math.isfinite(practical_bytes) and practical_bytes >= 0.0):
        raise ValueError(f"a practical size must be 0 or more bytes, not {practical_bytes}")
    values = finite_sample(free_bytes)
    slope, p = slope_interval(values, confidence=confidence), trend_p(values)
    if slope is None or p is None:
        return None
    total = -slope.per_trial * (values.size - 1)
    steady = _is_steady(values, slope.per_trial)
    suspected = p < LEVEL and total > practical_bytes and steady
    return Leak(
        p, _loss(slope.per_trial), _loss(slope.high), _loss(slope.low), total + 0.0, steady, suspected
    )


def _is_steady(values: Floats, per_trial: float) -> bool:
    scale = 2.0 * float(np.max(np.abs(values))) or 1.0
    rest = values / scale - per_trial / scale * np.arange(values.size)
    if effective_count(rest) >= values.size:
        return True
    steps = median_interval(np.diff(values / scale))
    return steps is not None and steps.high < 0.0


def drift(
    x: ArrayLike,
    *,
    practical: float = PRACTICAL_DRIFT,
    method: Literal["Theil-Sen", "least squares"] = "Theil-Sen",
) -> Drift | None:
    """Test for a drift: `x`, shape (n,) in order of time, rises or falls by more than `practical` over the series at p
    < .01.

    Theil-Sen (with Kendall's p) is robust against single slow trials; one at the beginning hides a rise from least
    squares. None below ten values, and for a middle of zero.
    """
    if method == "least squares":
        return _least_squares(x, practical)
    p, change = trend_p(x), trend_slope(x)
    if p is None or change is None:
        return None
    return Drift(p, change, p < LEVEL and abs(change) > practical, method)


def _least_squares(x: ArrayLike, practical: float) -> Drift | None:
    values = finite_sample(x)
    n = values.size
    middle = mean_of(values) if n else 0.0
    if n < MINIMUM or middle == 0.0:
        return None
    place = np.arange(n) - (n - 1) / 2.0
    scale = float(np.max(np.abs(values)))
    centred = values / scale - middle / scale
    slope = float(place @ centred) / float(place @ place)
    change = slope * (n - 1) / abs(middle / scale)
    rest = deviation_of(centred - slope * place) * math.sqrt((n - 1) / (n - 2))
    if rest <= 1e-12 * deviation_of(centred):
        p = 0.0 if slope else 1.0
    else:
        p = 2.0 * float(stdtr(n - 2, -abs(slope) * math.sqrt(float(place @ place)) / rest))
    return Drift(p, change, p < LEVEL and abs(change) > practical, "least squares")


def _loss(slope: float) -> float:
    """A decrease as a positive number, never -0."""
    return 0.0 - slope
