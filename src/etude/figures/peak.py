"""Searches for a peak rate and what their run lengths rest on: Figures 3 to 7 of "Cutting Corners"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from etude.errors import InputError
from etude.figures.data import Axis, Bars, Box, Curve, Figure, Layer, Line, Mark, Panel, Point, Scale, labels

NARROW = 0.012
"""Width of a bar, as a share of the x axis."""
_TIMES = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))


FAR = 4.0
"""Loads further apart than this, largest over smallest that matter, are drawn on a log axis."""


@dataclass(frozen=True)
class Course:
    """One search: what each trial offered and cost, in the order in which they were made."""

    name: str
    peak: float
    """λ*: the true one, or the answer."""
    loads: tuple[float, ...]
    costs_s: tuple[float, ...]


@dataclass(frozen=True)
class Varying:
    """Readings of trials that differ in one setting."""

    name: str
    at: tuple[float, ...]
    """Load, or run length in s, of each trial."""
    values: tuple[float, ...]
    """Values in the unit of the axis."""


def load_factors(courses: Sequence[Course], title: str = "") -> Figure:
    """Figure 3: the load factor of each trial, as benchmarking time goes by; a mark at the end of each.

    Raises:
        InputError: no course has a trial.
    """
    divisor, unit = _time_unit([sum(course.costs_s) for course in _made(courses)])
    layers: list[Layer] = []
    shown = labels(course.name for course in courses)
    for number, course in enumerate(courses):
        ends = list(accumulate(course.costs_s))
        starts = [0.0, *ends[:-1]]
        factors = [load / course.peak for load in course.loads]
        path = [
            Point(x / divisor, y)
            for start, end, y in zip(starts, ends, factors, strict=True)
            for x in (start, end)
        ]
        marks = tuple(Point(end / divisor, y) for end, y in zip(ends, factors, strict=True))
        layers += [Curve(shown[course.name], tuple(path), number, "line"), Curve("", marks, number, "hollow")]
    panel = Panel(Axis("load factor", low=0.0), (*layers, Line(1.0, "")))
    return Figure(
        Axis(f"benchmarking time ({unit})", low=0.0),
        (panel,),
        title,
        key="above" if len(courses) > 1 else "off",
        notes=("each mark is the end of a trial",),
        kind="load-factors",
    )


def time_at_loads(courses: Sequence[Course], title: str = "") -> Figure:
    """Figure 7: how much benchmarking time went into each load factor, a panel a search.

    Raises:
        InputError: no course has a trial.
    """
    high = max(1.2, *(1.05 * load / course.peak for course in _made(courses) for load in course.loads))
    width = NARROW * high
    divisor, unit = _time_unit([max(_spent(course, width).values()) for course in courses])
    panels = []
    shown = labels(course.name for course in courses)
    for number, course in enumerate(courses):
        boxes = tuple(Box(factor, width, 0.0, s / divisor) for factor, s in _spent(course, width).items())
        trials = f"{len(course.loads)} trials, {sum(course.costs_s) / divisor:.3g} {unit}"
        layers: tuple[Layer, ...] = (Bars("", boxes, number), Line(1.0, "", "x"))
        panels.append(Panel(Axis(f"time ({unit})"), layers, title=f"{shown[course.name]}: {trials}"))
    return Figure(
        Axis("load factor", low=0.0, high=high), tuple(panels), title, key="off", kind="time-at-loads"
    )


def readings_over_load(
    trials: Varying, y: str, limit: float | None = None, *, x: str = "load (requests/s)", title: str = ""
) -> Figure:
    """Figure 4: the reading of each trial over the load that it was offered. y: what it is, with its unit."""
    layers: list[Layer] = [Curve(trials.name, _points(trials), 0, "crosses")]
    if limit is not None:
        layers.append(Line(limit, "limit", side="left"))
    panel = Panel(Axis(y, low=0.0), tuple(layers))
    return Figure(Axis(x), (panel,), title, key="off", kind="readings-over-load")


def readings_over_runlength(trials: Sequence[Varying], y: str, title: str = "") -> Figure:
    """Figure 5: the reading of each trial over its run length, a panel a load."""
    shown = labels(each.name for each in trials)
    panels = [
        Panel(Axis(y), (Curve("", _points(each), number, "crosses"),), title=shown[each.name])
        for number, each in enumerate(trials)
    ]
    return Figure(Axis("run length (s)"), tuple(panels), title, key="off", kind="readings-over-runlength")


def trials_needed(
    needed: Mapping[str, Sequence[tuple[float, float]]], title: str = "", *, sweet_s: float | None = None
) -> Figure:
    """Figure 6: how many trials an accuracy takes over their run length, a curve a load factor.

    needed: by name, pairs of run length in s and trials. sweet_s: the run length that is suggested.
    """
    shown = labels(needed)
    layers: list[Layer] = [
        Curve(shown[name], tuple(Point(r, t) for r, t in sorted(pairs)), number)
        for number, (name, pairs) in enumerate(needed.items())
    ]
    if sweet_s is not None:
        layers.append(Line(sweet_s, f"{sweet_s:g} s", "x"))
    panel = Panel(Axis("trials", low=0.0), tuple(layers))
    return Figure(Axis("run length (s)"), (panel,), title, key="above", kind="trials-needed")


def _made(courses: Sequence[Course]) -> Sequence[Course]:
    if not courses or not all(course.loads for course in courses):
        raise InputError("nothing to draw: a search has no trial yet")
    return courses


def _spent(course: Course, width: float) -> dict[float, float]:
    """Benchmarking time by load factor, s; factors that one bar of that width would cover are taken together."""
    found: dict[float, float] = {}
    for load, cost in zip(course.loads, course.costs_s, strict=True):
        factor = 1 + round((load / course.peak - 1) / width) * width
        found[factor] = found.get(factor, 0.0) + cost
    return found


def _points(trials: Varying) -> tuple[Point, ...]:
    return tuple(Point(x, y) for x, y in sorted(zip(trials.at, trials.values, strict=True)))


def _time_unit(most_s: Sequence[float]) -> tuple[float, str]:
    longest = max(most_s)
    return next((step for step in _TIMES if longest >= 2 * step[0]), _TIMES[-1])


@dataclass(frozen=True)
class Searched:
    """One search."""

    name: str
    at: tuple[float, ...]
    """Load of each trial that is drawn."""
    values: tuple[float, ...]
    """Values in the unit of the y axis."""
    peak: float | None
    low: float | None
    high: float | None
    """Ends of its interval; None: no bound."""


def searches_over_load(
    found: Sequence[Searched], y: str, limit: float, *, x: str = "load (requests/s)"
) -> Figure:
    """A curve a search, through the means of its trials at each load, and a mark at each peak."""
    layers: list[Layer] = [Line(limit, "limit", side="left")]
    shown = labels(search.name for search in found)
    for number, search in enumerate(found):
        layers.append(Curve(shown[search.name], _means(search), number))
        if search.peak is not None:
            bounded = search.low is not None and search.high is not None
            ends = (search.low, search.high) if bounded else (None, None)
            # Marks of peaks that lie beside each other would hide each other's bars.
            layers.append(Mark(search.peak, limit * (1.0 - 0.06 * number), search.name, *ends))
    panel = Panel(Axis(y, low=0.0), tuple(layers))
    loads = [load for search in found for load in search.at]
    scale: Scale = "log" if loads and max(loads) > FAR * min(loads) > 0 else "linear"
    notes = (
        "points: means of the trials at a load, with the least and the greatest where there are several",
        "marks: peak rates, with their intervals",
    )
    return Figure(Axis(x, scale), (panel,), "", key="above", notes=notes, kind="searches-over-load")


def _means(search: Searched) -> tuple[Point, ...]:
    by_load: dict[float, list[float]] = {}
    for load, value in zip(search.at, search.values, strict=True):
        by_load.setdefault(load, []).append(value)
    return tuple(
        Point(load, sum(v) / len(v), *((min(v), max(v)) if len(v) > 1 else (None, None)))
        for load, v in sorted(by_load.items())
    )
