"""Change points of a series: lasting changes of its level, with autocorrelated and heavy-tailed noise.

The noise is estimated from the ranks of the values, so that an outlier is no step, from the autocorrelation of
neighbours, and from the correlation within blocks (days). A slow drift is no step: levels are compared with a straight
line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtr

from etude.stats.intervals import Interval, t_quantile
from etude.stats.level_fits import design_of, likely_steps, scale_of, spread_of, time_of, winsorised
from etude.stats.means import BEND, huber_fit
from etude.stats.samples import check_confidence, finite_sample

Floats = NDArray[np.float64]

SHORTEST = 3
"""Minimum values of a segment between two steps; shorter ones are treated as outliers."""

FEWEST = 2 * SHORTEST
"""Minimum values of a series with a step."""

FEWEST_FOR_DRIFT = 10
"""Minimum values of a series with a drift."""

STRICTNESS = 3.0
"""Factor of the penalty: a step must explain this times ln n times the noise variance; its cost is in
docs/howto/history.md."""

PLACED = 0.95
"""Confidence of the interval of a step's place, within which it may be moved."""

SLOPE = 1.0
"""Factor of the penalty of a drift, times ln n, where the alternative has steps: a drift has no place to fit."""

LONE = 0.5
"""Additional share that a step not found by the search must explain."""

ROUNDS = 5
"""Iterations between a slope and its steps, or the noise and its steps."""

MOST_DEPENDENT = 0.9
"""Upper bound of the autocorrelation: beyond it, a drift and a step are indistinguishable."""

MOST_HIDDEN = 2.0
"""Upper bound of the variance around the levels, relative to the observed one."""


@dataclass(frozen=True)
class Noise:
    """Noise around the levels, in the unit of the values."""

    deviation: float
    """Robust standard deviation of a value around the level of its segment."""
    dependence: float
    """Lag-1 autocorrelation, 0 to 0.9, of a first-order autoregression."""
    degrees: float
    """Degrees of freedom of the deviation."""

    stretched: float
    """Variance inflation of a mean by the dependence of neighbours and within blocks."""
    with_wild: float
    """Non-robust `deviation`, with outliers weighted fully: distance of a single value from its level."""


@dataclass(frozen=True)
class Step:
    """One change of the level."""

    at: int
    """Index of the first value of the new level."""
    earliest: int
    """First index of the interval of `at` …"""
    latest: int
    """… and last index, at the requested confidence."""
    size: float
    """Difference of the levels after and before, in the unit of the values; without the drift, if there is one."""
    interval: Interval
    """Interval of the size."""
    p: float
    """Two-sided p-value of no step, times the number of places searched; at most 1. It is of the ranks, not of the
    size."""

    or_drift: bool = False
    """True if a drift instead describes the values nearly as well."""

    @property
    def shown(self) -> bool:
        """True if the interval of the size excludes 0, which the test of ranks does not imply."""
        return not self.interval.low <= 0.0 <= self.interval.high


@dataclass(frozen=True)
class Drift:
    """A slow change in one direction over the whole series."""

    slope: float
    """Change from one value to the next, in the unit of the values."""
    change: float
    """Change from the first to the last value."""
    interval: Interval
    """Interval of the change."""
    p: float
    """Two-sided p-value of no drift."""
    or_steps: tuple[int, ...] = ()
    """Indices of steps that describe the values nearly as well instead."""


@dataclass(frozen=True)
class StepFit:
    """A series as segments of constant level, with the drift through all of them."""

    steps: tuple[Step, ...]
    noise: Noise
    levels: tuple[float, ...]
    """Robust means of the segments, one more than steps; with a drift, at the middle of the series."""
    length: int
    drift: Drift | None = None

    @property
    def starts(self) -> tuple[int, ...]:
        """Index of the begin of each segment."""
        return (0, *(step.at for step in self.steps))

    @property
    def fitted(self) -> Floats:
        """Fitted level at each value, with drift and steps, shape (n,)."""
        lengths = np.diff([*self.starts, self.length])
        slope = 0.0 if self.drift is None else self.drift.slope
        found: Floats = np.repeat(self.levels, lengths) + slope * time_of(self.length)
        return found


