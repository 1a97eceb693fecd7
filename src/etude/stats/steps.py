"""Features of a rate over sizes that a line hides: steep steps between neighbours, and variable points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etude.stats.samples import check_positive, finite_sample, positive_logarithms

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
