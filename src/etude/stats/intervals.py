"""Confidence intervals of the mean and the median of a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, ndtri, stdtrit

from etude.stats.samples import check_confidence, check_positive, finite_sample

DEPENDENCE_LEVEL = 0.10
"""One-sided level at which consecutive trials count as autocorrelated."""

DEPENDENCE_THRESHOLD = float(ndtri(1.0 - DEPENDENCE_LEVEL))
"""The same in standard errors of a lag-1 autocorrelation, 1/sqrt(n) each: 1.2816."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval, in the unit of the values."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the distance from `low` to `high`."""
        return (self.high - self.low) / 2.0


def mean_interval(
    x: ArrayLike, *, confidence: float = 0.95, factor: float = 1.0, worth: float | None = None
) -> Interval | None:
    """Interval of the mean: factor·t·s/√n_eff to either side, t with n-1 degrees of freedom.

    x: shape (n,), in the order in which the trials ran (for their autocorrelation).
    factor: correction for a stop rule that looks after every trial (its `.factor`); 1.0 for a fixed count.
    worth: `effective_count` of `x`, if it is known.
    None below two values. Raises ValueError for a non-finite sample.
    Source: Student's interval; its coverage under stop rules and dependence is in docs/explanation/calibration.md.
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    values = finite_sample(x)
    if values.size < 2:
        return None
    worth = effective_count(values) if worth is None else worth
    half = factor * t_quantile(confidence, values.size - 1) * (deviation(values) / math.sqrt(worth))
    mean = float(values.mean())
    return Interval(mean - half, mean + half)


def median_interval(x: ArrayLike, *, confidence: float = 0.95) -> Interval | None:
    """Interval of the median between two order statistics, with a coverage of at least `confidence`.

    x: shape (n,), values of any distribution, in the order in which the trials ran: the interval is at the quantiles
    that it would have in an independent sample of their effective size. None if even the smallest and the largest of
    those do not reach the confidence (fewer than 6 at 0.95).
    Source: the number of values below the median is binomial(n, 1/2); exact, hence conservative, for independent ones.
    """
    values = finite_sample(x)
    return median_interval_of_sorted(np.sort(values), effective_count(values), confidence=confidence)


def median_interval_of_sorted(
    ordered: NDArray[np.float64], worth: float, *, confidence: float = 0.95
) -> Interval | None:
    """`median_interval` of finite values, shape (n,), of which the order and the effective count are known."""
    check_confidence(confidence)
    whole = int(worth)
    depth = _median_depth(whole, confidence)
    if depth == 0:
        return None
    depth = depth * (ordered.size + 1) // (whole + 1)
    return Interval(float(ordered[depth - 1]), float(ordered[-depth]))


def autocorrelation(x: ArrayLike) -> float:
    """Lag-1 autocorrelation of `x`, shape (n,), corrected by +1/n for its bias on independent values.

    0.0 for fewer than three values, or without variance.
    """
    values = finite_sample(x)
    if values.size < 3:
        return 0.0
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 0.0
    deviations = values / max(-low, high)  # squares of what is left are neither too large nor too small
    deviations -= deviations.mean()
    total = float(deviations @ deviations)
    if total == 0.0:
        return 0.0
    return float(deviations[:-1] @ deviations[1:]) / total + 1.0 / values.size


def effective_count(x: ArrayLike) -> float:
    """Effective number of independent values of `x`, shape (n,): n(1-r)/(1+r) with r its autocorrelation.

    n itself unless r is significant (one-sided 10 %); never below 2 (or n, if n < 2).
    Source: variance of the mean of a first-order autoregression; the level is judgement.
    """
    values = finite_sample(x)
    n = values.size
    if n < 2:
        return float(n)
    r = autocorrelation(values)
    if r <= DEPENDENCE_THRESHOLD / math.sqrt(n):
        return float(n)
    return max(2.0, n * (1.0 - r) / (1.0 + r))


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, degrees: float) -> float:
    """Quantile of a two-sided interval of Student's t, in standard errors."""
    return float(stdtrit(degrees, (1.0 + confidence) / 2.0))


def standard_error(values: NDArray[np.float64]) -> float:
    """Standard error of the mean of two or more values, including autocorrelation."""
    return deviation(values) / math.sqrt(effective_count(values))


def deviation(values: NDArray[np.float64]) -> float:
    """Standard deviation with n-1 of two or more values; exactly 0 if all are equal."""
    if bool(np.all(values == values[0])):
        return 0.0
    return float(values.std(ddof=1))


@lru_cache(maxsize=4096)
def _median_depth(n: int, confidence: float) -> int:
    """Depth of the limits of the median's interval from either end (1: at the ends, 0: none)."""
    ranks = np.arange(1, n // 2 + 1)
    missed_at_one_end = bdtr((ranks - 1).astype(np.float64), n, 0.5)
    return int(np.count_nonzero(missed_at_one_end <= (1.0 - confidence) / 2.0))
