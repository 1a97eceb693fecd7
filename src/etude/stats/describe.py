"""One sample in a line of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etude.stats.intervals import Interval, deviation, effective_count, mean_interval, median_interval
from etude.stats.outliers import count_outliers
from etude.stats.samples import finite_sample
from etude.stats.trend import trend_p, trend_slope


@dataclass(frozen=True)
class Summary:
    """What a sample says; all but counts, `trend_p` and `trend_slope` in the unit of its values.

    None stands for what too few values cannot tell, or what was not asked for (`diagnose=False`).
    """

    count: int
    mean: float
    mean_interval: Interval | None
    median: float
    median_interval: Interval | None
    minimum: float
    maximum: float
    deviation: float | None
    """Standard deviation with n-1."""
    effective_count: float
    """How many independent values the sample is worth."""
    outliers: int | None
    """How many values generalised ESD flags at 5 %."""
    trend_p: float | None
    """p-value of Mann-Kendall's test for a monotone trend."""
    trend_slope: float | None
    """Theil-Sen's change over the whole series, as a fraction of the median."""


def describe(
    x: ArrayLike, *, confidence: float = 0.95, factor: float = 1.0, diagnose: bool = True
) -> Summary:
    """Summary of `x`, shape (n,), in the order in which the trials ran.

    factor: that of the stop rule which ended the series (1.0 for a count fixed beforehand).
    diagnose: also look for outliers and a trend.
    Raises ValueError where there is no value, or one is not finite.
    """
    values = finite_sample(x)
    if values.size == 0:
        raise ValueError("a sample without values cannot be described")
    return Summary(
        count=int(values.size),
        mean=float(values.mean()),
        mean_interval=mean_interval(values, confidence=confidence, factor=factor),
        median=float(np.median(values)),
        median_interval=median_interval(values, confidence=confidence),
        minimum=float(values.min()),
        maximum=float(values.max()),
        deviation=deviation(values) if values.size > 1 else None,
        effective_count=effective_count(values),
        outliers=count_outliers(values) if diagnose else None,
        trend_p=trend_p(values) if diagnose else None,
        trend_slope=trend_slope(values) if diagnose else None,
    )
