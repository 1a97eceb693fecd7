"""Crossings: the size from which on the ratio of two tests stays within a level; and steep steps of a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etude.stats.intervals import Interval
from etude.stats.resampling import resampled_medians
from etude.stats.samples import check_confidence, check_positive, finite_sample, positive_logarithms

DRAWS = 999

FEWEST_TRIALS = 4
"""Minimum trials of either test at each x for an interval."""

_SMALLEST = 5e-324
_LARGEST = 1e300  # upper bound of ratios

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Crossing:
    """The x, in its unit, beyond which a ratio stays on the other side of a level."""

    at: float | None
    """None if there is none in the range of x."""
    interval: Interval | None
    """None also if one of its ends is outside that range."""
    share: float | None
    """Share of the draws with a crossing; None if nothing was drawn."""
    why: str | None
    """Reason for a missing crossing or interval."""
    settled: bool = True
    """True if at least `confidence` of the draws agree that there is no crossing; for few trials, if their extremes
    agree."""


def crossing(
    x: ArrayLike,
    base: Sequence[ArrayLike],
    other: Sequence[ArrayLike],
    level: float,
    *,
    log: bool = True,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Crossing:
    """The x beyond which the ratio of medians, other to base, stays below `level` (such as 1.05), or above a level
    below 1.

    x: shape (n,), rising, 2 or more, above 0 where `log`. base, other: for each x the trials of both, positive. Between
    the last x that lies beyond the level and the next, the ratio is interpolated: along log x, or along x.
    Interval: percentiles of the crossings of medians of trials resampled at each x; a draw without a crossing counts as
    one before the first x, or after the last.
    Raises ValueError if x does not rise or samples are not positive.
    Source: percentile bootstrap (Efron 1979); its coverage is in docs/explanation/statistics.md.
    """
    check_confidence(confidence)
    check_positive("level", level)
    places, samples = _checked(x, base, other, log, draws)
    middles = np.array([[np.median(values) for values in samples]])
    beyond = _beyond(middles, level)
    at = float(_crossings(places, beyond, log)[0])
    none = None if math.isfinite(at) else _why_none(at, beyond[0], level, places)
    found = None if none else at
    fewest = min(values.size for values in samples)
    if fewest < FEWEST_TRIALS:
        few = f"an interval needs {FEWEST_TRIALS} or more trials of either at each x, not {fewest}"
        return Crossing(found, None, None, none or few, _by_extremes(samples, level) == at)
    drawn = resampled_medians(samples, draws, np.random.default_rng(seed))
    all_found = _crossings(places, _beyond(drawn, level), log)
    share = float(np.mean(np.isfinite(all_found)))
    if none is not None:
        return Crossing(None, None, share, none, bool(np.mean(all_found == at) >= confidence))
    tail = (1.0 - confidence) / 2.0
    low, high = (float(v) for v in np.quantile(all_found, (tail, 1.0 - tail), method="inverted_cdf"))
    if math.isfinite(low) and math.isfinite(high):
        return Crossing(found, Interval(min(low, at), max(high, at)), share, None)
    return Crossing(found, None, share, _why_open(low, high, places))


def without_size(found: Crossing) -> str:
    """Reason for a missing crossing or interval, without the x, whose unit depends on the reader."""
    return (found.why or "").partition(",")[0]


def _checked(
    x: ArrayLike, base: Sequence[ArrayLike], other: Sequence[ArrayLike], log: bool, draws: int
) -> tuple[Floats, list[Floats]]:
    """x, and the samples of the base followed by those of the other test."""
    places = finite_sample(x)
    if not places.size == len(base) == len(other):
        raise ValueError(f"each x has two samples: x {places.size}, base {len(base)}, other {len(other)}")
    if places.size < 2:
        raise ValueError(f"a crossing lies between two x: give two or more, not {places.size}")
    if bool(np.any(places[1:] <= places[:-1])):
        raise ValueError("x must rise, each value once")
    if log and places[0] <= 0.0:
        raise ValueError(f"x must be above 0 to be interpolated along its logarithm, not {places[0]:g}")
    if draws < 1:
        raise ValueError(f"draws must be 1 or more, not {draws}")
    samples = [finite_sample(values) for values in (*base, *other)]
    for n, values in enumerate(samples):
        if values.size == 0:
            raise ValueError(f"at x {places[n % places.size]:g} a test has no values")
        positive_logarithms(values)
    return places, [np.maximum(values / 4.0, _SMALLEST) for values in samples]  # prevents overflow of sums


def _beyond(middles: Floats, level: float) -> Floats:
    """Distance of each ratio beyond the level, negative within it; shape (rows, x)."""
    count = middles.shape[1] // 2
    with np.errstate(over="ignore"):
        ratios = np.minimum(middles[:, count:] / middles[:, :count], _LARGEST)
    return ratios - level if level >= 1.0 else level - ratios


def _crossings(places: Floats, beyond: Floats, log: bool) -> Floats:
    """Crossing of each row, after its last x beyond the level; -inf if none is beyond, inf if the last one is."""
    outside = beyond >= 0.0
    count = places.size
    last = count - 1 - np.argmax(outside[:, ::-1], axis=1)
    inside = outside.any(axis=1) & (last < count - 1)
    first = np.where(inside, last, 0)
    rows = np.arange(beyond.shape[0])
    before, after = beyond[rows, first], beyond[rows, first + 1]  # 0 or more, and below 0
    part = np.divide(before, before - after, out=np.zeros_like(before), where=inside)
    if log:
        scale = np.log(places)
        found = np.exp(scale[first] + part * (scale[first + 1] - scale[first]))
    else:
        found = places[first] * (1.0 - part) + places[first + 1] * part
    none = np.where(outside.any(axis=1), np.inf, -np.inf)
    crossings: Floats = np.where(inside, np.clip(found, places[first], places[first + 1]), none)
    return crossings


def _by_extremes(samples: Sequence[Floats], level: float) -> float:
    """inf if all trials are beyond the level at the last x, -inf if all are within it at each x; else NaN."""
    count = len(samples) // 2
    least, most = (np.array([fold(values) for values in samples]) for fold in (np.min, np.max))
    rows = [[*most[:count], *least[count:]], [*least[:count], *most[count:]]]
    beyond = _beyond(np.array(rows), level)
    return math.inf if beyond[:, -1].min() >= 0.0 else -math.inf if beyond.max() < 0.0 else math.nan


def _why_none(at: float, beyond: Floats, level: float, places: Floats) -> str:
    within, outside = ("below", "above") if level >= 1.0 else ("above", "below")
    if at < 0.0:
        return f"{within} it from the first size on"
    if bool(np.all(beyond >= 0.0)):
        return f"{outside} it everywhere"
    return f"{outside} it at the last size, {places[-1]:g}"


def _why_open(low: float, high: float, places: Floats) -> str:
    if not (math.isfinite(low) or math.isfinite(high)):
        return "the interval is wider than the range of sizes"
    end, place = (
        ("begins before the first", places[0])
        if math.isfinite(high)
        else ("ends beyond the last", places[-1])
    )
    return f"the interval {end} size, {place:g}"


STEEP = 0.15
"""Slope of the logarithms; a fall by a tenth from one power of two to the next has -0.152."""

TIMES = 3.0
"""Multiple of the usual spread."""

LEAST_SPREAD = 0.01
"""Minimum spread of a variable point, as a share of the median."""


@dataclass(frozen=True)
class Steps:
    """Places in a curve, from 0."""

    steep: tuple[int, ...]
    """Indices of x before a steep step."""
    variable: tuple[int, ...]
    """Indices of x at which trials vary more than elsewhere."""


def steps(
    x: ArrayLike,
    medians: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    steep: float = STEEP,
    times: float = TIMES,
    least: float = LEAST_SPREAD,
) -> Steps:
    """Steep steps of a rate between neighbouring sizes, and sizes with a large spread of trials.

    x: logarithms of sizes to the base 2, rising. medians, low and high: the rates themselves, positive, with their
    quartiles (or other ends of a spread); all of shape (n,), n >= 2.
    A steep step: the spreads of both points do not overlap, and the slope of the logarithms is below -`steep`, or more
    than `steep` above that before it (above 0 after a fall, above 1 at the beginning). With a fixed cost shared among
    more bytes, a rate rises with a slope that falls from 1 to 0 and never grows.
    Variable: (high - low)/median is above `times` that of the median point, and above `least`.
    Raises ValueError if values are not finite or positive, x does not rise, or lengths differ.
    Source: judgement. Of 1000 straight curves with normal noise one had a variable point.
    """
    for name, value in (("steep", steep), ("times", times), ("least", least)):
        check_positive(name, value)
    places, middles, lows, highs = (finite_sample(row) for row in (x, medians, low, high))
    if not places.size == middles.size == lows.size == highs.size > 1:
        raise ValueError("x, medians and both ends of their spreads must be as many each, and two or more")
    if bool(np.any(places[1:] <= places[:-1])):
        raise ValueError("x must rise, each value once")
    if bool(np.any(lows > middles)) or bool(np.any(highs < middles)):
        raise ValueError("each median must lie between the ends of its spread")
    with np.errstate(over="ignore"):
        slopes = np.diff(positive_logarithms(middles)) / math.log(2.0) / np.diff(places)
        spreads = (highs / middles - lows / middles).tolist()
    before = np.concatenate(([1.0], np.maximum(slopes[:-1], 0.0)))
    falls = (slopes < -steep) & (highs[1:] < lows[:-1])
    jumps = (slopes > before + steep) & (lows[1:] > highs[:-1])
    usual = float(np.median(spreads))
    return Steps(
        tuple(np.flatnonzero(falls | jumps).tolist()),
        tuple(n for n, spread in enumerate(spreads) if spread > max(times * usual, least)),
    )
