"""Level shift at the begin or the end of a series of trials. It is a diagnosis: nothing is ever deleted.

It is for complete series. Within a stop rule either detector is harmful, because it takes a few slow trials at the
beginning for a warm-up: docs/explanation/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from etude.stats.samples import check_positive, finite_sample
from etude.stats.trend import trend_p

MINIMUM = 10
"""Minimum length of a series."""

FROM_PELT = 30
"""Number of trials from which on change points are searched; below, a single change only."""

LEVEL = 0.03
"""False-positive rate for normal series below `FROM_PELT` trials."""

SHORTEST_END = 2
"""Minimum trials before or after the change of a series below `FROM_PELT` trials; a single one may be an outlier."""

PENALTY = 15.0
"""Penalty of a further change point, in units of log n on the standardised series."""

SHORTEST_LEVEL = 3
"""Minimum trials of a level; a single slow first trial is handled by excluding the first one."""

PRACTICAL = 0.01
"""Relative distance, to the series' median, below which two levels are the same."""

MOST = 2000
"""Maximum length: longer series are first reduced to means of neighbours."""

_FARTHEST = 1e5  # robust deviations; farther ones would cause rounding errors in the others
_CHANCE = 0.0025  # below the chance of 3 of 3 at an end of 30 with one or two similar values elsewhere
_TOO_MANY_FOR_CHANCE = 30
_NORMAL_MAD = 1.4826  # standard deviation of a normal distribution, in median absolute deviations

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LevelShift:
    """Trials at the begin and the end of a series that are on another level than most of it."""

    first: int
    """Number of trials at the beginning; rerun with that many excluded."""
    last: int
    """Number of trials at the end."""
    shift: float
    """Distance of the mean of the first ones from the median of those between, as a fraction of it; of the last ones if
    there are no first ones."""
    shift_last: float
    """The same for the last ones; 0 if there are none."""
    method: str
    """Student's t, PELT, or another method in words."""


def level_shift(
    x: ArrayLike, *, practical: float = PRACTICAL, level: float = LEVEL, penalty: float = PENALTY
) -> LevelShift | None:
    """Trials at either end of `x`, shape (n,) in order of time, that are on another level; None if there are none.

    Up to 29 trials: the split with the largest t, whose shorter side, or the first of two equal ones, is the other
    level. From 30 on: PELT. None below ten.
    practical: smallest shift that counts, as a fraction of the median. level: LEVEL, for up to 29 trials. penalty:
    PENALTY, from 30 on. Most of the reported trials are off by more than two robust standard deviations on one side, so
    that one or two slow trials near an end are no level; and a few slow ones in the middle do not separate those before
    and after.
    Source: the largest t of Hawkins (1977) and Worsley (1979); PELT of Killick, Fearnhead and Eckley (2012);
    docs/explanation/statistics.md for both.
    """
    for name, value in (("practical", practical), ("level", level), ("penalty", penalty)):
        check_positive(name, value)
    values = _scaled(finite_sample(x))
    if values.size < MINIMUM or bool(np.all(values == values[0])):
        return None
    if values.size < FROM_PELT:
        return _split(values, practical, level)
    return _main_level(values, practical, penalty)


def no_steady_state_p(x: ArrayLike, found: LevelShift | None) -> float | None:
    """p-value of Kendall's trend in `x` without the trials reported by `found`; below .01 there is no steady state.

    A small p means "trend or autocorrelation". None if fewer than ten trials are left.
    """
    values = finite_sample(x)
    if found is not None:
        values = values[found.first : values.size - found.last]
    return trend_p(values)


def change_points(
    x: ArrayLike, *, penalty: float = PENALTY, shortest: int = SHORTEST_LEVEL
) -> tuple[int, ...]:
    """Change points of the mean of `x`, shape (n,): index of the first trial of each level except the first.

    The least sum of squares about the levels' means plus penalty·log n a change, on the standardised series; levels of
    `shortest` trials or more. PELT is exact. It is implemented here because maintained libraries need a compiler or a
    second to import; a test compares it with the full search.
    Source: Killick, Fearnhead and Eckley (2012), "Optimal detection of changepoints with a linear computational cost".
    """
    values = finite_sample(x)
    if values.size < 2 * shortest:
        return ()
    values = standardised(values)
    if not values.any():
        return ()
    return _pelt(values, penalty * math.log(values.size), shortest)


