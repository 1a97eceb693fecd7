"""Summary of one sample."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etude.stats.intervals import Interval, effective_count, median_interval
from etude.stats.means import FITTING, Average, Kind, Mean, average, to_additive_scale
from etude.stats.moments import deviation_of
from etude.stats.percentiles import quartiles
from etude.stats.samples import finite_sample


@dataclass(frozen=True)
class Summary:
    """Summary of a sample; all except counts in the unit of its values. None: too few values."""

    count: int
    mean: float
    """The mean that fits the metric's kind; NaN if there is none."""
    mean_interval: Interval | None
    which: Mean
    """Kind of that mean."""
    mean_reason: str | None
    """Reason if there is none."""
    median: float
    median_interval: Interval | None
    quartiles: tuple[float, float]
    minimum: float
    maximum: float
    deviation: float | None
    """Standard deviation with n-1."""
    effective_count: float
    """Effective number of independent values for the mean (for rates, of the inverses; for ratios, of the
    logarithms)."""

    @property
    def relative_deviation(self) -> float | None:
        """Deviation over the absolute mean."""
        return _over(self.deviation, self.mean)

    @property
    def relative_half_width(self) -> float | None:
        """Margin of error of the mean over the absolute mean."""
        return _over(self.mean_interval.half_width if self.mean_interval else None, self.mean)


@np.errstate(over="ignore")  # a mean of the largest numbers is infinite
def describe(x: ArrayLike, kind: Kind = "cost", *, confidence: float = 0.95, factor: float = 1.0) -> Summary:
    """Summary of `x`, shape (n,), in the order in which the trials ran.

    kind: kind of the metric, which determines the mean.
    factor: widening factor of the stop rule that ended the series (1.0 for a fixed count).
    Raises ValueError for an empty or non-finite sample.
    """
    values = finite_sample(x)
    if values.size == 0:
        raise ValueError("a sample without values cannot be described")
    found, reason = _average(values, kind, confidence, factor)
    return Summary(
        count=int(values.size),
        mean=found.mean,
        mean_interval=found.interval,
        which=found.which,
        mean_reason=reason,
        median=float(np.median(values)),
        median_interval=median_interval(values, confidence=confidence),
        quartiles=quartiles(values),
        minimum=float(values.min()),
        maximum=float(values.max()),
        deviation=deviation_of(values) if values.size > 1 else None,
        effective_count=effective_count(to_additive_scale(values, found.which)),
    )


def _average(values: ArrayLike, kind: Kind, confidence: float, factor: float) -> tuple[Average, str | None]:
    try:
        return average(values, kind, confidence=confidence, factor=factor), None
    except ValueError as error:
        return Average(math.nan, None, FITTING[kind], ""), f"no {FITTING[kind]} mean: {error}"


def _over(value: float | None, mean: float) -> float | None:
    return value / abs(mean) if value is not None and mean and math.isfinite(mean) else None
