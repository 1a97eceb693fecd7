"""Warnings about the values of a series: their course (drift, warm-up, leak), and their shape (coarse, two groups,
outliers, autocorrelated, skewed).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from etude.analysis.verdict_options import Thresholds
from etude.analysis.warnings import facts
from etude.analysis.warnings.facts import Facts
from etude.analysis.warnings.warning import DataWarning, warning
from etude.stats.intervals import autocorrelation
from etude.stats.shape import Ticks, groups, normality, outlier_places, ticks
from etude.stats.trend import Drift, drift, leak, trend_p
from etude.stats.warmup import LevelShift, level_shift

MEMORY = ("memory_obtainable", "memory_available", "memory_free", "free_memory")
"""Metrics that show a leak; the first existing one is used. The last is that of the shipped hook."""


@dataclass(frozen=True)
class Course:
    """The change over a series, as one warning at most, and the number of trials at either end that it is about."""

    warnings: tuple[DataWarning, ...] = ()
    first: int = 0
    last: int = 0


def course(about: About) -> Course:
    """The change over a series, as one warning at most.

    A trend and a level shift look alike: the one that leaves the smaller sum of squares is reported. Nothing below
    ten trials.
    """
    values, thresholds = about.values, about.thresholds
    level = level_shift(
        values,
        practical=thresholds.warm_up,
        level=thresholds.warm_up_level,
        penalty=thresholds.warm_up_penalty,
    )
    trend = _trend(about, values)
    if level is None or (trend is not None and _line_is_nearer(values, level)):
        return Course() if trend is None else Course((_drifts(about, trend),))
    rest = values[level.first : values.size - level.last]
    left = _trend(about, rest)
    found = other_ends(about, level) if left is None else _never_steady(about, level, left)
    return Course((found,), level.first, level.last)


def _trend(about: About, values: Floats) -> Drift | None:
    """A trend that is both significant and large enough to matter; else None."""
    thresholds = about.thresholds
    if thresholds.drift_by == "least-squares":
        found = drift(values, method="least squares")
    else:
        p = trend_p(values)  # sufficient for most series
        found = drift(values) if p is not None and p < thresholds.trend else None
    if found is None or not (found.p < thresholds.trend and abs(found.change) > thresholds.drift):
        return None
    return found


def _line_is_nearer(values: Floats, level: LevelShift) -> bool:
    """True if a straight line leaves a smaller sum of squares than the levels do."""
    n = values.size
    centred = values - values.mean()
    place = np.arange(n) - (n - 1) / 2.0
    line = centred - float(place @ centred) / float(place @ place) * place
    parts = np.split(centred, [level.first, n - level.last])
    return float(line @ line) < sum(float(np.sum((part - part.mean()) ** 2)) for part in parts if part.size)


def _drifts(about: About, trend: Drift) -> DataWarning:
    slower = (trend.change > 0) != (about.kind == "rate")
    drifts = facts.DriftOfValues(about.count, trend.change, trend.p, slower, trend.method, about.sessions)
    return about.warn("drift", drifts)


def _never_steady(about: About, level: LevelShift, left: Drift) -> DataWarning:
    never = facts.NeverSteady(level.first, level.last, left.change, left.p)
    return about.warn("never-steady", never, _at_the_ends(about, level.first, level.last))


def other_ends(about: About, level: LevelShift) -> DataWarning:
    """Warning that the first or last trials, or both, have a level shift.

    A shift at both ends is no warm-up, since the level returns: runs before the first trial do not help.
    """
    first, last = level.first, level.last
    places = ((first,) if first else ()) + ((about.count - last,) if last else ())
    changes = tuple(int(about.places[place]) for place in places)
    ends = facts.OtherEnds(first, level.shift, last, level.shift_last, level.method, changes)
    return about.warn("late-level" if last else "warm-up", ends, _at_the_ends(about, first, last))


def _at_the_ends(about: About, first: int, last: int) -> list[int]:
    return [int(n) for n in (*about.places[:first], *about.places[about.count - last :])]


def leaks(about: About) -> list[DataWarning]:
    """Warning that free memory, in bytes after each trial, is being lost; none below ten trials."""
    p = trend_p(about.values)
    if p is None or p >= about.thresholds.trend:
        return []
    found = leak(about.values * about.scale, practical_bytes=about.thresholds.leak)
    if found is None or not found.steady or found.total_bytes <= about.thresholds.leak:
        return []
    each, low, high = found.bytes_per_trial, found.low, found.high
    lost = facts.Leak(each, low, high, found.total_bytes, about.unit, about.count, found.p)
    return [about.warn("leak", lost)]


Floats = NDArray[np.float64]

_LARGE, _SMALL = 1e100, 1e-100  # squares and sums of values in between are finite


@dataclass(frozen=True, eq=False)
class About:
    """One metric of one test: its finite values over the included trials, in order of time."""

    test: str
    metric: str
    unit: str
    kind: str
    values: Floats
    """Shape (n,), n at least 1, in units of `unit` times `scale`."""
    scale: float
    """1 unless the values are too large or too small to be squared."""
    places: NDArray[np.int64]
    """Number of each trial."""
    thresholds: Thresholds
    sessions: int = 1
    """Number of sessions in which its trials were measured."""

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self.values.size)

    def warn(self, kind: str, facts: Facts, trials: Iterable[int] = ()) -> DataWarning:
        """A warning about this metric, and these trials."""
        return warning(kind, self.test, self.metric, facts, trials)

    def plain(self, value: float) -> float:
        """A value in units of `unit`."""
        return float(value * self.scale)


def tamed(values: Floats) -> tuple[Floats, float]:
    """The values in a unit in which they can be squared and summed, and the scale of that unit."""
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    if largest == 0.0 or _SMALL < largest < _LARGE:
        return values, 1.0
    exponent = math.frexp(largest)[1] - 1
    return np.ldexp(values, -exponent), math.ldexp(1.0, exponent)


AT_ONE_END = "outliers"
"""Method of a level shift that consists of outliers."""
FEW_OUTLIERS = 2
"""Number of outliers that are never called a distribution, however few the trials."""
TIMES = ("s", "ms", "us", "µs", "ns", "min", "h")
"""Units of quantities that a clock counts."""


def clock(about: About) -> tuple[list[DataWarning], Ticks | None]:
    """Warning about a clock with too large a tick, and the step that all values are multiples of.

    For a time, the trial may be too short for the tick, or else the spread too small; for a rate only the latter
    counts. Other quantities have steps by nature.
    """
    found = ticks(about.values)
    if found is None:
        return [], None
    of_time = about.unit in TIMES
    tick = about.plain(found.step)
    times = found.share * about.thresholds.ticks
    if of_time and times > 1.0:
        median, within = about.plain(float(np.median(about.values))), 1 / about.thresholds.ticks
        short = facts.TooShort(median, tick, about.unit, 1 / found.share, within, times)
        return [about.warn("too-short", short)], found
    if found.coarse and (of_time or about.kind == "rate"):
        return [about.warn("coarse-clock", facts.CoarseClock(tick, about.unit, of_time))], found
    return [], found


def modes(about: About, step: float, alike: bool) -> list[DataWarning]:
    """Warning about two groups that are far enough apart; `alike`: consecutive trials tend to share a group."""
    found = groups(about.values, step=step)
    if found is None:
        return []
    (few, many), (low, high) = found.counts, found.centres
    if high - low <= about.thresholds.bimodal * abs(float(np.median(about.values))):
        return []
    two = facts.TwoGroups(few, many, about.plain(low), about.plain(high), about.unit, about.count, alike)
    return [about.warn("bimodal", two)]


def neighbours_alike(values: Floats, thresholds: Thresholds) -> float | None:
    """Effective number of trials, if they are autocorrelated enough to matter; else None."""
    r, n = autocorrelation(values), values.size
    if n < 3 or r <= float(ndtri(1.0 - thresholds.autocorrelation)) / math.sqrt(n):
        return None
    worth = max(2.0, n * (1.0 - r) / (1.0 + r))
    return worth if worth < thresholds.worth * n else None


def autocorrelated(about: About, worth: float) -> DataWarning:
    """Warning that consecutive trials are autocorrelated, with the effective number of trials."""
    return about.warn("autocorrelated", facts.AutocorrelatedTrials(about.count, worth))


def far_ones(about: About, course: Course) -> tuple[list[DataWarning], Floats]:
    """Warning about outliers among the trials outside level shifts at the ends, and the values without them.

    The test uses logarithms, so that a slow tail has no outliers; values below the median must also be outliers on
    the plain scale, so that logarithms make none of the quickest. Two or more that are all at one end are a level
    shift. A value too near to the median is no outlier, and more than a tenth of the trials are a distribution.
    """
    values = about.values[course.first : about.count - course.last]
    found = outlier_places(values, level=about.thresholds.outliers)
    middle = float(np.median(values)) if found.size else 0.0
    if bool(np.any(values[found] < middle)) and bool(np.all(values > 0.0)):
        plainly = outlier_places(-values, level=about.thresholds.outliers)
        found = found[(values[found] > middle) | np.isin(found, plainly)]
    found = found[np.abs(values[found] - middle) > about.thresholds.outlier_distance * abs(middle)]
    if not found.size:
        return [], values
    others = np.delete(values, found)
    level = _at_one_end(found, values.size) if len(set(np.sign(values[found] - middle))) == 1 else None
    if level is not None and middle and not course.warnings:
        between = float(np.median(others)) or middle
        off = (float(values[found].mean()) - between) / abs(between)
        ends = LevelShift(*level, off, off if level[1] else 0.0, AT_ONE_END)
        return [other_ends(about, ends)], others
    farthest = float(values[found[np.argmax(np.abs(values[found] - middle))]])
    shift = (farthest - middle) / abs(middle) if middle else 0.0
    among = int(values.size) if values.size < about.count else None
    far = facts.FarValues(int(found.size), about.count, shift, among)
    if found.size > max(FEW_OUTLIERS, about.thresholds.outlier_share * values.size):
        return [about.warn("heavy-tail", far)], others
    return [about.warn("outliers", far, [int(t) for t in about.places[found + course.first]])], others


def _at_one_end(places: NDArray[np.intp], n: int) -> tuple[int, int] | None:
    """Number of first and of last trials, if the places are two or more at one end and nothing else; else None."""
    count = int(places.size)
    if count < 2 or int(places[-1]) - int(places[0]) != count - 1:
        return None
    if int(places[0]) == 0:
        return count, 0
    return (0, count) if int(places[-1]) == n - 1 else None


def skewed(about: About) -> list[DataWarning]:
    """Warning about non-normal values too few for Student's interval to hold at their skewness."""
    values, n, thresholds = about.values, about.count, about.thresholds
    if n < 3:
        return []
    centred = values - values.mean()
    spread = math.sqrt(float(centred @ centred) / n)
    if spread == 0.0:
        return []
    skewness = float(np.mean((centred / spread) ** 3))
    if n > thresholds.skewness * skewness**2:
        return []
    found = normality(values)
    if found is None or found.p >= thresholds.normality:
        return []
    return [about.warn("not-normal", facts.SkewedValues(found.p, skewness, n, found.power))]
