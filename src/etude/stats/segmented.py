"""Where a curve bends: a continuous line of straight pieces through the medians at each x, and how sure its bends are.

For curves over a size, both as logarithms: a slope is then a power, and a bend a size from which another cost counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etude.stats.intervals import Interval
from etude.stats.pieces import Best, Lines
from etude.stats.resampling import resampled_medians
from etude.stats.samples import check_confidence, check_positive, finite_sample, positive_logarithms

Floats = NDArray[np.float64]

MOST = 5
"""Breaks, unless more or fewer are asked for."""

DRAWS = 299
"""Bootstrap draws: the 95 % limits are then the 8th from either end."""

FEWEST_TRIALS = 4
"""At each x; from fewer no interval is drawn."""

STEEP = 0.15
"""A slope of the logarithms; a fall by a tenth from one power of two to the next has -0.152."""

TIMES = 3.0
"""As the usual spread."""

LEAST_SPREAD = 0.01
"""Of the median; less is no scatter, whatever the other points have."""

_SMALLEST = 1e-6  # deviations from the line, of the range of y, that are none
_TINY = 1e-12  # the same, of the largest y
_LEAST_WEIGHT = 1e-4


@dataclass(frozen=True)
class Break:
    """Where the slope changes, in the unit of x."""

    at: float
    interval: Interval | None
    """None where there are too few trials."""
    share: float | None
    """Of the draws whose own best line has a break within one x of this one; None where nothing was drawn."""


@dataclass(frozen=True)
class Slope:
    """Of one piece, in units of y per unit of x."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Segmented:
    """The line, from the first x to the last."""

    breaks: tuple[Break, ...]
    slopes: tuple[Slope, ...]
    """Of the pieces, one more than breaks."""
    knots: tuple[tuple[float, float], ...]
    """x and y of the line at its ends and breaks."""
    deviation: float
    """Root mean square of what the medians lie off the line, in the unit of y, noisy ones counting less."""
    why: str | None
    """Why there is no interval."""


def fit(
    x: ArrayLike,
    samples: Sequence[ArrayLike],
    *,
    most: int = MOST,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    tolerance: float = 0.0,
) -> Segmented:
    """The continuous line of 1 to `most` + 1 straight pieces through the medians of `samples`, one sample for each x.

    x: shape (n,), rising, 3 or more; give logarithms of sizes. samples: the trials' values of y at each x, as
    logarithms of what was measured. tolerance: deviations from the line that are worth no break, in the unit of y.
    An x whose median is less sure than that of most counts by the inverse square of its standard error. The number of
    breaks is that of the smallest n·log(variance) + (2 + 4·breaks)·log n; at least one x lies between two breaks, and
    two at either end. Breaks are first looked for at the x by trying all combinations, then moved between them.
    Intervals: percentiles of lines with as many breaks through medians of trials that were drawn anew at each x; where
    the medians lie farther off the line than their trials explain, the rest is drawn as well, normal and of its size.
    Raises ValueError for x that do not rise, fewer than three, and samples without values or not finite.
    Source: Hudson (1966) and Muggeo (2003) for the moving of breaks, Bai and Perron (2003) for looking at all of them
    at once, and for their number by Schwarz's criterion, whose cost of a break was found by simulation.
    """
    check_confidence(confidence)
    values = [finite_sample(sample) for sample in samples]
    places, unit = _checked(x, values, most, draws, tolerance)
    scale = max(float(np.max(np.abs(sample))) for sample in values) or 1.0
    middles = [float(np.median(sample / scale)) for sample in values]
    values = [sample / scale - middles[0] for sample in values]  # so that equal values are exactly level
    y = np.array([[middle - middles[0] for middle in middles]])
    why = _too_few(places, values)
    rng = np.random.default_rng(seed)
    drawn = None if why else resampled_medians(values, draws, rng)
    lines = Lines(unit, _weights(drawn, unit.size), most)
    smallest = max(tolerance / scale, _SMALLEST * float(np.ptp(y)), _TINY)
    found = lines.best(y)
    count = int(lines.number(found, smallest)[0])
    line = _Pieces(lines, found[count].breaks, y)
    told = partial(_told, places, unit, line, middles[0], scale)
    if drawn is None:
        return told([None] * count, [None] * (count + 1), [None] * count, why)
    drawn += _beyond_trials(lines, drawn, found[count]) * rng.normal(size=drawn.shape)
    again = lines.best_again(drawn, found)
    theirs = _Pieces(lines, again[count].breaks, drawn)
    shares = _shares(lines, line.breaks[0], [each.breaks for each in again], lines.number(again, smallest))
    tail = (1.0 - confidence) / 2.0
    return told(_limits(theirs.breaks, tail), _limits(theirs.slopes, tail), shares, None)


@dataclass(frozen=True)
class Steps:
    """Places in a curve, from 0."""

    steep: tuple[int, ...]
    """x after which a steep step comes, before the next x."""
    variable: tuple[int, ...]
    """x at which trials differ more than elsewhere."""


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
    """What a line of pieces hides of a rate over sizes: steep steps between neighbours, and points that scatter.

    x: logarithms of sizes to the base 2, rising. medians, low and high: the rates themselves, positive, with their
    quartiles (or other ends of a spread); all of shape (n,), n >= 2.
    A steep step: the spreads of both points do not overlap, and the slope of the logarithms is below -`steep`, or more
    than `steep` above that before it (above 0 after a fall, above 1 at the beginning). For where a fixed cost is
    shared among more bytes a rate rises with a slope that falls from 1 to 0 and never grows.
    Variable: (high - low)/median is above `times` that of the median point, and above `least`.
    Raises ValueError for values that are not finite or positive, x that do not rise, and lengths that differ.
    Source: judgement. Of 1000 straight curves with normal noise one had a variable point.
    """
    for name, value in (("steep", steep), ("times", times), ("least", least)):
        check_positive(name, value)
    places, middles, lows, highs = (finite_sample(row) for row in (x, medians, low, high))
    if not places.size == middles.size == lows.size == highs.size > 1:
        raise ValueError("x, medians and both ends of their spreads must be as many each, and two or more")
    _check_rising(places)
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