def fit_steps(x: ArrayLike, *, blocks: ArrayLike | None = None, confidence: float = 0.95) -> StepFit:
    """Steps of `x`, shape (n,), in order of time, and its drift; none with fewer than `FEWEST` values.

    blocks: block number of each value; consecutive values of a block (a day) may share an offset, which is no step:
    steps are those within a block, and those between blocks that last for `SHORTEST` blocks.
    Raises ValueError for an empty or non-finite sample.
    Source: penalised least squares, exactly minimised (PELT: Killick, Fearnhead and Eckley 2012; ruptures), on normal
    scores of the ranks (van der Waerden). The penalty is `STRICTNESS` · ln n · the long-run variance of a first-order
    autoregression around the levels; or that of the blocks' means, where it is larger. Levels and levels on a slope are
    compared by their penalised losses, Huber's. Place: Hansen (2000), likelihood ratio.
    """
    check_confidence(confidence)
    values = finite_sample(x)
    if values.size == 0:
        raise ValueError("a series without values has no level")
    days = _runs(values.size, blocks)
    flat = _flat(values, days)
    return _described(values, days, _with_noise(_sloped(values, days, flat), days), confidence)


@dataclass(frozen=True, eq=False)
class _Found:
    bounds: list[int]
    ranked: Floats
    variance: float
    stretched: float
    dependence: float
    slope: float = 0.0
    rival: list[int] | None = None
    """Bounds of an alternative description that is worse by less than the cost of a step: on a slope if this has none,
    else without."""

    def others(self) -> list[int]:
        steps = (self.rival or [])[1:-1]
        return [at for at in steps if all(abs(at - its) > SHORTEST for its in self.bounds[1:-1])]


def _runs(n: int, blocks: ArrayLike | None) -> NDArray[np.intp]:
    """Index of each value's block, from 0, by runs of equal numbers."""
    if blocks is None:
        return np.arange(n)
    given = np.asarray(blocks)
    if given.shape != (n,):
        raise ValueError(f"there are {n} values and blocks of shape {given.shape}")
    found: NDArray[np.intp] = np.concatenate(([0], np.cumsum(given[1:] != given[:-1])))
    return found


def _flat(values: Floats, days: NDArray[np.intp]) -> _Found:
    ranked = scores(values)
    settled = _settled(ranked, _long_run_of_blocks(ranked, days))
    bounds = _lasting(values, _refined(values, [0, *settled.places, values.size]), days, settled.stretched)
    return _Found(bounds, ranked, settled.variance, settled.stretched, settled.dependence)


@dataclass(frozen=True)
class _Settled:
    """Steps and the noise around the levels between them, estimated alternately."""

    places: list[int]
    variance: float
    dependence: float
    stretched: float


def _settled(x: Floats, at_least: float = 0.0) -> _Settled:
    """Steps of `x` and the noise between them; at_least: lower bound of its long-run variance.

    A step not removed from the noise looks like dependence, which hides it: the noise is first estimated around the
    likeliest steps, significant or not, and then around the steps found.
    """
    places = likely = likely_steps(x, SHORTEST, least=1) if x.size >= FEWEST else []
    for _ in range(ROUNDS):
        before = places
        variance, dependence = _noise(x, [0, *before, x.size])
        stretched = (1.0 + dependence) / (1.0 - dependence)
        if variance > 0.0:
            stretched = max(stretched, at_least / variance)
        places = _places(x, variance * stretched)
        if places in ([], before):
            break
    if not places and before != likely:
        variance, dependence = _noise(x, [0, *likely, x.size])
        stretched = (1.0 + dependence) / (1.0 - dependence)
        if variance > 0.0:
            stretched = max(stretched, at_least / variance)
    return _Settled(places, variance, dependence, stretched)


def _best_split(x: Floats) -> list[int]:
    """Index of the one step that explains most; empty for short series."""
    if x.size < FEWEST:
        return []
    return [SHORTEST + int(np.argmax(_gains(x)[SHORTEST - 1 : x.size - SHORTEST]))]


def _long_run_of_blocks(ranked: Floats, days: NDArray[np.intp]) -> float:
    """Long-run variance of a value from the means of its blocks; 0 with too few blocks, or with single values."""
    sizes = np.bincount(days)
    if not FEWEST <= sizes.size < ranked.size:
        return 0.0
    settled = _settled(np.bincount(days, ranked) / sizes)
    each = float(np.sum(sizes**2)) / ranked.size  # values of the block that a value is in
    return each * settled.variance * settled.stretched


