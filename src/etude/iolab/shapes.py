"""The shapes of the curves of a sweep over buffers, as data: peaks, plateaus, steps, scatter, and where they part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.iolab.points import Points, Swept
from etude.results.series import Floats
from etude.stats import crossings
from etude.stats.resampling import resampled_medians

NEAR_PEAK = 0.95
PARTED = 1.05


@dataclass(frozen=True)
class Step:
    """The factor of the rate from one size to the next."""

    first: float
    second: float
    ratio: float


@dataclass(frozen=True)
class Scatter:
    """A size whose trials differ more than elsewhere: the distance of their quartiles over the median."""

    size: float
    spread: float


@dataclass(frozen=True)
class Shape:
    """One curve. Sizes in bytes, rates in B/s."""

    curve: str
    peak_at: float
    peak: float
    low: float
    """Smallest size of the range, up to `high`, whose medians are within 5 % of the peak."""
    high: float
    half_at: float | None
    """Size at which half of the peak is first reached; None where the curve begins above it."""
    steps: tuple[Step, ...]
    scatter: tuple[Scatter, ...]
    usual_spread: float
    """Spread at the median size."""


@dataclass(frozen=True)
class Parting:
    """A curve beside that of the untouched buffer."""

    curve: str
    size: float
    """The largest that both have."""
    ratio: float
    """Speedup there, by the medians."""
    ratio_low: float | None
    """Its 95 % interval, by medians of values drawn anew; None below four trials."""
    ratio_high: float | None
    at: float | None
    """Smallest size from which the curve is quicker by more than 5 %, by the medians."""
    low: float | None
    """The 95 % interval of that; None where it is open, which `why` explains."""
    high: float | None
    why: str | None


@dataclass(frozen=True)
class Growth:
    """The size from which on no larger one has a median more than 5 % above."""

    curve: str
    at: float
    rate: float
    """Median there, B/s."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval of `at`, sizes that were measured; None below four trials."""
    first: float
    last: float
    """The smallest and the largest size measured."""


def growth_of(curve: Points) -> Growth:
    """The end of a curve's growth, with its interval by medians of trials drawn anew."""
    sizes, medians = curve.sizes, curve.medians
    at = int(_ends_of_growth(medians[np.newaxis])[0])
    low = high = None
    if min(values.size for values in curve.samples) >= crossings.FEWEST_TRIALS:
        drawn = resampled_medians(curve.samples, crossings.DRAWS, np.random.default_rng(0))
        ends = np.quantile(_ends_of_growth(drawn), (0.025, 0.975), method="inverted_cdf").astype(int)
        low, high = (float(sizes[place]) for place in (min(ends[0], at), max(ends[1], at)))
    return Growth(
        curve.name, float(sizes[at]), float(medians[at]), low, high, float(sizes[0]), float(sizes[-1])
    )


def _ends_of_growth(medians: Floats) -> NDArray[np.intp]:
    """Place of the first size within 5 % of the largest median from it on; medians of shape (draws, sizes)."""
    largest = np.maximum.accumulate(medians[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((medians >= NEAR_PEAK * largest).argmax(axis=1))


def shape_of(curve: Points) -> Shape:
    """The shape of a curve with two sizes or more."""
    medians, sizes = curve.medians, curve.sizes
    best = int(medians.argmax())
    near = np.flatnonzero(medians >= NEAR_PEAK * medians[best])
    first, last = _plateau(near, best)
    low, high = curve.quartiles
    spread = (high - low) / medians
    found = crossings.steps(np.log2(sizes), medians, low, high)
    return Shape(
        curve.name,
        float(sizes[best]),
        float(medians[best]),
        float(sizes[first]),
        float(sizes[last]),
        _reaches(curve, float(medians[best]) / 2),
        tuple(
            Step(float(sizes[n]), float(sizes[n + 1]), float(medians[n + 1] / medians[n]))
            for n in found.steep
        ),
        tuple(Scatter(float(sizes[n]), float(spread[n])) for n in found.variable),
        float(np.median(spread)),
    )


def _plateau(near: np.ndarray, best: int) -> tuple[int, int]:
    low = high = best
    while low - 1 in near:
        low -= 1
    while high + 1 in near:
        high += 1
    return low, high


def _reaches(curve: Points, rate: float) -> float | None:
    """Size at which the curve first reaches a rate, interpolated on logarithms; None where it begins above."""
    medians = curve.medians
    above = int((medians >= rate).argmax())
    if above == 0:
        return None
    x, y = np.log2(curve.sizes), np.log2(medians)
    part = (np.log2(rate) - y[above - 1]) / (y[above] - y[above - 1])
    return float(np.exp2(x[above - 1] + part * (x[above] - x[above - 1])))


def partings_of(swept: Swept) -> tuple[Parting, ...]:
    """Sizes from which a buffer pays whose pages are there already, or are huge; empty without an untouched one."""
    plain = swept.curve("untouched")
    found = []
    for other in (swept.curve("touched"), swept.curve("huge")):
        if plain is None or other is None:
            continue
        common = np.intersect1d(plain.sizes, other.sizes)
        if common.size >= 2:
            found.append(_parting(plain, other, common))
    return tuple(found)


def _parting(plain: Points, other: Points, common: np.ndarray) -> Parting:
    slower = [PARTED * plain.at(size) for size in common]
    found = crossings.crossing(common, [other.at(size) for size in common], slower, 1.0)
    largest = float(common[-1])
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    samples = other.at(largest), plain.at(largest)
    ratio = float(np.median(samples[0]) / np.median(samples[1]))
    ends: tuple[float | None, float | None] = (None, None)
    if min(sample.size for sample in samples) >= crossings.FEWEST_TRIALS:
        drawn = resampled_medians(samples, crossings.DRAWS, np.random.default_rng(0))
        first, last = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
        ends = float(first), float(last)
    why = None if found.interval else crossings.without_size(found)
    return Parting(other.name, largest, ratio, *ends, found.at, low, high, why)
