"""What changes while a series goes on: drift, warm-up, another level at its end, free memory that falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from etude.analysis.warnings.values import About, Floats, signed, size
from etude.analysis.warnings.warning import DataWarning
from etude.stats.leak import Drift, drift, leak
from etude.stats.trend import trend_p
from etude.stats.warmup import LevelShift, level_shift
from etude.units.formatting import counted, p_value

MEMORY = ("memory_obtainable", "memory_available", "memory_free", "free_memory")
"""Metrics in which a leak shows; the first that there is. The last is that of the shipped hook."""


_OF = {"Theil-Sen": "; Kendall's", "least squares": ","}
"""What its p is of, by the method of a trend."""


@dataclass(frozen=True)
class Course:
    """What was found, one warning at most, and how many trials at either end it is about."""

    warnings: tuple[DataWarning, ...] = ()
    first: int = 0
    last: int = 0


def course(about: About) -> Course:
    """The one name for what changes in the course of a series.

    A trend and another level look alike: of both, the one is named that leaves the smaller sum of squares. Nothing
    below ten trials.
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
    """A trend that is both significant and large enough to matter."""
    thresholds = about.thresholds
    if thresholds.drift_by == "least-squares":
        found = drift(values, method="least squares")
    else:
        p = trend_p(values)  # of most series this is enough to know
        found = drift(values) if p is not None and p < thresholds.trend else None
    if found is None or not (found.p < thresholds.trend and abs(found.change) > thresholds.drift):
        return None
    return found


def _line_is_nearer(values: Floats, level: LevelShift) -> bool:
    """Whether a straight line leaves less than the levels do."""
    n = values.size
    centred = values - values.mean()
    place = np.arange(n) - (n - 1) / 2.0
    line = centred - float(place @ centred) / float(place @ place) * place
    parts = np.split(centred, [level.first, n - level.last])
    return float(line @ line) < sum(float(np.sum((part - part.mean()) ** 2)) for part in parts if part.size)


def _drifts(about: About, trend: Drift) -> DataWarning:
    way = "rises" if trend.change > 0 else "falls"
    sessions = f", or its {about.sessions} sessions differ" if about.sessions > 1 else ""
    text = (
        f"{about.metric} {way} by {size(trend.change)} over its {about.count} trials, or neighbours resemble each "
        f"other{sessions} ({trend.method}{_OF[trend.method]} {p_value(trend.p)})"
    )
    slower = (trend.change > 0) != (about.kind == "rate")
    advice = f"look for what {causes(slower)}; in pairs, what moves both tests alike cancels"
    return about.warn(
        "drift", text, advice, of=about.count, change=trend.change, p=trend.p, slower=int(slower)
    )


def causes(slower: bool) -> str:
    """The usual causes of a course of trials that gets slower, or quicker."""
    return (
        "fills up, ages, heats up or runs beside it"
        if slower
        else "warms up, fills a cache or ends beside it"
    )


def _never_steady(about: About, level: LevelShift, left: Drift) -> DataWarning:
    way = "rises" if left.change > 0 else "falls"
    text = (
        f"{about.metric} never settles: without the {_ends(level.first, level.last)} it still {way} by "
        f"{size(left.change)} ({p_value(left.p)})"
    )
    advice = "run it for longer before measuring; its mean depends on when that is"
    trials = _at_the_ends(about, level.first, level.last)
    return about.warn(
        "never-steady", text, advice, trials, first=level.first, last=level.last, change=left.change, p=left.p
    )


def other_ends(about: About, level: LevelShift) -> DataWarning:
    """That the first and last trials that are named, not both none, are another level.

    Where both are, it comes back: runs before the first trial do not help, and it is no warm-up.
    """
    first, last, shift = level.first, level.last, level.shift
    others = "of those between" if first and last else "of the others"
    ends = [("first", first, shift), ("last", last, level.shift_last)]
    told = ", ".join(f"the {word} {counted(n, 'trial')} {signed(by)}" for word, n, by in ends if n)
    text = (
        f"{about.metric}: {told} the median {others}: another level, or neighbours are alike ({level.method})"
    )
    trials = _at_the_ends(about, first, last)
    if first and not last:
        runs = first + 1  # and the first run of all, which is excluded anyway
        advice = (
            f"if it is a warm-up, rerun with {runs} warm-up runs (etude bench --warmup {runs}; in a script, a TEST of "
            f"{runs} before it); none was left out here"
        )
        return about.warn("warm-up", text, advice, trials, first=first, shift=shift, runs=runs)
    changes = [about.places[place] for place in ((first,) if first else ()) + (about.count - last,)]
    at = " and ".join(str(int(place)) for place in changes)
    advice = f"look for what changed at trial {at}, then rerun; none was left out here"
    numbers = {"last": last, "shift": level.shift_last} | (
        {"first": first, "shift_first": shift} if first else {}
    )
    return about.warn("late-level", text, advice, trials, **numbers)


def _at_the_ends(about: About, first: int, last: int) -> list[int]:
    return [int(n) for n in (*about.places[:first], *about.places[about.count - last :])]


def _ends(first: int, last: int) -> str:
    ends = [("first", first), ("last", last)]
    return " and the ".join(f"{word} {counted(n, 'trial')}" for word, n in ends if n)


def leaks(about: About) -> list[DataWarning]:
    """Whether free memory, in bytes after each trial, is being lost. Nothing below ten trials."""
    p = trend_p(about.values)
    if p is None or p >= about.thresholds.trend:
        return []
    found = leak(about.values * about.scale, practical_bytes=about.thresholds.leak)
    if found is None or not found.steady or found.total_bytes <= about.thresholds.leak:
        return []
    about_one = (found.bytes_per_trial, found.low, found.high, found.total_bytes)
    each, low, high, total = (about.shown(value / about.scale) for value in about_one)
    text = (
        f"suspected leak: {about.metric} falls by {each} a trial (95 %: {low} to {high}), {total} over "
        f"{about.count} trials ({p_value(found.p)})"
    )
    advice = "find what keeps memory; until then restart or reboot between trials"
    return [
        about.warn(
            "leak",
            text,
            advice,
            each=found.bytes_per_trial,
            total=found.total_bytes,
            of=about.count,
            p=found.p,
        )
    ]