def _lasting(values: Floats, bounds: list[int], days: NDArray[np.intp], stretched: float) -> list[int]:
    """Bounds without the steps that may be at an edge of a block and have fewer than `SHORTEST` blocks before or
    after."""
    edges = np.flatnonzero(np.diff(days)) + 1
    found = bounds
    for k in range(len(bounds) - 2, 0, -1):
        begin, at, end = found[k - 1 : k + 2]
        before, after = days[at - 1] - days[begin] + 1, days[end - 1] - days[at] + 1
        if min(before, after) >= SHORTEST or not edges.size:
            continue
        earliest, latest = _place(values[begin:end], at - begin, stretched, PLACED)
        first, last = min(begin + earliest, at - SHORTEST + 1), max(begin + latest, at + SHORTEST - 1)
        if bool(np.any((edges >= first) & (edges <= last))):
            found = found[:k] + found[k + 1 :]
    return found


def _sloped(values: Floats, days: NDArray[np.intp], flat: _Found) -> _Found:
    """Description by levels, or by levels on a slope if that is better."""
    n = values.size
    if n < FEWEST_FOR_DRIFT or scale_of(values, 0.0) == 0.0:
        return flat
    starts = [[0, n], flat.bounds, _likely(values, days, flat.stretched, True)]
    starts = [start for k, start in enumerate(starts) if start not in starts[:k]]
    # A line that is not taken out of the noise looks like dependence, as a step does; so does a step beside it.
    lines = [
        huber_fit(design_of(start, True), values, scale_of(values, 0.0)).coefficients[-1] for start in starts
    ]
    rests = [_flat(values - line * time_of(n), days) for line in lines]
    noise = min(flat, *rests, key=lambda found: found.stretched)
    scale, each = scale_of(values, noise.dependence), STRICTNESS * math.log(n) * noise.stretched
    sloping = SLOPE * math.log(n) * noise.stretched

    def cost(bounds: list[int], with_slope: bool) -> tuple[float, float]:
        fit = huber_fit(design_of(bounds, with_slope), values, scale)
        total = fit.cost + each * (len(bounds) - 2) + sloping * with_slope
        return total, float(fit.coefficients[-1]) if with_slope else 0.0

    level, least = flat, cost(flat.bounds, False)[0]
    # In a short series ranks and dependence may hide a step from the search, and a line is no better than that.
    lone = _lasting(values, _refined(values, [0, *_best_split(flat.ranked), n]), days, noise.stretched)
    if len(flat.bounds) == 2 < len(lone) and (total := cost(lone, False)[0]) + LONE * each < least:
        level, least = replace(flat, bounds=lone), total
    best, lowest = flat, math.inf
    for bounds in starts:
        for _ in range(ROUNDS):
            total, slope = cost(bounds, True)
            rest = _flat(values - slope * time_of(n), days)
            if total < lowest:
                best, lowest = replace(rest, bounds=bounds, slope=slope), total
            if rest.bounds == bounds:
                break
            bounds = rest.bounds
    if lowest < least + (0.0 if len(level.bounds) > 2 else sloping - each):
        if 1 < days[-1] + 1 < FEWEST:
            # Of a few days nothing tells a drift from their offsets; steps that are seen beside it stay.
            return replace(flat, bounds=best.bounds)
        others = (flat.bounds, lone, _likely(values, days, flat.stretched, False))
        rivals = [(cost(bounds, False)[0], bounds) for bounds in others if len(bounds) > 2]
        total, rival = min(rivals, default=(math.inf, []))
        return replace(best, rival=rival) if total < lowest + each else best
    return replace(level, rival=best.bounds) if lowest < least + each else level


def _likely(values: Floats, days: NDArray[np.intp], stretched: float, sloping: bool) -> list[int]:
    """Bounds of the likeliest segments, with at least one step if there is no slope."""
    n, slope = values.size, 0.0
    bounds = [0, *likely_steps(winsorised(values), SHORTEST, sloping=sloping, least=1 - sloping), n]
    if sloping:
        slope = float(huber_fit(design_of(bounds, True), values, scale_of(values, 0.0)).coefficients[-1])
    return _lasting(values - slope * time_of(n), bounds, days, stretched)