def standardised(values: Floats) -> Floats:
    """Distance from the median in robust standard deviations of the noise: zeros if all values are equal.

    The noise is estimated from the differences of neighbours, which a step does not widen: the median of their absolute
    values, or their mean if more than half of them are zero. Autocorrelation makes it too small. At most 100000 to
    either side.
    """
    values = _scaled(values)
    distance = values - np.median(values)
    steps = np.abs(np.diff(values))
    spread = _NORMAL_MAD * float(np.median(steps)) / math.sqrt(2.0)
    if spread == 0.0:
        spread = math.sqrt(math.pi) / 2.0 * float(np.mean(steps))
    if spread == 0.0:
        return np.zeros_like(values)
    most = min(_FARTHEST * spread, 2.0)
    return np.clip(distance, -most, most) / spread


def _scaled(values: Floats) -> Floats:
    """The values, scaled so that none is too large to be squared or summed."""
    scale = float(np.max(np.abs(values))) if values.size else 0.0
    return values / scale if scale > 0.0 else values


def _split(values: Floats, practical: float, level: float) -> LevelShift | None:
    """The end, at most half of the series, that differs most from the rest by Student's t, if it is relevant."""
    n = values.size
    counts = np.arange(SHORTEST_END, n - SHORTEST_END + 1)
    sums = np.cumsum(values - values.mean())[counts - 1]
    between = sums**2 * n / (counts * (n - counts))
    best = int(np.argmax(between))
    first = int(counts[best])
    halves = values[:first], values[first:]
    within = float(sum(np.sum((half - half.mean()) ** 2) for half in halves))
    t = math.sqrt(float(between[best]) / within * (n - 2)) if within > 0.0 else math.inf
    if _chance_of_split(t, n) >= level:
        return None
    part, rest = halves if 2 * first <= n else halves[::-1]
    shift = _shift(part, rest, practical)
    if shift is None:
        return None
    if part is halves[0]:
        return LevelShift(first, 0, shift, 0.0, "Student's t")
    return LevelShift(0, n - first, shift, shift, "Student's t")


def _chance_of_split(t: float, n: int) -> float:
    """Probability that some split of n normal values has a t as large as this one, accurate for small ones.

    It is that of one split, times the effective number of independent splits, fitted to 200000 series each
    of 10 to 29 values, within a tenth at probabilities of .01 to .03; a test simulates some of them again.
    """
    return 2.0 * float(stdtr(n - 2, -t)) * (2.0 + 0.45 * n)


