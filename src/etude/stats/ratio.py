"""Ratio of one test's values to another's, with its confidence interval.

Two ratios, both with intervals on the logarithm: of arithmetic means (total of many runs) and of geometric means
(typical run). They agree if two tests differ only by a constant factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, stdtr

from etude.stats.intervals import Interval, deviation, effective_count, standard_error, t_quantile
from etude.stats.means import ADDING_UP, Kind
from etude.stats.moments import effective_moments, mean_of
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.samples import check_confidence, check_positive, finite_sample
from etude.stats.twosample import smallest_found, welch_degrees

FEWEST_FOR_NOISE_FLOOR = 5
MOST_FURTHER = 10**9
"""Upper bound of the further trials in a plan."""


@dataclass(frozen=True)
class Ratio:
    """other/base with its confidence interval."""

    ratio: float
    low: float
    high: float
    count: int
    """Number of pairs, or, unpaired, of the trials of the smaller sample."""
    method: Literal["paired", "unpaired"]
    confidence: float
    factor: float
    standard_error: float = math.nan
    """Standard error of the log ratio, widened by `factor` as in the interval."""
    degrees: float = math.nan
    """Degrees of freedom of the t distribution."""
    together: int = 1
    """Number of ratios judged simultaneously: all their intervals hold together at `confidence`."""
    effective_count: float = math.nan
    """Effective number of independent pairs, or trials, of `count` (`intervals.effective_count`); NaN: unknown."""

    @property
    def half_width(self) -> float:
        """Relative margin of error: 0.02 if the ratio is known within a factor of 1.02 to either side."""
        if self.ratio == 0.0 or math.isinf(self.ratio):
            return math.inf
        return self.high / self.ratio - 1.0

    @property
    def off_one(self) -> float:
        """Distance of the ratio from 1, as a factor minus 1."""
        return max(self.ratio, 1.0 / self.ratio) - 1.0

    @property
    def p(self) -> float | None:
        """Two-sided p-value of a ratio of 1, by the t test that matches the interval of this ratio alone: with the
        error widened by `factor`, so that it is larger than that of a t test of a fixed number of pairs.

        None without variation.
        """
        if not (self.standard_error > 0.0 and 0.0 < self.ratio < math.inf):
            return None
        return min(1.0, 2.0 * float(stdtr(self.degrees, -abs(math.log(self.ratio)) / self.standard_error)))

    def for_many(self, together: int) -> Interval:
        """Its interval if `together` ratios are judged simultaneously."""
        if together == self.together or not 0.0 < self.standard_error < math.inf:
            return Interval(self.low, self.high)
        half = (
            t_quantile(bonferroni_confidence(self.confidence, together), self.degrees) * self.standard_error
        )
        centre = math.log(self.ratio)
        return Interval(_or_infinity(math.exp, centre - half), _or_infinity(math.exp, centre + half))

    def among(self, together: int) -> Ratio:
        """The same ratio as one of `together` that are judged simultaneously."""
        interval = self.for_many(together)
        return replace(self, low=interval.low, high=interval.high, together=together)

    @property
    def adjusted_p(self) -> float | None:
        """p adjusted for all ratios judged simultaneously (Bonferroni): below 1 - confidence if the interval excludes
        1."""
        return None if self.p is None else min(1.0, self.together * self.p)

    def smallest_found(self, power: float = 0.8) -> float | None:
        """Smallest relative difference that this number of trials detects at this spread with probability `power`.

        None without variation, or if chance alone shows one with that probability. It does not depend on the observed
        difference.
        Source: noncentral t, as in `twosample.smallest_found`, on logarithms.
        """
        if not 0.0 < self.standard_error < math.inf:
            return None
        level = (1.0 - self.confidence) / self.together
        if power <= level:
            return None
        found = smallest_found(self.standard_error, self.degrees, level, power)
        return _or_infinity(math.expm1, found)


def paired_ratio(
    base: ArrayLike,
    other: ArrayLike,
    *,
    confidence: float = 0.95,
    factor: float = 1.0,
    subtract: tuple[float, float] = (0.0, 0.0),
) -> Ratio:
    """other/base from pairs that ran side by side, which cancels the machine's effect on both.

    base, other: shape (n,) each, the same index for the same pair, n >= 2, positive.
    factor: widening factor of the stop rule that ended the series.
    subtract: a cost common to all values and its standard error, in their unit (a shell's start). It is subtracted from
    every value, and its error widens the interval by its effect on the log ratio.
    Raises ValueError for values at or below zero (before or after subtraction), unequal lengths, or n < 2.
    Source: Student's interval of the mean log ratio, with the effective number of pairs (`effective_count`); coverage
    under RatioPrecision in docs/explanation/calibration.md.
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    cost, cost_error = _checked_cost(subtract)
    lower, upper = _pairs(base, other, cost)
    logs = np.log(upper) - np.log(lower)
    by_cost = cost_error * float(np.mean(1.0 / lower - 1.0 / upper)) if cost_error else 0.0
    error = math.hypot(standard_error(logs), by_cost)
    found = ratio_of(
        float(logs.mean()), factor * error, logs.size - 1.0, int(logs.size), "paired", confidence, factor
    )
    return replace(found, effective_count=effective_count(logs))


def unpaired_ratio(base: ArrayLike, other: ArrayLike, *, confidence: float = 0.95) -> Ratio:
    """other/base from two samples that did not run side by side: drift between them is not controlled.

    base, other: shapes (n,) and (m,), both at least 2, positive; ValueError otherwise.
    Source: Welch's interval on logarithms, with the effective numbers of values in the error and in its degrees of
    freedom.
    """
    check_confidence(confidence)
    lower, upper = np.log(_positive(base)), np.log(_positive(other))
    count = int(min(lower.size, upper.size))
    if count < 2:
        raise ValueError("ratio needs two or more values of either test")
    a, b = effective_moments(lower), effective_moments(upper)
    error = math.hypot(a.standard_error, b.standard_error)
    found = ratio_of(b.mean - a.mean, error, welch_degrees(a, b), count, "unpaired", confidence, 1.0)
    return replace(found, effective_count=min(a.count, b.count))


def paired_mean_ratio(
    base: ArrayLike,
    other: ArrayLike,
    *,
    confidence: float = 0.95,
    factor: float = 1.0,
    subtract: tuple[float, float] = (0.0, 0.0),
) -> Ratio:
    """Ratio of arithmetic means; arguments and errors as for `paired_ratio`.

    Source: Fieller's problem by linearisation (the delta method): log(mean other/mean base) has the standard error of
    the mean of other/mean other − base/mean base, pair by pair, with the effective number of pairs (`effective_count`);
    t with n-1 degrees of freedom.
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    cost, cost_error = _checked_cost(subtract)
    lower, upper = _pairs(base, other, cost)
    a, b = mean_of(lower), mean_of(upper)
    off = upper / b - lower / a
    sensitivity = 1.0 / a - 1.0 / b
    error = math.hypot(standard_error(off), sensitivity * cost_error)
    centre = math.log(b) - math.log(a)
    found = ratio_of(centre, factor * error, off.size - 1.0, int(off.size), "paired", confidence, factor)
    return replace(found, effective_count=effective_count(off))


def ratio_of_fitting_means(
    base: ArrayLike, other: ArrayLike, kind: Kind, mean_ratio: Callable[[ArrayLike, ArrayLike], Ratio]
) -> Ratio | None:
    """other/base of the means that fit a metric of this kind, from values as for `mean_ratio`: `paired_mean_ratio` or
    `unpaired_mean_ratio`.

    Arithmetic for costs and counts, harmonic for rates; None if the geometric mean fits, or none does.
    """
    if kind in ("cost", "count"):
        return mean_ratio(base, other)
    if kind == "rate":  # equal work takes times proportional to the inverse rates
        return mean_ratio(1.0 / _positive(other), 1.0 / _positive(base))
    return None


def unpaired_mean_ratio(base: ArrayLike, other: ArrayLike, *, confidence: float = 0.95) -> Ratio:
    """Ratio of arithmetic means; arguments, errors and dependent values as for `unpaired_ratio`.

    Source: the delta method, as `paired_mean_ratio`; Welch's degrees of freedom.
    """
    check_confidence(confidence)
    lower, upper = _positive(base), _positive(other)
    count = int(min(lower.size, upper.size))
    if count < 2:
        raise ValueError("ratio needs two or more values of either test")
    a, b = (effective_moments(x / mean_of(x)) for x in (lower, upper))
    error = math.hypot(a.standard_error, b.standard_error)
    centre = math.log(mean_of(upper)) - math.log(mean_of(lower))
    found = ratio_of(centre, error, welch_degrees(a, b), count, "unpaired", confidence, 1.0)
    return replace(found, effective_count=min(a.count, b.count))


def noise_floor(
    base: ArrayLike,
    again: ArrayLike,
    *,
    pairs: int,
    kind: Kind = "cost",
    confidence: float = 0.95,
    factor: float = 1.0,
) -> float | None:
    """A/A noise (noise floor): margin of error, relative, that `pairs` pairs of one and the same command would have.

    base, again: shape (m,) each, the baseline paired with itself in the same session (A/A pairs), positive.
    kind: kind of the metric; the ratio is of the means that fit it, as in `ratio_of_fitting_means`.
    None below five such pairs. The spread is around the true ratio of 1, so that a constant difference between the two
    counts as noise too.
    Source: the delta method with both means equal, and so estimated by the mean of all values.
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    check_positive("pairs", pairs)
    if min(finite_sample(base).size, finite_sample(again).size) < FEWEST_FOR_NOISE_FLOOR:
        return None
    lower, upper = _pairs(base, again, 0.0)
    if kind == "rate":
        lower, upper = 1.0 / lower, 1.0 / upper
    if kind in ADDING_UP:
        off = (upper - lower) / mean_of(np.concatenate((lower, upper)))
    else:
        off = np.log(upper) - np.log(lower)
    spread = math.sqrt(float(np.mean(off**2)))
    half = factor * t_quantile(confidence, off.size - 1) * spread / math.sqrt(pairs)
    return _or_infinity(math.expm1, half)


def more_pairs(ratio: Ratio, *, target: float) -> int:
    """Further pairs until the margin of error of this ratio, of pairs, is below `target` (relative).

    The spread and the precision of pairs are assumed constant. 0 if it is already below; at most 10**9.
    """
    check_positive("target", target)
    spread = ratio.standard_error * math.sqrt(ratio.count)

    def half(n: int) -> float:
        level = bonferroni_confidence(ratio.confidence, ratio.together)
        return t_quantile(level, ratio.degrees + n - ratio.count) * spread / math.sqrt(n)

    return _further(ratio.count, half, math.log1p(target))


def more_trials(x: ArrayLike, *, target: float, confidence: float = 0.95, factor: float = 1.0) -> int:
    """Further trials until the margin of error of `mean_interval` is below `target`·|mean|.

    Spread and dependence are assumed constant.

    x: shape (n,), n >= 2. 0 if it is already below; at most 10**9.
    Raises ValueError for a mean of zero, which has no relative precision.
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    check_positive("target", target)
    values = finite_sample(x)
    if values.size < 2:
        raise ValueError("a plan needs two or more trials")
    mean = abs(float(values.mean()))
    if mean == 0.0:
        raise ValueError("a precision relative to the mean needs a mean other than zero")
    worth = effective_count(values) / values.size
    spread = factor * deviation(values) / math.sqrt(worth)
    return _further(int(values.size), lambda n: _half(n, confidence, spread), target * mean)


FORECAST = 0.8
"""Confidence of the range of a forecast."""


def further_range(now: int, further: int, degrees: float) -> tuple[int, int]:
    """Forecast range of `further` trials, beyond `now`, given the uncertainty of the spread (80 %).

    The number grows with the variance, whose estimate has a chi-squared distribution with `degrees` degrees of freedom.
    At least 1 and at most 10**9.
    """
    check_positive("degrees", degrees)
    tail = (1.0 - FORECAST) / 2.0
    ends = (degrees / float(chdtri(degrees, tail)), degrees / float(chdtri(degrees, 1.0 - tail)))
    low, high = (min(max((now + further) * end - now, 1.0), MOST_FURTHER) for end in ends)
    return round(low), round(high)


def _half(n: int, confidence: float, spread: float) -> float:
    return t_quantile(confidence, n - 1) * spread / math.sqrt(n)


def _further(now: int, half_width: Callable[[int], float], target: float) -> int:
    """Number beyond `now` until the falling `half_width(n)` is below `target`."""

    def enough(n: int) -> bool:
        half = half_width(n)
        return half < target or half == 0.0

    if enough(now):
        return 0
    step = 1
    while not enough(now + step):
        if step >= MOST_FURTHER:
            return MOST_FURTHER
        step *= 2
    too_few, plenty = step // 2, step
    while plenty - too_few > 1:
        middle = (too_few + plenty) // 2
        if enough(now + middle):
            plenty = middle
        else:
            too_few = middle
    return min(plenty, MOST_FURTHER)


def _positive(x: ArrayLike, cost: float = 0.0) -> NDArray[np.float64]:
    values = finite_sample(x) - cost
    if bool(np.any(values <= 0.0)):
        if cost:
            raise ValueError("ratio needs positive values: not all are above what is subtracted")
        raise ValueError(f"ratio needs positive values: the smallest is {values.min():g}")
    if values.size and values.min() < np.finfo(np.float64).tiny:
        raise ValueError("the values are too small to be compared; give them in a smaller unit")
    return values


def _pairs(base: ArrayLike, other: ArrayLike, cost: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    lower, upper = _positive(base, cost), _positive(other, cost)
    if lower.size != upper.size:
        raise ValueError(f"ratio of pairs needs equally many values, not {lower.size} and {upper.size}")
    if lower.size < 2:
        raise ValueError("ratio needs two or more pairs")
    return lower, upper


def _checked_cost(subtract: tuple[float, float]) -> tuple[float, float]:
    cost, error = subtract
    if not (math.isfinite(cost) and math.isfinite(error) and error >= 0.0):
        raise ValueError(f"subtract needs a finite cost and its standard error, not {cost} and {error}")
    return cost, error


def ratio_of(
    centre: float,
    error: float,
    degrees: float,
    count: int,
    method: Literal["paired", "unpaired"],
    confidence: float,
    factor: float,
) -> Ratio:
    """A ratio from its logarithm and standard error."""
    half = t_quantile(confidence, degrees) * error
    low, middle, high = (_or_infinity(math.exp, value) for value in (centre - half, centre, centre + half))
    return Ratio(middle, low, high, count, method, confidence, factor, error, degrees)


def _or_infinity(function: Callable[[float], float], value: float) -> float:
    try:
        return function(value)
    except OverflowError:
        return math.inf