def _with_noise(found: _Found, days: NDArray[np.intp]) -> _Found:
    bounds = found.bounds
    if len(bounds) == 2:
        return found
    variance, dependence = _noise(found.ranked, bounds)
    stretched = (1.0 + dependence) / (1.0 - dependence)
    if variance > 0.0:
        stretched = max(stretched, _long_run_of_blocks(found.ranked, days) / variance)
    return replace(found, variance=variance, dependence=dependence, stretched=stretched)


def _described(values: Floats, days: NDArray[np.intp], found: _Found, confidence: float) -> StepFit:
    n, bounds, sloping = values.size, found.bounds, found.slope != 0.0
    level: Floats = values - found.slope * time_of(n)
    scale = max(scale_of(level, found.dependence), spread_of(level, bounds))
    levels = _levels(level, bounds, scale)
    noise = _around(level - np.repeat(levels, np.diff(bounds)), found, scale)
    design = design_of(bounds, sloping)
    covariance = noise.deviation**2 * noise.stretched * np.linalg.pinv(design.T @ design)
    t = t_quantile(confidence, noise.degrees)
    steps = []
    for k in range(1, len(bounds) - 1):
        begin, at, end = bounds[k - 1 : k + 2]
        size = levels[k] - levels[k - 1]
        error = math.sqrt(max(0.0, covariance[k, k] + covariance[k - 1, k - 1] - 2.0 * covariance[k, k - 1]))
        earliest, latest = _place(level[begin:end], at - begin, noise.stretched, confidence)
        p = _p(found.ranked[begin:at], found.ranked[at:end], found.variance * found.stretched, n)
        interval = Interval(size - t * error, size + t * error)
        or_drift = (
            not sloping and found.rival is not None and all(abs(at - its) > SHORTEST for its in found.rival)
        )
        steps.append(Step(at, begin + earliest, begin + latest, size, interval, p, or_drift))
    drift = None
    if sloping:
        error, whole = math.sqrt(max(0.0, covariance[-1, -1])), n - 1
        p = 2.0 * float(stdtr(noise.degrees, -abs(found.slope) / error)) if error > 0.0 else 0.0
        ends = Interval((found.slope - t * error) * whole, (found.slope + t * error) * whole)
        drift = Drift(found.slope, found.slope * whole, ends, p, tuple(found.others()))
    return StepFit(tuple(steps), noise, levels, n, drift)


def scores(values: Floats) -> Floats:
    """Normal scores of the ranks: standard normal quantiles at the ranks of the values.

    Ties are broken by lot, with a fixed seed: a few repeated values would otherwise make a distribution with tails that
    the penalty does not allow for.
    """
    lots = np.random.default_rng(0).random(values.size)
    ranks = np.empty(values.size)
    ranks[np.lexsort((lots, values))] = np.arange(values.size)
    found: Floats = ndtri((ranks + 0.5) / values.size)
    return found


def _noise(x: Floats, bounds: Sequence[int]) -> tuple[float, float]:
    """Variance and lag-1 autocorrelation around the means of the segments given by `bounds`.

    Both are corrected for the means, which follow the noise. Source: Kendall (1954) for the autocorrelation.
    """
    stretches = len(bounds) - 1
    rest = x - np.repeat([np.mean(x[a:b]) for a, b in pairwise(bounds)], np.diff(bounds))
    squares = float(np.sum(rest**2))
    within = np.ones(max(0, x.size - 1), dtype=bool)
    within[np.asarray(bounds[1:-1], dtype=np.intp) - 1] = False
    if squares == 0.0 or not within.any():
        return squares / x.size, 0.0
    seen = float(np.mean((rest[1:] * rest[:-1])[within])) * x.size / squares
    corrected = (x.size * seen + stretches) / max(1, x.size - 3 * stretches)
    dependence = min(MOST_DEPENDENT, max(0.0, corrected))
    free = x.size - stretches * (1.0 + dependence) / (1.0 - dependence)
    return squares / max(free, x.size / MOST_HIDDEN), dependence


