"""A sample as three numbers, so that what is known only from a published table can be compared as well."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from etude.stats.intervals import Interval, effective_count, mean_interval
from etude.stats.samples import exponential, finite_sample

FEWEST_ON_LOGARITHM = 5
"""Values below which a mean has no interval where Student's reaches zero."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and standard deviation (with n-1) of independent values; the latter two in their unit."""

    count: float
    """Of independent values; not whole where it is what dependent ones are worth."""
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
        """Of the mean, for independent values."""
        return self.deviation / math.sqrt(self.count)


Sample = ArrayLike | Moments
"""Values, shape (n,), or what is known of them."""


def moments_of(x: Sample) -> Moments:
    """The moments of values, or those that were given.

    Values are scaled before they are squared, so that neither 1e-200 nor 1e200 is lost.
    Raises ValueError below two values, and for values that are not finite.
    """
    if isinstance(x, Moments):
        return x
    values = finite_sample(x)
    if values.size < 2:
        raise ValueError(f"a comparison needs two or more values of either test, not {values.size}")
    return Moments(int(values.size), mean_of(values), deviation_of(values))


def effective_moments(x: ArrayLike) -> Moments:
    """The same of values in the order in which the trials ran, as many as they are worth (`effective_count`)."""
    return replace(moments_of(x), count=effective_count(x))


def mean_of(x: ArrayLike) -> float:
    """The arithmetic mean of one or more finite values, shape (n,), also where their sum is too large."""
    values = finite_sample(x)
    scale = float(np.max(np.abs(values)))
    if scale == 0.0 or bool(np.all(values == values[0])):
        return float(values[0])
    if 1e-100 < scale < 1e100:
        return float(values.mean())
    return float(np.mean(values / scale)) * scale


def deviation_of(x: ArrayLike) -> float:
    """The standard deviation with n-1 of two or more values, shape (n,); exactly 0 where all are equal."""
    values = finite_sample(x)
    scale = float(np.max(np.abs(values)))
    if scale == 0.0 or bool(np.all(values == values[0])):
        return 0.0
    if 1e-100 < scale < 1e100:
        return float(values.std(ddof=1))
    return min(float(np.std(values / scale, ddof=1)) * scale, float(np.finfo(np.float64).max))


def interval_of_mean(x: ArrayLike, *, confidence: float = 0.95, factor: float = 1.0) -> Interval | None:
    """`intervals.mean_interval`, also of values that are too large or too small to be squared."""
    values = finite_sample(x)
    scale = float(np.max(np.abs(values))) if values.size else 0.0
    if scale == 0.0 or 1e-100 < scale < 1e100:
        return mean_interval(values, confidence=confidence, factor=factor)
    found = mean_interval(values / scale, confidence=confidence, factor=factor)
    return found and Interval(found.low * scale, found.high * scale)


def interval_above_zero(interval: Interval | None, mean: float, count: int) -> Interval | None:
    """The interval of the mean of `count` values none of which is below zero: as it is, unless it reaches zero.

    Then it is that of the mean's logarithm, mean·e^(± half width/mean), and None below five values, which then say no
    more of the mean than its sign.
    Source: the delta method; the upper limit lies beyond Student's.
    """
    if interval is None or interval.low > 0.0 or interval.half_width == 0.0:
        return interval
    if count < FEWEST_ON_LOGARITHM:
        return None
    factor = exponential(interval.half_width / mean)
    return Interval(mean / factor, mean * factor)