def _main_level(values: Floats, practical: float, penalty: float) -> LevelShift | None:
    """Trials before the first and after the last level that is like the longest one."""
    group = -(-values.size // MOST)
    means = values[: values.size // group * group].reshape(-1, group).mean(axis=1)
    bounds = [0, *(group * place for place in change_points(means, penalty=penalty)), values.size]
    levels = [values[a:b] for a, b in pairwise(bounds)]
    longest = max(levels, key=len)
    middle = float(np.median(longest))
    alike = [abs(float(np.median(level)) - middle) <= practical * abs(middle) for level in levels]
    first = bounds[alike.index(True)]
    last = values.size - bounds[len(levels) - alike[::-1].index(True)]
    between = values[first : values.size - last]
    before = _shift(values[:first], longest, practical)
    if before is not None and _by_chance(values[:first], between, longest):
        before = None
    after = _shift(values[values.size - last :], longest, practical)
    if after is not None and _by_chance(values[values.size - last :], between, longest):
        after = None
    if before is None and after is None:
        return None
    shift = before if before is not None else after
    assert shift is not None
    ends = (first if before is not None else 0, last if after is not None else 0)
    return LevelShift(*ends, shift, after if after is not None else 0.0, "PELT")


def _shift(part: Floats, rest: Floats, practical: float) -> float | None:
    """Relative distance of the mean of `part` from the median of the rest; None if it is not relevant."""
    if part.size < 2:
        return None
    middle = float(np.median(rest))
    shift = float(part.mean()) - middle
    if abs(shift) <= practical * abs(middle):
        return None
    far = 2.0 * _NORMAL_MAD * float(np.median(np.abs(rest - middle)))
    if 2 * int(np.count_nonzero(math.copysign(1.0, shift) * (part - middle) > far)) <= part.size:
        return None
    return shift / abs(middle) if middle else math.copysign(math.inf, shift)


def _by_chance(part: Floats, others: Floats, rest: Floats) -> bool:
    """True if values like these may be together by chance, since others like them are scattered in between.

    It uses the hypergeometric probability that `part` contains as many of the values at least as far off as one of its
    own, minimised over its own values.
    """
    middle = float(np.median(rest))
    shift = float(part.mean()) - middle
    if part.size > _TOO_MANY_FOR_CHANCE:
        return False
    own, strewn = (np.sort((x - middle) / shift)[::-1] for x in (part, others))
    n, size = own.size + strewn.size, own.size
    limit = _CHANCE * math.comb(n, size)
    for found, value in enumerate(own.tolist(), start=1):
        far = found + int(np.count_nonzero(strewn >= value))
        ways = sum(math.comb(far, k) * math.comb(n - far, size - k) for k in range(found, min(far, size) + 1))
        if ways <= limit:
            return False
    return True


def _pelt(values: Floats, penalty: float, shortest: int) -> tuple[int, ...]:
    """Optimal partition: best[t] is the least cost of the first t values, began[t] the begin of its last level.

    As many ends as the shortest level has trials are processed together, since they are independent.
    """
    n = values.size
    sums = np.concatenate(([0.0], np.cumsum(values)))
    squares = np.concatenate(([0.0], np.cumsum(values * values)))
    if _no_change(sums, penalty):
        return ()
    best = np.full(n + 1, math.inf)
    best[0] = -penalty
    began = np.zeros(n + 1, dtype=np.intp)
    places = np.arange(n + 1, dtype=np.float64)
    pruned = 0  # starts before this one are pruned
    for end in range(shortest, n + 1, shortest):
        ends = slice(end, min(end + shortest, n + 1))
        starts = slice(pruned, ends.stop - shortest)
        counts = places[ends, None] - places[starts]
        totals = sums[ends, None] - sums[starts]
        totals *= totals
        with np.errstate(divide="ignore", invalid="ignore"):
            totals /= counts
        costs = best[starts] + squares[ends, None]
        costs -= squares[starts]
        costs -= totals
        costs[counts < shortest] = math.inf
        least = np.argmin(costs, axis=1)
        rows = np.arange(least.size)
        best[ends] = costs[rows, least] + penalty
        began[ends] = least + pruned
        # A start that is worse than a new level at `end` cannot be best once that level has its minimum length, which
        # holds for all ends of the next round.
        if costs[0, 0] > best[end]:
            pruned += int(np.argmin(costs[0] > best[end]))
    found: list[int] = []
    end = int(began[n])
    while end > 0:
        found.append(end)
        end = int(began[end])
    return tuple(reversed(found))


def _no_change(sums: Floats, penalty: float) -> bool:
    """True if one level is certain to be optimal, decided without a search: the usual case without changes.

    sums: cumulative, shape (n + 1,), beginning with 0. The gain of levels over a single one is the sum of their (s -
    n·m)²/n, s being a level's sum, n its count and m the mean of all. With k changes these are k + 1 parts: if none can
    exceed half the penalty, they never gain k penalties. Short levels are checked one by one, longer ones by the
    extremes of the sums where they may begin and end, which is an upper bound.
    """
    n = sums.size - 1
    block = max(4, n // 250)
    sums = sums - np.arange(n + 1) * (sums[-1] / n)
    limit = penalty / 2.0 * (1.0 - 1e-9)
    reach = 4 * block
    padded = np.concatenate((sums, np.full(reach, sums[-1])))
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach + 1)
    gains = (windows[:, 1:] - sums[:, None]) ** 2 / np.arange(1, reach + 1)
    if float(gains.max()) > limit:
        return False
    whole = np.concatenate((sums, np.full(-sums.size % block, sums[-1]))).reshape(-1, block)
    high, low = whole.max(axis=1), whole.min(axis=1)
    places = np.arange(high.size)
    apart = (places - places[:, None] - 1) * block + 1
    farthest = np.maximum(high - low[:, None], high[:, None] - low)
    far = apart > reach - 2 * block
    return not bool(np.any(far & (farthest * farthest > limit * apart)))
