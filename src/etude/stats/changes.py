"""Where a series of levels steps: changes of its level that stay, told from noise that may be dependent and wild.

The noise is judged by the ranks of the values, so that no outlier is a step, and by what neighbours have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from etude.stats.intervals import Interval, t_quantile
from etude.stats.samples import check_confidence, finite_sample

Floats = NDArray[np.float64]

SHORTEST = 3
"""Values of a stretch between two steps; fewer are taken for outliers."""

FEWEST = 2 * SHORTEST
"""Values of a series in which a step can be seen."""

STRICTNESS = 3.0
"""A step has to explain this times ln n times the variance of the noise; what that costs is in docs/history.md."""

MOST_DEPENDENT = 0.9
"""Autocorrelations above this are taken as this: beyond, a drift and a step are not told apart."""


@dataclass(frozen=True)
class Noise:
    """What varies around the levels, in the unit of the values."""

    deviation: float
    """Standard deviation of a value around the level of its stretch."""
    dependence: float
    """Autocorrelation of neighbours, 0 to 0.9, as of a first-order autoregression."""
    degrees: float
    """Of freedom of the deviation."""

    @property
    def stretched(self) -> float:
        """By how much dependence stretches the variance of a mean."""
        return (1.0 + self.dependence) / (1.0 - self.dependence)

    def error(self, before: int, after: int) -> float:
        """Standard error of a difference between the means of so many values each."""
        return self.deviation * math.sqrt(self.stretched * (1.0 / before + 1.0 / after))


@dataclass(frozen=True)
class Step:
    """One change of the level."""

    at: int
    """Place of the first value of the new level."""
    earliest: int
    """It begins between here …"""
    latest: int
    """… and here, with the confidence that was asked for."""
    size: float
    """Difference of the means of the stretches after and before, in the unit of the values."""
    interval: Interval
    """Of the size."""
    p: float
    """Two-sided, of no step, times the places at which one was looked for; at most 1."""


@dataclass(frozen=True)
class Stepped:
    """A series as stretches of one level each."""

    steps: tuple[Step, ...]
    noise: Noise
    levels: tuple[float, ...]
    """Means of the stretches, one more than steps."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each stretch begins."""
        return (0, *(step.at for step in self.steps))


def stepped(x: ArrayLike, *, confidence: float = 0.95) -> Stepped:
    """The steps of `x`, shape (n,), in order of time; none where there are fewer than `FEWEST` values.

    Raises ValueError for no values, or values that are not finite.
    Source: penalised least squares, exactly minimised (PELT: Killick, Fearnhead and Eckley 2012; ruptures), on normal
    scores of the ranks (van der Waerden). The penalty is `STRICTNESS` · ln n · the long-run variance of a first-order
    autoregression, from differences at lags 1 and 2, which steps hardly change. Place: Hansen (2000), likelihood ratio.
    """
    check_confidence(confidence)
    values = finite_sample(x)
    if values.size == 0:
        raise ValueError("a series without values has no level")
    ranked = scores(values)
    variance, dependence = _noise(ranked)
    long_run = variance * (1.0 + dependence) / (1.0 - dependence)
    bounds = _refined(values, [0, *_places(ranked, long_run), values.size])
    levels = tuple(float(np.mean(values[a:b])) for a, b in pairwise(bounds))
    noise = _around(values, bounds, levels, dependence)
    steps = []
    for k in range(1, len(bounds) - 1):
        begin, at, end = bounds[k - 1 : k + 2]
        size = levels[k] - levels[k - 1]
        half = t_quantile(confidence, noise.degrees) * noise.error(at - begin, end - at)
        earliest, latest = _place(values[begin:end], at - begin, noise.stretched, confidence)
        p = _p(ranked[begin:at], ranked[at:end], long_run, values.size)
        interval = Interval(size - half, size + half)
        steps.append(Step(at, begin + earliest, begin + latest, size, interval, p))
    return Stepped(tuple(steps), noise, levels)


