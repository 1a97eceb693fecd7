"""Shape of a sample: outliers (flagged, never deleted), bimodal, not normal, or in multiples of a clock's tick."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from etude.stats.samples import finite_sample

MINIMUM_BIMODAL = 10
"""Minimum sample size for groups."""

SMALLER_SHARE = 0.10
"""Minimum share of the smaller group, at least two values; fewer are outliers."""

MOST_FOR_NORMALITY = 5000
"""Maximum sample size for Shapiro's and Wilk's p."""

POWER_OF_NORMALITY: tuple[tuple[int, float], ...] = (
    (3, 0.05),
    (5, 0.06),
    (7, 0.09),
    (10, 0.12),
    (15, 0.18),
    (20, 0.24),
    (25, 0.30),
    (30, 0.36),
    (40, 0.45),
    (50, 0.56),
    (75, 0.74),
    (100, 0.86),
)
"""Power of Shapiro's and Wilk's test at 5 % for n log-normal values with cv 30 %; bench/statistics."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Groups:
    """Two groups of values, in their unit, the lower one first."""

    counts: tuple[int, int]
    centres: tuple[float, float]
    """Means of the groups."""
    gap: tuple[float, float]
    """The largest value of the lower and the smallest of the upper group."""
    distance: float
    """Distance of the centres, in standard deviations within the groups."""


@dataclass(frozen=True)
class Normality:
    """Shapiro's and Wilk's test, and its power at this n."""

    p: float
    power: float
    """Probability to detect, at 5 %, that this many values are log-normal with a coefficient of variation of 30 %.

    If it is low, a large p has little meaning.
    """


@dataclass(frozen=True)
class Ticks:
    """The step that all values are multiples of, in their unit."""

    step: float
    share: float
    """The step as a fraction of the median; infinite for a median of zero."""
    coarse: bool
    """True if the step is as large as the spread: rounding causes much of the variation, or hides it."""


def groups(x: ArrayLike, *, step: float | None = None) -> Groups | None:
    """Two groups of the values of `x`, shape (n,); None if they are not clearly bimodal.

    The split has the least sum of squares, with at least 10 % of the values (and two) on either side. The values are
    bimodal if the centres are 3.4 + 17/√n deviations apart, which happens by chance in about 1 % of samples from an
    exponential distribution and more rarely in normal, uniform or log-normal ones (bench/statistics).
    step: clock tick, else the one that all values are multiples of; values that differ by a tick are no groups.
    """
    values = np.sort(finite_sample(x))
    if step is None:
        found = ticks(values)
        step = found.step if found else 0.0
    n = values.size
    if n < MINIMUM_BIMODAL or values[0] == values[-1]:
        return None
    scale = float(np.max(np.abs(values)))
    scaled = values / scale
    fewest = max(2, math.ceil(SMALLER_SHARE * n))
    cuts = np.arange(fewest, n - fewest + 1)
    cut, within = _best_cut(scaled, cuts)
    low, high = float(scaled[:cut].mean()), float(scaled[cut:].mean())
    spread = math.sqrt(within / (n - 2) + (step / scale) ** 2 / 12.0)
    distance = (high - low) / spread if spread > 1e-15 * (high - low) else math.inf
    if scaled[cut - 1] == scaled[cut] or distance < 3.4 + 17.0 / math.sqrt(n):
        return None
    return Groups(
        (int(cut), int(n - cut)),
        (low * scale, high * scale),
        (float(values[cut - 1]), float(values[cut])),
        distance,
    )


def normality(x: ArrayLike) -> Normality | None:
    """Test of normality of `x`, shape (n,), by Shapiro and Wilk.

    None below three values, above 5000, and if all are equal. It assumes independent values.
    Source: Royston (1995), "Remark AS R94", as scipy.stats.shapiro, which takes a second to import; its power is
    simulated, see POWER_OF_NORMALITY.
    """
    values = finite_sample(x)
    if not 3 <= values.size <= MOST_FOR_NORMALITY:
        return None
    middle = values / float(np.max(np.abs(values)) or 1.0)
    middle = middle - np.median(middle)
    spread = float(np.max(np.abs(middle)))
    if spread == 0.0:
        return None
    counts, powers = zip(*POWER_OF_NORMALITY, strict=True)
    power = float(np.interp(values.size, counts, powers)) if values.size <= counts[-1] else powers[-1]
    return Normality(_shapiro_wilk_p(np.sort(middle / spread)), power)