def _check_rising(places: Floats) -> None:
    if bool(np.any(places[1:] <= places[:-1])):
        raise ValueError("x must rise, each value once")


def _checked(
    x: ArrayLike, values: Sequence[Floats], most: int, draws: int, tolerance: float
) -> tuple[Floats, Floats]:
    """x as it came, and from 0 to 1."""
    places = finite_sample(x)
    if places.size != len(values):
        raise ValueError(f"each x has one sample: there are {places.size} x and {len(values)} samples")
    if places.size < 3:
        raise ValueError(f"a line of pieces needs three or more x, not {places.size}")
    _check_rising(places)
    for n, sample in enumerate(values):
        if sample.size == 0:
            raise ValueError(f"x number {n + 1} of {places.size} ({places[n]:g}) has no values")
    if most < 0 or draws < 1:
        raise ValueError(f"breaks must be 0 or more and draws 1 or more, not {most} and {draws}")
    if not (np.isfinite(tolerance) and tolerance >= 0.0):
        raise ValueError(f"the tolerance must be 0 or more, not {tolerance}")
    half = places / 2.0  # so that the range of the largest numbers is a number
    unit = (half - half[0]) / (half[-1] - half[0])
    if bool(np.any(unit[1:] <= unit[:-1])):
        raise ValueError("x lie too far apart, beside others that lie too close, for a line")
    return places, unit


def _too_few(places: Floats, values: Sequence[Floats]) -> str | None:
    fewest = min(range(len(values)), key=lambda n: values[n].size)
    if values[fewest].size >= FEWEST_TRIALS:
        return None
    have = f"{values[fewest].size} (at {places[fewest]:g})"
    return f"an interval needs {FEWEST_TRIALS} or more trials at each x, not {have}"


def _weights(drawn: Floats | None, n: int) -> Floats:
    """By how sure the medians are; those that are surer than most count as most do."""
    if drawn is None:
        return np.ones(n)
    errors = drawn.std(axis=0)
    usual = float(np.median(errors))
    if usual < _TINY:
        return np.ones(n)
    weights: Floats = (usual / np.maximum(errors, usual)) ** 2
    return np.maximum(weights, _LEAST_WEIGHT)


def _beyond_trials(lines: Lines, drawn: Floats, line: Best) -> float:
    """What the medians lie off the line beyond what their trials explain: a standard deviation."""
    freedom = max(1, lines.x.size - 2 - 2 * line.breaks.shape[1])
    explained = float(np.mean(drawn.var(axis=0) * lines.root**2))
    return math.sqrt(max(0.0, float(line.residual[0]) / freedom - explained))


class _Pieces:
    """Lines for rows of y: breaks from 0 to 1, slopes of the pieces, y at the ends and breaks."""

    def __init__(self, lines: Lines, breaks: Floats, y: Floats) -> None:
        found, residual = lines.solve(breaks, y)
        self.breaks, self.slopes = breaks, np.cumsum(found[:, 1:], axis=1)
        ends = np.pad(breaks, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
        rises = np.cumsum(self.slopes * np.diff(ends, axis=1), axis=1)
        self.levels = found[:, :1] + np.pad(rises, ((0, 0), (1, 0)))
        self.deviation = math.sqrt(max(float(residual[0]), 0.0) / lines.x.size)


def _told(
    x: Floats,
    unit: Floats,
    line: _Pieces,
    shift: float,
    scale: float,
    breaks: Sequence[tuple[float, float] | None],
    slopes: Sequence[tuple[float, float] | None],
    shares: Sequence[float | None],
    why: str | None,
) -> Segmented:
    """The first line, in the units in which x and y came."""

    def place(value: float) -> float:
        return 2.0 * float(np.interp(value, unit, x / 2.0))

    def slope(value: float) -> float:
        return float(value) / float(x[-1] / 2.0 - x[0] / 2.0) / 2.0 * scale

    at = [place(value) for value in line.breaks[0]]
    ends = (float(x[0]), *at, float(x[-1]))
    return Segmented(
        tuple(
            Break(value, None if limits is None else Interval(*map(place, limits)), share)
            for value, limits, share in zip(at, breaks, shares, strict=True)
        ),
        tuple(
            Slope(slope(value), None if limits is None else Interval(*map(slope, limits)))
            for value, limits in zip(line.slopes[0], slopes, strict=True)
        ),
        tuple(zip(ends, ((float(level) + shift) * scale for level in line.levels[0]), strict=True)),
        line.deviation * scale,
        why,
    )


def _limits(drawn: Floats, tail: float) -> list[tuple[float, float]]:
    """The middle of the draws, column by column."""
    low, high = np.quantile(drawn, (tail, 1.0 - tail), axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _shares(lines: Lines, breaks: Floats, theirs: Sequence[Floats], numbers: NDArray[np.intp]) -> list[float]:
    """For each break: of how many draws the own line has one that is no farther off than an x is from the next."""
    at = np.interp(breaks, lines.x, lines.places)
    near = np.zeros((numbers.size, breaks.size), dtype=bool)
    for count, each in enumerate(theirs):
        if count:
            away = np.abs(np.interp(each, lines.x, lines.places)[:, :, None] - at)
            near |= (numbers == count)[:, None] & (away.min(axis=1) <= 1.0)
    return [float(share) for share in near.mean(axis=0)]
