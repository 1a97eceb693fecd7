"""Leaks and slow-downs during an experiment: falling free memory, drifting values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from etude.stats.intervals import effective_count, median_interval
from etude.stats.moments import deviation_of, mean_of
from etude.stats.samples import finite_sample
from etude.stats.trend import MINIMUM, slope_interval, trend_p, trend_slope

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