def ticks(x: ArrayLike) -> Ticks | None:
    """Common step of the values of `x`, shape (n,), in time or another quantity that is counted in steps.

    It is found from the values: the largest number that all are multiples of. None if there is no such step above 1e-9
    of the largest value, or fewer than three values. (If all values are equal, the value itself is the step.)
    Source: Euclid's algorithm with a tolerance; rounding to a step adds a variance of step²/12 (Sheppard).
    """
    values = finite_sample(x)
    if values.size < 3 or not values.any():
        return None
    step = _common_step(np.abs(np.unique(values)))
    if step is None:
        return None
    scale = float(np.max(np.abs(values)))
    median = abs(float(np.median(values / scale)))
    deviation = float(np.std(values / scale, ddof=1))
    return Ticks(
        step=step,
        share=_quotient(step / scale, median),
        coarse=step / scale >= deviation,
    )


def _shapiro_wilk_p(ordered: Floats) -> float:
    """Shapiro's and Wilk's p of three or more values in rising order, by Royston's approximations."""
    n = ordered.size
    weights = _shapiro_wilk_weights(n)
    values = ordered - ordered.mean()
    values /= math.sqrt(float(values @ values))
    # 1 - W from differences keeps the digits of a W near 1.
    lost = float(np.sum((values - weights) ** 2)) / 2.0 * (1.0 + float(weights @ values))
    if n == 3:
        p = 6.0 / math.pi * (math.asin(math.sqrt(max(1.0 - lost, 0.0))) - math.asin(math.sqrt(0.75)))
        return min(max(p, 0.0), 1.0)
    if lost <= 0.0:
        return 1.0
    y = math.log(lost)
    if n <= 11:
        gamma = np.polyval((0.459, -2.273), n)
        if y >= gamma:
            return 0.0
        y = -math.log(gamma - y)
        mean = np.polyval((-6.714e-4, 0.025054, -0.39978, 0.544), n)
        spread = math.exp(np.polyval((-0.0020322, 0.062767, -0.77857, 1.3822), n))
    else:
        mean = np.polyval((0.0038915, -0.083751, -0.31082, -1.5861), math.log(n))
        spread = math.exp(np.polyval((0.0030302, -0.082676, -0.4803), math.log(n)))
    return float(ndtr((mean - y) / spread))


@lru_cache(maxsize=8)
def _shapiro_wilk_weights(n: int) -> Floats:
    """Royston's weights of the ordered values, shape (n,), antisymmetric, of length 1. Read-only."""
    if n == 3:
        return np.array((-math.sqrt(0.5), 0.0, math.sqrt(0.5)))
    scores = ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    total = float(scores @ scores)
    root = 1.0 / math.sqrt(n)
    last = scores[-1] / math.sqrt(total) + np.polyval(
        (-2.706056, 4.434685, -2.07119, -0.147981, 0.221157, 0.0), root
    )
    ends = [last]
    if n > 5:
        small = (-3.582633, 5.682633, -1.752461, -0.293762, 0.042981, 0.0)
        ends.append(scores[-2] / math.sqrt(total) + np.polyval(small, root))
    left = total - 2.0 * sum(float(s) ** 2 for s in scores[::-1][: len(ends)])
    weights: Floats = scores / math.sqrt(left / (1.0 - 2.0 * sum(float(e) ** 2 for e in ends)))
    for place, weight in enumerate(ends):
        weights[place], weights[-1 - place] = -weight, weight
    return weights / math.sqrt(float(weights @ weights))


