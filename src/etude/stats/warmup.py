"""Whether a series of trials begins, or ends, on another level. It is a diagnosis: nothing is ever deleted.

To be asked when a series has ended. Within a stop rule either detector does harm, because it takes a few slow trials
at the beginning for a warm-up: docs/statistics.md.
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
"""Series shorter than this are not looked at."""

FROM_PELT = 30
"""From this many trials on change points are searched for; below, one change only."""

LEVEL = 0.03
"""Share of clean normal series below `FROM_PELT` trials that have a split as clear as one that is named."""

SHORTEST_END = 2
"""Trials before or after the one change of a series below `FROM_PELT` trials; a single one may be an outlier."""

PENALTY = 15.0
"""What a further change point costs, in units of log n on the standardised series."""

SHORTEST_LEVEL = 3
"""Trials; a single slow first trial is what setting the first one aside is for."""

PRACTICAL = 0.01
"""Levels that lie closer than this fraction of the series' median are one level."""

MOST = 2000
"""Longer series are first reduced to means of neighbours, at most this many."""

_FARTHEST = 1e5  # robust deviations; farther ones would drown the others in rounding errors
_CHANCE = 0.0025  # 3 of 3 at an end of 30, where one or two like them stand elsewhere, is little enough
_TOO_MANY_FOR_CHANCE = 30
_NORMAL_MAD = 1.4826  # standard deviation of a normal distribution, in median absolute deviations

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OtherLevel:
    """The first and the last trials of a series that do not belong with most of it."""

    first: int
    """How many trials at the beginning; rerun with that many excluded."""
    last: int
    """How many trials at the end."""
    shift: float
    """How far the mean of the first ones lies off the median of those between, as a fraction of it; of the last ones
    where there are no first ones."""
    shift_last: float
    """The same of the last ones; 0 where there are none."""
    method: str
    """Student's t, PELT, or in words what told them."""


def other_level(
    x: ArrayLike, *, practical: float = PRACTICAL, level: float = LEVEL, penalty: float = PENALTY
) -> OtherLevel | None:
    """Which trials at either end of `x`, shape (n,) in order of time, form another level; None where none do.

    Up to 29 trials: the split with the largest t, whose shorter side, or the first of two equal ones, is the other
    level. From 30 on: PELT. Nothing is said below ten.
    practical: shifts below this fraction of the median do not count. level: LEVEL, for up to 29 trials. penalty: what a
    change costs from 30 on.
    Most of the trials that are named lie off by more than two robust standard deviations on one side, so that a slow
    trial or two near an end are no level; and a few slow ones in the middle do not part what is before and after.
    Source: the largest t of Hawkins (1977) and Worsley (1979); PELT of Killick, Fearnhead and Eckley (2012);
    docs/statistics.md for both.
    """
    for name, value in (("practical", practical), ("level", level), ("penalty", penalty)):
        check_positive(name, value)
    values = _scaled(finite_sample(x))
    if values.size < MINIMUM or bool(np.all(values == values[0])):
        return None
    if values.size < FROM_PELT:
        return _split(values, practical, level)
    return _main_level(values, practical, penalty)


def never_steady(x: ArrayLike, found: OtherLevel | None) -> float | None:
    """p of Kendall's trend in `x` without the trials that `found` names; below .01 it is never steady.

    A small p means "trend or autocorrelation". None where fewer than ten trials are left.
    """
    values = finite_sample(x)
    if found is not None:
        values = values[found.first : values.size - found.last]
    return trend_p(values)


def change_points(
    x: ArrayLike, *, penalty: float = PENALTY, shortest: int = SHORTEST_LEVEL
) -> tuple[int, ...]:
    """Where the mean of `x`, shape (n,), changes: the index of the first trial of each level but the first one.

    The least sum of squares about the levels' means plus penalty·log n a change, on the standardised series; levels of
    `shortest` trials or more. Exact: PELT prunes, it does not guess. Our own forty lines and not a library: those that
    are kept bring a compiler or a second's import, and this one is compared with the full search by a test.
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
    """Distance from the median in robust standard deviations of the noise: zeros where all values are equal.

    The noise is taken from the differences of neighbours, which a step does not widen: their median, without sign,
    or, where more than half of them are zero, their mean. Dependence of neighbours makes it too small.
    At most 100000 to either side.
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
    """The values in a unit in which none of them is too large to be squared or summed."""
    scale = float(np.max(np.abs(values))) if values.size else 0.0
    return values / scale if scale > 0.0 else values


def _split(values: Floats, practical: float, level: float) -> OtherLevel | None:
    """The end, of half the series at most, that differs most from the rest by Student's t, if it is worth a word."""
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
        return OtherLevel(first, 0, shift, 0.0, "Student's t")
    return OtherLevel(0, n - first, shift, shift, "Student's t")


def _chance_of_split(t: float, n: int) -> float:
    """Probability that some split of n normal values has a t as large as this one, where it is small.

    That of one split, times the number of independent splits that all of them amount to: fitted to 200000 series each
    of 10 to 29 values, within a tenth at probabilities of .01 to .03; a test simulates some of them again.
    """
    return 2.0 * float(stdtr(n - 2, -t)) * (2.0 + 0.45 * n)


def _main_level(values: Floats, practical: float, penalty: float) -> OtherLevel | None:
    """What lies before the first and after the last level that is like the longest one."""
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
    return OtherLevel(*ends, shift, after if after is not None else 0.0, "PELT")


def _shift(part: Floats, rest: Floats, practical: float) -> float | None:
    """How far the mean of `part` lies off the median of the rest, relative; None where that is not worth a word."""
    if part.size < 2:
        return None
    middle = float(np.median(rest))
    shift = float(part.mean()) - middle
    if abs(shift) <= practical * abs(middle):
        return None
    far = 2.0 * _NORMAL_MAD * float(np.median(np.abs(rest - middle)))
    if 2 * int(np.count_nonzero(math.copysign(1.0, shift) * (part - middle) > far)) <= part.size:
        return None
    return _relative(shift, middle)


def _by_chance(part: Floats, others: Floats, rest: Floats) -> bool:
    """Could values like these stand together by chance? They can where others like them are strewn in between.

    The hypergeometric chance that `part` holds as many of the values that lie as far off as one of its own, for the
    one of its own for which it is smallest.
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


def _relative(shift: float, middle: float) -> float:
    return shift / abs(middle) if middle else math.copysign(math.inf, shift)


def _pelt(values: Floats, penalty: float, shortest: int) -> tuple[int, ...]:
    """Optimal partition: best[t] is the least cost of the first t values, began[t] where its last level begins.

    As many ends as the shortest level has trials are looked at together: none of them depends on another.
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
    pruned = 0  # from a start before this one nothing better can come
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
        # From a start that is worse than a new level beginning at `end` nothing better can come once that level
        # is long enough to be one, which it is for all ends of the next round.
        if costs[0, 0] > best[end]:
            pruned += int(np.argmin(costs[0] > best[end]))
    found: list[int] = []
    end = int(began[n])
    while end > 0:
        found.append(end)
        end = int(began[end])
    return tuple(reversed(found))


def _no_change(sums: Floats, penalty: float) -> bool:
    """Whether one level is certain to be best, told without a search: so it is in most series without any.

    sums: cumulative, shape (n + 1,), beginning with 0. Levels gain, over one for all, the sum of their (s - n·m)²/n, s
    being a level's sum, n its count and m the mean of all. With k changes these are k + 1 parts: if none can exceed
    half the penalty, they never gain k penalties. Short levels are looked at one by one, longer ones by the extremes
    of the sums where they may begin and end, which is at least as much.
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
