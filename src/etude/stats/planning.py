"""Planning from a pilot: trials and hours needed for an effect of a given size, or the effect detectable by a deadline.

A comparison of two tests is planned on logarithms. The spread of the pilot is taken as true: a pilot of ten trials
determines it within a factor of about two, and so the number of trials within a factor of four.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, nctdtr

from etude.stats.intervals import effective_count, t_quantile
from etude.stats.moments import deviation_of
from etude.stats.samples import check_confidence, check_positive, finite_sample, positive_logarithms
from etude.stats.twosample import smallest_found

MOST = 10**7
"""Maximum trials of a test in a plan."""

FEWEST_IN_PILOT = 5


@dataclass(frozen=True)
class Noise:
    """Noise of a planned comparison, from a pilot."""

    deviation: float
    """Standard deviation of one log ratio (paired), or of the logarithm of one trial (unpaired)."""
    likely: tuple[float, float]
    """80 % interval of the deviation."""
    design: Literal["paired", "unpaired"]
    worth: float
    """Effective number of independent trials per trial, at most 1."""
    seconds_per_trial: float
    """Time of one trial of one test, including overhead."""


@dataclass(frozen=True)
class Plan:
    """Trials of either of two tests, their cost and detectable effect."""

    trials: int
    hours: float
    """Hours for both tests."""
    effect: float
    """Relative difference that is detected with probability `power`: 0.01 is 1 %."""
    power: float
    likely_trials: tuple[int, int] | None
    """Trials by the interval of the spread; None if the trials were given."""


def noise_of_pairs(base: ArrayLike, other: ArrayLike, *, seconds_per_trial: float) -> Noise:
    """Noise from a pilot in blocks, shapes (n,), n >= 5, positive. Raises ValueError otherwise, or without
    variation."""
    lower, upper = positive_logarithms(base), positive_logarithms(other)
    if lower.size != upper.size:
        raise ValueError(f"pairs need equally many values, not {lower.size} and {upper.size}")
    return _noise([upper - lower], "paired", seconds_per_trial)


def noise_of_trials(*samples: ArrayLike, seconds_per_trial: float) -> Noise:
    """Noise from one or two pilots not in blocks, at least 5 values each; pooled, or assumed equal for the other
    test."""
    return _noise([positive_logarithms(x) for x in samples], "unpaired", seconds_per_trial)


def plan_for_effect(
    noise: Noise, effect: float, *, power: float = 0.8, confidence: float = 0.95
) -> Plan | None:
    """Minimum trials of either test that detect a true difference of `effect` (0.01: 1 %).

    None if that is more than ten million. Detected: significant in the two-sided t test at 1 - confidence, with
    probability `power`. Source: noncentral t, scipy.special.nctdtr.
    """
    check_positive("effect", effect)
    _check(power, confidence)

    def needed(spread: float) -> int | None:
        return _fewest(lambda n: _power(n, noise, spread, effect, confidence) >= power)

    count, fewer, more = needed(noise.deviation), needed(noise.likely[0]), needed(noise.likely[1])
    if count is None:
        return None
    likely = None if fewer is None else (fewer, MOST if more is None else more)
    return Plan(count, _hours(count, noise), effect, power, likely)


def plan_for_deadline(
    noise: Noise, hours: float, *, power: float = 0.8, confidence: float = 0.95
) -> Plan | None:
    """Trials of either test that fit into `hours`, and the smallest effect that they detect.

    None if fewer than two trials of either test fit.
    """
    check_positive("hours", hours)
    _check(power, confidence)
    count = int(min(hours * 3600.0 / (2.0 * noise.seconds_per_trial) + 1e-9, MOST))
    if count < 2:
        return None
    error, degrees = _error(count, noise, noise.deviation)
    found = smallest_found(error, degrees, 1.0 - confidence, power)
    effect = math.expm1(found) if found < 700.0 else math.inf
    return Plan(count, _hours(count, noise), effect, power, None)


def trials_for_mean(
    x: ArrayLike, precision: float, *, confidence: float = 0.95, factor: float = 1.0
) -> int | None:
    """Total trials until the mean's margin of error is below `precision`·|mean|; None above ten million.

    x: a pilot, shape (n,), n >= 5, whose mean is not zero. factor: widening factor of the stop rule. Half of all
    experiments need more: the width is computed from the pilot's deviation.
    """
    check_positive("precision", precision)
    check_positive("factor", factor)
    check_confidence(confidence)
    values = finite_sample(x)
    _check_pilot(values.size)
    scale = float(np.max(np.abs(values)))
    mean = abs(float(np.mean(values / scale))) if scale else 0.0
    if mean == 0.0:
        raise ValueError("a precision relative to the mean needs a mean other than zero")
    worth = effective_count(values / scale) / values.size
    spread = factor * deviation_of(values / scale) / math.sqrt(worth)
    return _fewest(
        lambda n: t_quantile(confidence, n - 1) * spread / math.sqrt(n) < precision * mean or spread == 0.0
    )


def likely_factors(degrees: int) -> tuple[float, float]:
    """80 % interval of a standard deviation with so many degrees of freedom, as factors of its estimate."""
    low, high = (math.sqrt(degrees / float(chdtri(degrees, tail))) for tail in (0.1, 0.9))
    return low, high


def _noise(
    samples: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]],
    design: Literal["paired", "unpaired"],
    seconds_per_trial: float,
) -> Noise:
    check_positive("seconds_per_trial", seconds_per_trial)
    if not samples:
        raise ValueError("a plan needs a pilot")
    for sample in samples:
        _check_pilot(sample.size)
    degrees = sum(sample.size - 1 for sample in samples)
    squares = math.fsum((sample.size - 1) * deviation_of(sample) ** 2 for sample in samples)
    deviation = math.sqrt(squares / degrees)
    if deviation == 0.0:
        raise ValueError("the pilot does not vary: nothing can be planned by it")
    low, high = (deviation * end for end in likely_factors(degrees))
    worth = min(effective_count(sample) / sample.size for sample in samples)
    return Noise(deviation, (low, high), design, worth, seconds_per_trial)


def _error(count: int, noise: Noise, deviation: float) -> tuple[float, float]:
    """Standard error of the log ratio of two tests of `count` trials, and its degrees of freedom."""
    worth = count * noise.worth
    if noise.design == "paired":
        return deviation / math.sqrt(worth), count - 1.0
    return deviation * math.sqrt(2.0 / worth), 2.0 * count - 2.0


def _power(count: int, noise: Noise, deviation: float, effect: float, confidence: float) -> float:
    error, degrees = _error(count, noise, deviation)
    limit = t_quantile(confidence, degrees)
    away = math.log1p(effect) / error
    if away > limit + 30.0:
        return 1.0
    return 1.0 - float(nctdtr(degrees, away, limit))


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The smallest count from 2 to MOST that is enough, for a monotone condition; None if there is none."""
    high = 2
    while not enough(high):
        if high >= MOST:
            return None
        high = min(2 * high, MOST)
    low = 1 if high == 2 else high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _hours(count: int, noise: Noise) -> float:
    return 2.0 * count * noise.seconds_per_trial / 3600.0


def _check_pilot(size: int) -> None:
    if size < FEWEST_IN_PILOT:
        raise ValueError(f"a plan needs a pilot of {FEWEST_IN_PILOT} or more trials, not {size}")


def _check(power: float, confidence: float) -> None:
    check_confidence(confidence)
    check_confidence(power)
    if power <= 1.0 - confidence:
        raise ValueError(f"power must be above the level of the test ({1.0 - confidence:g}), not {power}")
