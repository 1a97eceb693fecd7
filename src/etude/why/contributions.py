"""Contributions: how much of a difference each cause takes, as paired differences with simultaneous intervals.

Each is a mean over the same pairs, so that they add up to the whole. Pairs in which something else delayed a run are
left out: one of thirty by 50 ms would else hide a cause of 10 ms.

Source: Bonferroni's inequality over all causes that are looked at, Student's t for each; outliers: Rosner (1983).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from etude.stats.intervals import t_quantile
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.outlying import outlying_rows
from etude.why.causes import UNKNOWN, Cause
from etude.why.instruments import CallCount, Calls, Run
from etude.why.stacks import summed

CONFIDENCE = 0.95
KEPT = 0.8
"""Share of the permitted error that is left to intervals; the test for outliers takes the rest (its level of 1 %)."""
RARE = 0.005
"""Share of a run's time below which a cause is added to the others of its process, whichever side it is on."""
UNSURE = 0.02
"""Share of a call's time without a known caller above which callers of that call are not told."""
_WITH_CALLER = ("call", "page faults")
FEW = 5
"""Smallest number of pairs."""
MOST = 10
"""Number of causes, and of counts, that are listed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contribution:
    """A paired difference, s, with its interval."""

    cause: Cause | None
    """None: all together, or what is left."""
    mean_s: float
    low_s: float
    high_s: float

    @property
    def is_told(self) -> bool:
        """True if the interval does not hold 0."""
        return self.low_s > 0.0 or self.high_s < 0.0


@dataclass(frozen=True)
class Split:
    """The difference of the runs' times, split."""

    whole: Contribution
    listed: tuple[Contribution, ...]
    """Causes whose intervals do not hold 0, the largest first."""
    rest: Contribution
    """The difference without the listed causes."""
    looked_at: int
    """Number of causes over which the intervals hold simultaneously."""
    pairs: int
    left_out: tuple[int, ...] = ()
    """Positions of the pairs in which something else delayed a run: no contribution is of these."""


@dataclass(frozen=True)
class CountDifference:
    """Calls of one name about one file, or about all, whose number or bytes differ between both tests."""

    call: str
    file: str
    a: CallCount
    b: CallCount
    exact: bool
    """True if all runs of a test have the same numbers; else these are medians, and no run of one test has a number
    that one of the other has."""


def split(a: Sequence[Run], b: Sequence[Run], confidence: float = CONFIDENCE) -> Split:
    """The differences b - a of pairs of runs by cause.

    Raises:
        ValueError: fewer than FEW pairs, or numbers that differ.
    """
    if len(a) != len(b) or len(a) < FEW:
        raise ValueError(f"{len(a)} and {len(b)} runs: expected as many, {FEW} or more")
    names = grouped([run.causes for run in (*a, *b)])
    sides = [[_sums(run.causes, names) for run in side] for side in (a, b)]
    causes = sorted(set(names.values()))
    table = np.array([[y.get(c, 0.0) - x.get(c, 0.0) for c in causes] for x, y in zip(*sides, strict=True)])
    outlying = outlying_rows(table)
    apart, level = table[~outlying], each_confidence(confidence, len(causes))
    found = [contribution(c, apart[:, n], level) for n, c in enumerate(causes)]
    listed = sorted((each for each in found if each.is_told), key=lambda each: -abs(each.mean_s))[:MOST]
    chosen = {each.cause for each in listed}
    left = apart[:, [cause not in chosen for cause in causes]].sum(axis=1)
    whole, rest = (
        contribution(None, each, each_confidence(confidence)) for each in (apart.sum(axis=1), left)
    )
    left_out = tuple(np.flatnonzero(outlying).tolist())
    return Split(whole, tuple(listed), rest, len(causes), len(a), left_out)