def scores(values: Floats) -> Floats:
    """Normal scores of the ranks: what values of a normal distribution, of mean 0 and variance 1, would be there.

    Among equal values lots are drawn, the same each time: a few values that come again and again would else be taken
    for a distribution whose tails no penalty is made for.
    """
    lots = np.random.default_rng(0).random(values.size)
    ranks = np.empty(values.size)
    ranks[np.lexsort((lots, values))] = np.arange(values.size)
    found: Floats = ndtri((ranks + 0.5) / values.size)
    return found


def _noise(x: Floats) -> tuple[float, float]:
    """Variance v and autocorrelation r of the noise, from differences at lags 1 and 2.

    Half of their mean squares are v(1 - r) and v(1 - r²).
    """
    if x.size < 3:
        return 0.0, 0.0
    one, two = (float(np.mean((x[lag:] - x[:-lag]) ** 2)) / 2.0 for lag in (1, 2))
    dependence = min(MOST_DEPENDENT, max(0.0, two / one - 1.0)) if one > 0.0 else 0.0
    return one / (1.0 - dependence), dependence


def _places(ranked: Floats, long_run: float) -> list[int]:
    """Where stretches begin, but the first."""
    if ranked.size < FEWEST or long_run <= 0.0:
        return []
    from ruptures.detection.kernelcpd import KernelCPD

    penalty = STRICTNESS * math.log(ranked.size) * long_run
    found = KernelCPD(kernel="linear", min_size=SHORTEST).fit(ranked.reshape(-1, 1)).predict(pen=penalty)
    return [int(place) for place in found[:-1]]


def _refined(values: Floats, bounds: list[int]) -> list[int]:
    """Each step moved to where the values' distances from the medians before and after it are least.

    Ranks squeeze a large step: the nearest value behind it may look as if it stood before.
    """
    for k in range(1, len(bounds) - 1):
        begin, at, end = bounds[k - 1 : k + 2]
        before, after = np.median(values[begin:at]), np.median(values[at:end])
        gains = np.abs(values[begin:end] - before) - np.abs(values[begin:end] - after)
        behind = np.cumsum(gains[::-1])[::-1][SHORTEST : end - begin - SHORTEST + 1]
        nearest = np.argsort(np.abs(np.arange(behind.size) + begin + SHORTEST - at), kind="stable")
        bounds[k] = begin + SHORTEST + int(nearest[np.argmax(behind[nearest])])
    return bounds


def _around(values: Floats, bounds: list[int], levels: tuple[float, ...], dependence: float) -> Noise:
    lengths = np.diff(bounds)
    rest = values - np.repeat(levels, lengths)
    degrees = values.size - len(levels)
    if degrees < 1:
        return Noise(0.0, dependence, 1.0)
    worth = max(1.0, degrees * (1.0 - dependence) / (1.0 + dependence))
    scale = float(np.max(np.abs(rest)))
    if scale == 0.0:
        return Noise(0.0, dependence, worth)
    return Noise(scale * math.sqrt(float(np.sum((rest / scale) ** 2)) / degrees), dependence, worth)


def _gain(x: Floats, at: int) -> float:
    """By how much the squares around one mean exceed those around two."""
    before, after = x[:at], x[at:]
    return before.size * after.size / x.size * float(after.mean() - before.mean()) ** 2


def _p(before: Floats, after: Floats, long_run: float, looks: int) -> float:
    gain = _gain(np.concatenate((before, after)), before.size)
    return min(1.0, looks * 2.0 * float(ndtr(-math.sqrt(gain / long_run))))


def _place(x: Floats, at: int, stretched: float, confidence: float) -> tuple[int, int]:
    """Ends of the places whose likelihood ratio to the best is not too small, outliers drawn in."""
    before, after = np.median(x[:at]), np.median(x[at:])
    if before == after:
        return at, at
    share = np.clip((x - before) / (after - before), -1.0, 2.0)
    variance = float(np.mean((share - (np.arange(x.size) >= at)) ** 2)) * stretched
    limit = -2.0 * math.log(1.0 - math.sqrt(confidence)) * variance
    n = np.arange(1, x.size)
    sums = np.cumsum(share)
    gains = (sums[:-1] * x.size - n * sums[-1]) ** 2 / (n * (x.size - n) * x.size)
    likely = np.flatnonzero(gains >= gains.max() - limit) + 1
    return int(min(likely[0], at)), int(max(likely[-1], at))
