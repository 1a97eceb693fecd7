"""What runs out, or slows down, while an experiment goes on: free memory that falls, values that drift."""

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
"""p below which there is a trend, or autocorrelation: one series cannot tell them apart."""

PRACTICAL_BYTES = 1 << 20
"""Free memory goes up and down by about this much by itself."""

PRACTICAL_DRIFT = 0.02
"""A change over the whole series below this fraction of its median is not worth a word."""


@dataclass(frozen=True)
class Leak:
    """How free memory fell, trial after trial. Losses are positive."""

    p: float
    """Of Kendall's test for any trend."""
    bytes_per_trial: float
    low: float
    high: float
    """Limits of the interval of bytes_per_trial."""
    total_bytes: float
    """Lost from the first to the last trial, by the slope."""
    steady: bool
    """It falls from trial to trial, or else lies about a straight line: p counts only then."""
    suspected: bool
    """The trend is significant (p < .01), downwards, steady, and the loss above the practical size."""


@dataclass(frozen=True)
class Drift:
    """How values changed over a series."""

    p: float
    change: float
    """From the first to the last trial by the slope, as a fraction of the middle.

    The middle is the median with Theil-Sen, the mean with least squares.
    """
    suspected: bool
    method: Literal["Theil-Sen", "least squares"]


def leak(
    free_bytes: ArrayLike, *, practical_bytes: float = PRACTICAL_BYTES, confidence: float = 0.95
) -> Leak | None:
    """Whether free memory, in bytes, shape (n,) after each trial in order of time, is being lost; by how much a trial.

    practical_bytes: what may be lost over the whole series without a word. None below ten trials.
    Source: Kendall's test (trend_p) and Theil and Sen's slope with Sen's interval. That test takes trials for
    independent; free memory of a machine on which others work goes up and down in steps that last, of which every
    third series of 20 has a "trend". So where what is left beside the line resembles its neighbour, the loss has to
    show in the steps from trial to trial, too: the interval of their median lies below 0.
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
    """Whether `x`, shape (n,) in order of time, rises or falls by more than `practical` over the series at p < .01.

    Theil-Sen (with Kendall's p) is not moved by single slow trials; one at the beginning blinds least squares to a
    rise. None below ten values, and where a change cannot be put in relation to a middle of zero.
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
    """A fall as a positive number, and never -0."""
    return 0.0 - slope