def difference(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Contribution:
    """The mean of the paired differences b - a, s, with its interval, without outliers and what has no partner."""
    apart = np.array([[y - x] for x, y in zip(a, b, strict=False)])
    return contribution(None, apart[~outlying_rows(apart), 0], each_confidence(confidence))


@dataclass(frozen=True)
class Cost:
    """Times with an instrument over plain ones, as geometric means of the pairs without outliers."""

    a: float
    b: float
    change: float
    """Change of the ratio b / a, as a share; with its interval."""
    low: float
    high: float
    certain: float
    """Lower end of the interval of the larger of both ratios."""


def cost(
    plain: Sequence[Sequence[float]], runs: Sequence[Sequence[Run]], confidence: float = CONFIDENCE
) -> Cost:
    """The cost of the instrument that gave the runs of both tests. plain: elapsed times of both tests, s; more than
    there are runs are left out."""
    pairs = min(len(side) for side in (*plain, *runs))
    with_it = np.array([[run.elapsed_s for run in side[:pairs]] for side in runs])
    ratios = np.log(with_it / np.array([side[:pairs] for side in plain])).T
    a, b = ratios[~outlying_rows(ratios)].T
    of_a, of_b, moved = (contribution(None, each, each_confidence(confidence)) for each in (a, b, b - a))
    change, low, high = np.expm1([moved.mean_s, moved.low_s, moved.high_s]).tolist()
    certain = math.exp(max(of_a.low_s, of_b.low_s))
    return Cost(math.exp(of_a.mean_s), math.exp(of_b.mean_s), change, low, high, certain)


def grouped(runs: Sequence[Mapping[Cause, float]]) -> dict[Cause, Cause]:
    """The cause under which each is counted: itself, without its caller, or the others of its process.

    A call whose caller is not known in a part of its time is counted without callers: else it would be two causes, of
    which each run has another one. It depends on the time of both tests together, not on their difference.
    """
    total = summed(item for run in runs for item in run.items())
    least = RARE * sum(total.values())
    by_call = summed((_without_caller(cause), s) for cause, s in total.items())
    without = ((c, s) for c, s in total.items() if c.kind in _WITH_CALLER)
    unknown = summed((_without_caller(c), s) for c, s in without if (c.caller or UNKNOWN).startswith(UNKNOWN))
    unsure = {call for call, seconds in unknown.items() if seconds > UNSURE * by_call[call]}
    names = {c: _without_caller(c) if _without_caller(c) in unsure else c for c in total}
    for shorter in (_without_caller, _others):
        sums = _sums(total, names)
        names = {c: name if sums[name] >= least else shorter(name) for c, name in names.items()}
    return names


def _without_caller(cause: Cause) -> Cause:
    return replace(cause, caller="")


def _others(cause: Cause) -> Cause:
    return Cause(cause.process, "other functions", "other functions")


def _sums(causes: Mapping[Cause, float], names: Mapping[Cause, Cause]) -> dict[Cause, float]:
    return summed((names[cause], seconds) for cause, seconds in causes.items())


def each_confidence(confidence: float, together: int = 1) -> float:
    """Confidence of each of `together` intervals, all of which hold at `confidence`, of pairs without outliers."""
    return bonferroni_confidence(confidence, together) * KEPT + 1.0 - KEPT


def contribution(cause: Cause | None, values: Floats, confidence: float) -> Contribution:
    """The mean of paired differences, shape (pairs,), and its interval by Student's t."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    reach = t_quantile(confidence, values.size - 1.0) * error
    return Contribution(cause, mean, mean - reach, mean + reach)


def count_differences(a: Sequence[Calls], b: Sequence[Calls]) -> list[CountDifference]:
    """Calls whose numbers or bytes differ between all runs of one test and all of the other, the most first."""
    found = []
    for call, file in sorted({key for run in (*a, *b) for key in run}):
        sides = [[run.get((call, file), CallCount(0, 0)) for run in side] for side in (a, b)]
        for of in ("count", "bytes"):
            x, y = ([getattr(each, of) for each in side] for side in sides)
            if max(x) < min(y) or max(y) < min(x):
                exact = all(len(set(side)) == 1 for side in (x, y))
                found.append(CountDifference(call, file, _median(sides[0]), _median(sides[1]), exact))
                break
    found.sort(key=lambda d: (-abs(d.b.count - d.a.count), -abs(d.b.bytes - d.a.bytes)))
    return found[:MOST]


def _median(counts: Sequence[CallCount]) -> CallCount:
    middles = [np.median([getattr(each, of) for each in counts]) for of in ("count", "bytes", "seconds")]
    return CallCount(int(middles[0]), int(middles[1]), float(middles[2]))
