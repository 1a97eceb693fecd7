"""Warnings about changes over a series: drift, warm-up, a level shift at its end, falling free memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from etude.analysis.warnings import facts
from etude.analysis.warnings.values import About, Floats
from etude.analysis.warnings.warning import DataWarning
from etude.stats.leak import Drift, drift, leak
from etude.stats.trend import trend_p
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
