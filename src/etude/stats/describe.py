"""One sample in a line of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etude.stats.intervals import Interval, effective_count, median_interval
from etude.stats.means import FITTING, Average, Kind, Mean, as_averaged, average
from etude.stats.moments import deviation_of
from etude.stats.percentiles import quartiles
from etude.stats.samples import finite_sample


@dataclass(frozen=True)
class Summary:
    """What a sample says; all but counts in the unit of its values. None stands for what too few values cannot tell."""

    count: int
    mean: float
    """The one that fits the metric's kind; NaN where there is none."""
    mean_interval: Interval | None
    which: Mean
    """Which mean that is."""
    mean_reason: str | None
    """Why there is none."""
    median: float
    median_interval: Interval | None
    quartiles: tuple[float, float]
    minimum: float
    maximum: float
    deviation: float | None
    """Standard deviation with n-1."""
    effective_count: float
    """Independent values that the sample is worth for its mean: of a rate, its inverses; of a ratio, its logarithms."""

    @property
    def relative_deviation(self) -> float | None:
        """Deviation over the mean's size."""
        return _over(self.deviation, self.mean)

    @property
    def relative_half_width(self) -> float | None:
        """Half the width of the mean's interval over the mean's size."""
        return _over(self.mean_interval.half_width if self.mean_interval else None, self.mean)


@np.errstate(over="ignore")  # a mean of the largest numbers is infinite
def describe(x: ArrayLike, kind: Kind = "cost", *, confidence: float = 0.95, factor: float = 1.0) -> Summary:
    """Summary of `x`, shape (n,), in the order in which the trials ran.

    kind: of the metric; it decides which mean is taken.
    factor: that of the stop rule which ended the series (1.0 for a count fixed beforehand).
    Raises ValueError where there is no value, or one is not finite.
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
        effective_count=effective_count(as_averaged(values, found.which)),
    )


def _average(values: ArrayLike, kind: Kind, confidence: float, factor: float) -> tuple[Average, str | None]:
    try:
        return average(values, kind, confidence=confidence, factor=factor), None
    except ValueError as error:
        return Average(math.nan, None, FITTING[kind], ""), f"no {FITTING[kind]} mean: {error}"


def _over(value: float | None, mean: float) -> float | None:
    return value / abs(mean) if value is not None and mean and math.isfinite(mean) else None
