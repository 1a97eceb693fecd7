"""A sample as three numbers, so that published summaries can be compared too."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from etude.stats.intervals import Interval, effective_count, mean_interval
from etude.stats.samples import exponential, finite_sample

FEWEST_ON_LOGARITHM = 5
"""Minimum values for an interval on logarithms if Student's reaches zero."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and standard deviation (with n-1) of independent values; the latter two in their unit."""

    count: float
    """Number of independent values; not whole for an effective number."""
    mean: float
    deviation: float

    def __post_init__(self) -> None:
        if self.count < 2:
            raise ValueError(f"a comparison needs two or more values of either test, not {self.count}")
        if not (math.isfinite(self.mean) and math.isfinite(self.deviation) and self.deviation >= 0.0):
            raise ValueError(
                f"a summary needs a finite mean and deviation, not {self.mean} and {self.deviation}"
            )

        object.__setattr__(self, "mean", float(self.mean))
        object.__setattr__(self, "deviation", float(self.deviation))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, for independent values."""
        return self.deviation / math.sqrt(self.count)


Sample = ArrayLike | Moments
"""Values, shape (n,), or their moments."""


def moments_of(x: Sample) -> Moments:
    """Moments of values; given moments are returned unchanged.

    Values are scaled before they are squared, for values as small as 1e-200 or as large as 1e200.
    Raises ValueError below two values, and for a non-finite sample.
    """
    if isinstance(x, Moments):
        return x
    values = finite_sample(x)
    if values.size < 2:
        raise ValueError(f"a comparison needs two or more values of either test, not {values.size}")
    return Moments(int(values.size), mean_of(values), deviation_of(values))


def effective_moments(x: ArrayLike) -> Moments:
    """Moments of values in the order in which the trials ran, with their effective count (`effective_count`)."""
    return replace(moments_of(x), count=effective_count(x))


def mean_of(x: ArrayLike) -> float:
    """Arithmetic mean of one or more finite values, shape (n,), without overflow."""
    values = finite_sample(x)
    scale = float(np.max(np.abs(values)))
    if scale == 0.0 or bool(np.all(values == values[0])):
        return float(values[0])
    if 1e-100 < scale < 1e100:
        return float(values.mean())
    return float(np.mean(values / scale)) * scale


def deviation_of(x: ArrayLike) -> float:
    """Standard deviation with n-1 of two or more values, shape (n,); exactly 0 if all are equal."""
    values = finite_sample(x)
    scale = float(np.max(np.abs(values)))
    if scale == 0.0 or bool(np.all(values == values[0])):
        return 0.0
    if 1e-100 < scale < 1e100:
        return float(values.std(ddof=1))
    return min(float(np.std(values / scale, ddof=1)) * scale, float(np.finfo(np.float64).max))


def interval_of_mean(
    x: ArrayLike, *, confidence: float = 0.95, factor: float = 1.0, worth: float | None = None
) -> Interval | None:
    """`intervals.mean_interval`, without overflow or underflow."""
    values = finite_sample(x)
    scale = float(np.max(np.abs(values))) if values.size else 0.0
    if scale == 0.0 or 1e-100 < scale < 1e100:
        return mean_interval(values, confidence=confidence, factor=factor, worth=worth)
    found = mean_interval(values / scale, confidence=confidence, factor=factor, worth=worth)
    return found and Interval(found.low * scale, found.high * scale)


def interval_above_zero(interval: Interval | None, mean: float, count: int) -> Interval | None:
    """Interval of the mean of `count` non-negative values: unchanged unless it reaches zero.

    Then it is that of the mean's logarithm, mean·e^(± half width/mean), and None below five values, which then
    determine only the sign of the mean.
    Source: the delta method; the upper limit lies beyond Student's.
    """
    if interval is None or interval.low > 0.0 or interval.half_width == 0.0:
        return interval
    if count < FEWEST_ON_LOGARITHM:
        return None
    factor = exponential(interval.half_width / mean)
    return Interval(mean / factor, mean * factor)