def _best_cut(ordered: Floats, cuts: NDArray[np.intp]) -> tuple[int, float]:
    """Cut with the least sum of squares within two groups, and that sum."""
    centred = ordered - ordered.mean()
    sums, n = np.cumsum(centred), ordered.size
    lower = sums[cuts - 1]
    upper = sums[-1] - lower
    explained = lower**2 / cuts + upper**2 / (n - cuts)
    cut = int(cuts[int(np.argmax(explained))])
    within = sum(float(np.sum((part - part.mean()) ** 2)) for part in (ordered[:cut], ordered[cut:]))
    return cut, within


def _common_step(values: Floats) -> float | None:
    """Greatest common divisor of the positive values; None if there is none above the tolerance."""
    values = values[values > 0.0]
    tolerance = 1e-9 * float(values.max())
    if tolerance == 0.0 or float(values.min()) <= 10.0 * tolerance:
        return None
    step = 0.0
    for value in values.tolist():
        step = _divisor(step, value, tolerance)
        if step <= 10.0 * tolerance:
            return None
        step = value / round(value / step)  # avoids the accumulated rounding errors of Euclid's remainders
    return step


def _divisor(a: float, b: float, tolerance: float) -> float:
    while b > tolerance:
        rest = math.fmod(a, b)
        a, b = b, 0.0 if b - rest <= tolerance else rest
    return a


def _quotient(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return math.inf


MINIMUM = 5
"""Minimum sample size for outliers."""

MOST_SUSPECTS = 500
"""Maximum number of suspects in one sample, which bounds the time."""


def count_outliers(x: ArrayLike, *, level: float = 0.05) -> int:
    """Number of outliers of `x`, shape (n,): generalised ESD on the logarithms.

    Plain values are used if any is zero or below. At most max(1, n//4) values, and never more than 500,
    are suspected. Always 0 below five values.
    Source: Rosner (1983), "Percentage points for a generalized ESD many-outlier procedure". Logarithms
    keep the skew of times from being flagged.
    """
    return int(outlier_places(x, level=level).size)


def outlier_places(x: ArrayLike, *, level: float = 0.05) -> NDArray[np.intp]:
    """Indices, in order, of the outliers of `x`, shape (n,), counted by `count_outliers`."""
    values = finite_sample(x)
    if values.size < MINIMUM:
        return np.empty(0, dtype=np.intp)
    if bool(np.all(values > 0.0)):
        values = np.log(values)
    order = np.argsort(values, kind="stable")
    below, above = _generalised_esd(values[order], min(max(1, values.size // 4), MOST_SUSPECTS), level)
    return np.sort(np.concatenate((order[:below], order[order.size - above :])))


def _generalised_esd(ordered: NDArray[np.float64], suspects: int, level: float) -> tuple[int, int]:
    """Number of outliers at either end: the largest number of removals whose last one exceeds its critical value."""
    values = (ordered - ordered.mean()).tolist()
    critical = _critical_values(len(values), suspects, level)
    low, high, found = 0, len(values) - 1, (0, 0)
    total, squares = math.fsum(values), math.fsum(v * v for v in values)
    for removed in range(1, suspects + 1):
        n = high - low + 1
        mean = total / n
        variance = (squares - n * mean * mean) / (n - 1)
        if values[low] == values[high] or variance <= 0.0:
            break
        below, above = mean - values[low], values[high] - mean
        gone = values[low] if below > above else values[high]
        low, high = (low + 1, high) if below > above else (low, high - 1)
        if max(below, above) > critical[removed - 1] * math.sqrt(variance):
            found = (low, len(values) - 1 - high)
        total, squares = total - gone, squares - gone * gone
    return found


@lru_cache(maxsize=16)
def _critical_values(n: int, suspects: int, level: float) -> tuple[float, ...]:
    """Critical values at `level` of the largest deviation of n, n - 1, … normal values, in standard deviations."""
    left = n - np.arange(suspects)
    t = stdtrit(left - 2, 1.0 - level / (2.0 * left))
    return tuple(((left - 1) * t / np.sqrt((left - 2 + t * t) * left)).tolist())