def _places(ranked: Floats, long_run: float) -> list[int]:
    """Indices of the begins of segments, except the first."""
    if ranked.size < FEWEST or long_run <= 0.0:
        return []
    from ruptures.detection.kernelcpd import KernelCPD

    penalty = STRICTNESS * math.log(ranked.size) * long_run
    found = KernelCPD(kernel="linear", min_size=SHORTEST).fit(ranked.reshape(-1, 1)).predict(pen=penalty)
    return [int(place) for place in found[:-1]]


def _refined(values: Floats, bounds: list[int]) -> list[int]:
    """Bounds with each step moved to where the distances of the values from the medians before and after are least.

    Ranks compress a large step: the first value after it may look as if it were before.
    """
    for k in range(1, len(bounds) - 1):
        begin, at, end = bounds[k - 1 : k + 2]
        before, after = np.median(values[begin:at]), np.median(values[at:end])
        gains = np.abs(values[begin:end] - before) - np.abs(values[begin:end] - after)
        behind = np.cumsum(gains[::-1])[::-1][SHORTEST : end - begin - SHORTEST + 1]
        nearest = np.argsort(np.abs(np.arange(behind.size) + begin + SHORTEST - at), kind="stable")
        bounds[k] = begin + SHORTEST + int(nearest[np.argmax(behind[nearest])])
    return bounds


def _levels(values: Floats, bounds: list[int], scale: float) -> tuple[float, ...]:
    means = tuple(float(np.mean(values[a:b])) for a, b in pairwise(bounds))
    if scale == 0.0 or np.array_equal(values, np.repeat(means, np.diff(bounds))):
        return means
    return tuple(huber_fit(design_of(bounds, False), values, scale).coefficients.tolist())


def _around(rest: Floats, found: _Found, scale: float) -> Noise:
    """Noise that determines the levels' uncertainty. Source: Huber (1981), section 7.6: covariance of a fit."""
    parameters = len(found.bounds) - 1 + (found.slope != 0.0)
    degrees = max(1.0, rest.size - parameters * found.stretched)
    worth = max(1.0, degrees / found.stretched)
    # Dependence hides a part of the spread, of which so short a series does not show how large it is.
    counted = max(degrees, rest.size / MOST_HIDDEN)
    unit = scale or float(np.max(np.abs(rest)))
    if unit == 0.0:
        return Noise(0.0, found.dependence, worth, found.stretched, 0.0)
    off = np.abs(rest) / unit
    near = max(1.0 / rest.size, float(np.mean(off <= BEND)))
    correction = (1.0 + parameters / rest.size * (1.0 - near) / near) / near
    deviation = unit * correction * math.sqrt(float(np.sum(np.minimum(off, BEND) ** 2)) / counted)
    plain = math.sqrt(float(np.sum((rest / unit) ** 2)) / counted) * unit
    return Noise(deviation, found.dependence, worth, found.stretched, max(deviation, plain))


def _gains(x: Floats) -> Floats:
    """Reduction of the sum of squares by a second mean, shape (n - 1,), by the index of its begin."""
    at, sums = np.arange(1, x.size), np.cumsum(x)
    found: Floats = (sums[:-1] * x.size - at * sums[-1]) ** 2 / (at * (x.size - at) * x.size)
    return found


def _p(before: Floats, after: Floats, long_run: float, looks: int) -> float:
    gain = float(_gains(np.concatenate((before, after)))[before.size - 1])
    return min(1.0, looks * 2.0 * float(ndtr(-math.sqrt(gain / long_run))))


def _place(x: Floats, at: int, stretched: float, confidence: float) -> tuple[int, int]:
    """Interval of indices whose likelihood ratio to the best is large enough, with outliers winsorised."""
    before, after = np.median(x[:at]), np.median(x[at:])
    if before == after:
        return at, at
    share = np.clip((x - before) / (after - before), -1.0, 2.0)
    variance = float(np.mean((share - (np.arange(x.size) >= at)) ** 2)) * stretched
    limit = -2.0 * math.log(1.0 - math.sqrt(confidence)) * variance
    gains = _gains(share)
    likely = np.flatnonzero(gains >= gains.max() - limit) + 1
    return int(min(likely[0], at)), int(max(likely[-1], at))
