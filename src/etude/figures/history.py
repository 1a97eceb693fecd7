"""Results over time: a point a result, the levels between steps, where the machine changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import numpy as np

from etude.figures.data import GREY, Axis, Band, Curve, Figure, Layer, Line, Panel, Point, label, labels
from etude.history.metric_history import Change, Course
from etude.stats.intervals import mean_interval
from etude.store.entry import Entry
from etude.units.formatting import DAY_S, scale_of

MOST_PANELS = 6
MOST_TICKS = 6
LEVEL = 1
"""Colour of the levels."""


def history(found: Sequence[Course]) -> Figure:
    """A panel a course, the first `MOST_PANELS`: results of one stand evenly in order, of several by their time."""
    shown = found[:MOST_PANELS]
    notes = [f"{course.machine.name}: {_steps_note(course)}" for course in shown]
    if len(found) > len(shown):
        notes.append(f"{len(found) - len(shown)} more machines are not drawn")
    begin = min(_time(entry) for course in shown for entry in course.entries) if len(shown) > 1 else None
    at = [_places(course, begin) for course in shown]
    every = [
        (x, _time(entry))
        for xs, c in zip(at, shown, strict=True)
        for x, entry in zip(xs, c.entries, strict=True)
    ]
    committed = shown[0].entries[0].committed is not None
    axis = Axis("time of the commit" if committed else "time of the measurement", ticks=_ticks(every))
    titles = [f"{course.test} on {course.machine.name}" for course in shown]
    named = labels(titles)
    panels = tuple(
        _panel(course, xs, named[title]) for course, xs, title in zip(shown, at, titles, strict=True)
    )
    if any(len(entry.values) > 1 for course in shown for entry in course.entries):
        notes.append("error bars: 95 % interval of each result's own trials")
    return Figure(axis, panels, key="above", notes=tuple(notes), kind="history")


def _panel(course: Course, at: Sequence[float], title: str) -> Panel:
    divisor, unit = scale_of(course.value(float(np.median(course.levels))), course.unit)
    starts = [*course.found.starts, len(at)]
    points = tuple(_point(course, place, x).divided(divisor) for place, x in enumerate(at))
    layers: list[Layer] = [_band(course, change, at) for change in course.changes]
    layers.append(Curve("results", points, GREY, "dots"))
    fitted = course.found.fitted
    for number, (first, end) in enumerate(pairwise(starts)):
        ends = ((_between(at, first), fitted[first]), (_between(at, end), fitted[end - 1]))
        line = tuple(Point(x, course.value(float(level)) / divisor) for x, level in ends)
        layers.append(Curve("" if number else "level", line, LEVEL, "line"))
    told = {place for c in course.changes for place in range(c.step.earliest, c.step.latest + 1)}
    layers += [
        Line(_between(at, place), "" if place in told else "machine", "x") for place, _ in course.machines
    ]
    y = Axis(label(f"{course.metric} ({unit})" if unit else course.metric))
    return Panel(y, tuple(layers), 1.0, title)


def _point(course: Course, place: int, x: float) -> Point:
    """A result's level with the 95 % interval of its own trials; without one where it has a single trial."""
    values = np.asarray(course.entries[place].values)
    level = course.value(float(course.levels[place]))
    known = mean_interval(np.log(values) if course.relative else values)
    if known is None:
        return Point(x, level)
    return Point(x, level, course.value(known.low), course.value(known.high))


def _band(course: Course, change: Change, at: Sequence[float]) -> Band:
    """The range in which a step may begin, named by the step's size."""
    ends = _between(at, change.step.earliest), _between(at, change.step.latest + 1)
    cause = f", {change.cause}" if change.cause in ("test", "machine") else ""
    return Band(*ends, f"{course.size_text(change.size)}{cause}")


def _places(course: Course, begin: datetime | None) -> list[float]:
    if begin is None:
        return [float(place) for place in range(len(course.entries))]
    return [(_time(entry) - begin).total_seconds() / DAY_S for entry in course.entries]


def _between(at: Sequence[float], place: int) -> float:
    """Midway between a place and the one before; beyond the ends as far as their neighbours are."""
    if len(at) == 1:
        return at[0] + (place - 0.5)
    if place == 0:
        return at[0] - (at[1] - at[0]) / 2
    if place == len(at):
        return at[-1] + (at[-1] - at[-2]) / 2
    return (at[place - 1] + at[place]) / 2


def _ticks(every: Sequence[tuple[float, datetime]]) -> tuple[tuple[float, str], ...]:
    ordered = sorted(every)
    last = len(ordered) - 1
    places = sorted({round(last * share / (MOST_TICKS - 1)) for share in range(MOST_TICKS)})
    named = {f"{ordered[p][1]:%d %b %Y}": ordered[p][0] for p in reversed(places)}
    return tuple((x, name) for name, x in reversed(named.items()))


def _time(entry: Entry) -> datetime:
    return entry.committed or entry.measured


def _steps_note(course: Course) -> str:
    told = [f"{course.size_text(c.size)} at {c.first}" for c in course.changes]
    if course.drift is not None:
        told.append(f"drift of {course.size_text(course.drift.size)}")
    return "; ".join(told) or "no step"
