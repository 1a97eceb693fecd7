"""Summary of one sample, and its percentiles with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from etude.stats.intervals import Interval, effective_count, median_interval_of_sorted, t_quantile
from etude.stats.means import FITTING, Average, Kind, Mean, average, to_additive_scale
from etude.stats.moments import deviation_of, interval_above_zero, interval_of_mean, mean_of
from etude.stats.samples import check_confidence, finite_sample


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
    added = found.which in ("arithmetic", "proportion") or reason is not None  # unchanged by their scale
    worth = found.effective_count if added else effective_count(values)
    ordered = np.sort(values)
    return Summary(
        count=int(values.size),
        mean=found.mean,
        mean_interval=found.interval,
        which=found.which,
        mean_reason=reason,
        median=_median(ordered),
        median_interval=median_interval_of_sorted(ordered, worth, confidence=confidence),
        quartiles=(_interpolated(ordered, 0.25), _interpolated(ordered, 0.75)),
        minimum=float(ordered[0]),
        maximum=float(ordered[-1]),
        deviation=deviation_of(values) if values.size > 1 else None,
        effective_count=found.effective_count,
    )


def _median(ordered: NDArray[np.float64]) -> float:
    middle = ordered[(ordered.size - 1) // 2 : ordered.size // 2 + 1]
    return float(middle.mean())


def _average(
    values: NDArray[np.float64], kind: Kind, confidence: float, factor: float
) -> tuple[Average, str | None]:
    try:
        return average(values, kind, confidence=confidence, factor=factor), None
    except ValueError as error:
        worth = effective_count(to_additive_scale(values, FITTING[kind]))
        return Average(math.nan, None, FITTING[kind], "", worth), f"no {FITTING[kind]} mean: {error}"


def _over(value: float | None, mean: float) -> float | None:
    return value / abs(mean) if value is not None and mean and math.isfinite(mean) else None


DEFAULT_SHARES = (0.5, 0.9, 0.99, 0.999)
"""p50, p90, p99, p99.9."""


@dataclass(frozen=True)
class Percentile:
    """The value below which a share of all values lies, in their unit."""

    share: float
    value: float | None
    """None if fewer than one value can be expected beyond it."""
    interval: Interval | None
    reason: str | None
    """Reason for a missing value or interval."""


def percentile(x: ArrayLike, share: float, *, confidence: float = 0.95) -> Percentile:
    """Quantile of `x`, shape (n,), at `share` (0.99 for p99), with an interval between two order statistics.

    Independent values of any distribution; the interval covers at least `confidence`. The value is interpolated
    between neighbours (numpy's "linear", Hyndman and Fan's type 7).
    Source: the number of values below the quantile is binomial(n, share); exact, hence conservative.
    """
    (found,) = percentiles(x, (share,), confidence=confidence)
    return found


def percentiles(
    x: ArrayLike,
    shares: Sequence[float] = DEFAULT_SHARES,
    *,
    confidence: float = 0.95,
    dependent: bool = False,
) -> tuple[Percentile, ...]:
    """Several percentiles of one sample, sorted once.

    dependent: values are in order of measurement; the intervals use their `effective_count`.
    """
    values = finite_sample(x)
    ordered, worth = np.sort(values), int(effective_count(values)) if dependent else values.size
    return tuple(_percentile(ordered, worth, share, confidence) for share in shares)


def fewest_for_interval(share: float, *, confidence: float = 0.95) -> int:
    """Minimum number of values for the interval of that quantile: 6 for p50, 36 for p90, 368 for p99, 3688 for
    p99.9."""
    _check_share(share)
    check_confidence(confidence)
    return max(1, math.ceil(math.log((1.0 - confidence) / 2.0) / math.log(max(share, 1.0 - share)) - 1e-9))


def quartiles(x: ArrayLike) -> tuple[float, float]:
    """First and third quartile of one or more values, interpolated as in `percentile`."""
    values = finite_sample(x)
    if values.size == 0:
        raise ValueError("a sample without values has no quartiles")
    ordered = np.sort(values)
    return _interpolated(ordered, 0.25), _interpolated(ordered, 0.75)


@dataclass(frozen=True)
class TrimmedMean:
    """Mean without the smallest and the largest values."""

    mean: float
    interval: Interval | None
    trimmed: int
    """Number of values excluded at either end."""
    reason: str | None
    """Reason for a missing interval."""


def trimmed_mean(
    x: ArrayLike, share: float, *, confidence: float = 0.95, dependent: bool = False
) -> TrimmedMean:
    """Mean without the `share` (0.1 for 10 %) of smallest values and as many of the largest; nothing is deleted.

    x: shape (n,), n >= 1. dependent: values are in order of measurement; the interval uses their `effective_count`. It
    estimates the middle of a symmetrical distribution, and a value between median and mean of a skewed one. Raises
    ValueError for a share outside 0 to 0.5.
    Source: Tukey and McLaughlin (1963): t with n - 2k - 1 degrees of freedom on the winsorised deviation.
    """
    check_confidence(confidence)
    if not 0.0 <= share < 0.5:
        raise ValueError(f"the share trimmed at either end must be from 0 to below 0.5, not {share}")
    values = finite_sample(x)
    ordered, n = np.sort(values), values.size
    if n == 0:
        raise ValueError("a sample without values has no mean")
    worth = effective_count(values) if dependent else n
    cut = math.floor(share * n + 1e-9)
    kept = ordered[cut : n - cut]
    mean = mean_of(kept)
    if kept.size < 2:
        return TrimmedMean(
            mean, None, cut, f"an interval needs two or more values that are kept, not {kept.size}"
        )
    winsorised = np.clip(ordered, kept[0], kept[-1])
    error = deviation_of(winsorised) / ((1.0 - 2.0 * cut / n) * math.sqrt(worth))
    half = t_quantile(confidence, kept.size - 1) * error
    return TrimmedMean(mean, Interval(mean - half, mean + half), cut, None)


Bar = Literal["interval", "min-max", "quartiles", "deviation"]


def error_bar(x: ArrayLike, kind: Bar = "interval", *, confidence: float = 0.95) -> Interval | None:
    """Ends of an error bar of `x`, shape (n,): the mean's interval, the extremes, the quartiles, or one standard
    deviation to either side of the mean. None with too few values.
    """
    values = finite_sample(x)
    if values.size == 0:
        return None
    if kind == "min-max":
        return Interval(float(values.min()), float(values.max()))
    if kind == "quartiles":
        return Interval(*quartiles(values))
    if kind == "interval":
        interval = interval_of_mean(values, confidence=confidence)
        if bool(np.any(values < 0.0)):
            return interval
        return interval_above_zero(interval, mean_of(values), values.size)
    if values.size < 2:
        return None
    mean, spread = mean_of(values), deviation_of(values)
    return Interval(mean - spread, mean + spread)


def _percentile(ordered: NDArray[np.float64], worth: int, share: float, confidence: float) -> Percentile:
    _check_share(share)
    check_confidence(confidence)
    n = int(ordered.size)
    name = f"p{100.0 * share:.6g}"
    beyond = n * min(share, 1.0 - share)
    if n == 0 or beyond < 1.0 - 1e-9:
        needed = math.ceil(1.0 / min(share, 1.0 - share) - 1e-9)
        return Percentile(share, None, None, f"{name} needs {needed} or more values, not {n}")
    value = _interpolated(ordered, share)
    ranks = _ranks(worth, share, confidence)
    if ranks is None:
        needed = fewest_for_interval(share, confidence=confidence)
        made = f"{n}" if worth == n else f"{n} that depend on each other and are worth {worth}"
        return Percentile(
            share, value, None, f"an interval of {name} needs {needed} or more values, not {made}"
        )
    below, above = (depth * (n + 1) // (worth + 1) for depth in (ranks[0], worth + 1 - ranks[1]))
    return Percentile(share, value, Interval(float(ordered[below - 1]), float(ordered[n - above])), None)


def _ranks(n: int, share: float, confidence: float) -> tuple[int, int] | None:
    """Order statistics (from 1) around the quantile, each missing it with at most (1 - confidence)/2."""
    missed = (1.0 - confidence) / 2.0
    # Largest rank r with P(fewer than r values below the quantile) <= missed, and its mirror image at the other end.
    low = _last(n, lambda rank: float(bdtr(rank - 1, n, share)) <= missed)
    high = n + 1 - _last(n, lambda rank: float(bdtr(rank - 1, n, 1.0 - share)) <= missed)
    return (low, high) if low >= 1 and high <= n else None


def _last(n: int, holds: Callable[[int], bool]) -> int:
    """The largest of 1 … n for which the monotone condition `holds`; 0 if there is none."""
    below, above = 0, n + 1
    while above - below > 1:
        middle = (below + above) // 2
        if holds(middle):
            below = middle
        else:
            above = middle
    return below


def _interpolated(ordered: NDArray[np.float64], share: float) -> float:
    place = share * (ordered.size - 1)
    index = min(math.floor(place), ordered.size - 1)
    after = min(index + 1, ordered.size - 1)
    part = place - index
    low, high = float(ordered[index]), float(ordered[after])
    return low if low == high else low * (1.0 - part) + high * part


def _check_share(share: float) -> None:
    if not 0.0 < share < 1.0:
        raise ValueError(f"a percentile is a share between 0 and 1, as 0.99, not {share}")
