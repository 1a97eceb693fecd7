"""Parts that all kinds of figures share: readable units, axes, thresholds, and notes on what is not shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from etude.errors import InputError, UsageError
from etude.figures.axis_positions import Places
from etude.figures.data import Axis, Bars, Box, Curve, Layer, Line, Point, Scale
from etude.figures.labels import label
from etude.figures.plot_options import PlotOptions, Threshold
from etude.units.formatting import scale_of

MOST_POINTS = 2000
"""Points of a curve; of more, every so many-th is drawn."""

BAR_WORDS = {
    "interval": "{c} % interval of the mean",
    "quartiles": "quartiles around the median",
    "min-max": "smallest to largest around the median",
    "deviation": "one standard deviation around the mean",
}


@dataclass(frozen=True)
class Unit:
    """A unit of an axis, and the divisor of values in the base unit."""

    base: str
    divisor: float = 1.0
    name: str = ""


def unit_for(values: Iterable[float], base: str, wish: PlotOptions) -> Unit:
    """A unit that suits the largest of the values."""
    sizes = [abs(v) for v in values if math.isfinite(v)]
    if wish.plain_units or not sizes or (base == "1" and max(sizes) < 1e4):
        return Unit(base, 1.0, "" if base == "1" else base)
    return Unit(base, *scale_of(max(sizes), base))


def with_unit(text: str, unit: Unit) -> str:
    """`elapsed (ms)`."""
    return f"{text} ({unit.name})" if unit.name else text


def scaled(point: Point, unit: Unit) -> Point:
    """The point with y and its bar in that unit."""
    low, high = (None if v is None else v / unit.divisor for v in (point.low, point.high))
    return replace(point, y=point.y / unit.divisor, low=low, high=high)


def scale(wish: PlotOptions, axis: Literal["x", "y"]) -> Scale:
    """Scale of one axis, as the options set it."""
    return "log" if axis in wish.log else "linear"


def x_axis(places: Places, wish: PlotOptions) -> tuple[Axis, Unit]:
    """The x axis of tests along a parameter."""
    log = scale(wish, "x")
    numbers = [p.x for p in places.placed]
    if places.ticks is not None:
        if log == "log":
            raise UsageError("--log x: x is no number here, it is the tests' names")
        return Axis(label(wish.x_label or places.x_label), "linear", places.ticks, wish.rotate or 0.0), Unit(
            "1"
        )
    if log == "log" and min(numbers, default=1.0) <= 0:
        raise UsageError(f"--log x: x reaches {min(numbers):g}, which has no logarithm")
    if log == "log" and places.unit == "B":
        unit = Unit("B")  # each tick names its own
    elif places.unit is None:
        unit = Unit("1")
    else:
        unit = unit_for(numbers, places.unit, wish)
    text = wish.x_label if wish.x_label is not None else with_unit(places.x_label, unit).strip()
    return Axis(label(text), log, x_ticks(numbers, unit, log), wish.rotate or 0.0), unit


def x_ticks(numbers: Sequence[float], unit: Unit, log: Scale) -> tuple[tuple[float, str], ...] | None:
    """Ticks at the numbers, where they are few or powers of two; None: the drawing chooses them."""
    distinct = sorted({n / unit.divisor for n in numbers})
    if log == "log" and len(distinct) > 1 and all(math.log2(n).is_integer() for n in distinct if n > 0):
        step = max(1, math.ceil(len(distinct) / 6))
        return tuple((n, _power_of_two(n, unit)) for n in distinct[::step])
    close = len(distinct) > 1 and log == "linear" and _closest(distinct) < 0.06 * (distinct[-1] - distinct[0])
    if 1 < len(distinct) <= 8 and not close:
        return tuple((n, f"{n:g}") for n in distinct)
    return None


def _closest(ordered: Sequence[float]) -> float:
    return min(b - a for a, b in pairwise(ordered))


def _power_of_two(n: float, unit: Unit) -> str:
    if unit.base != "B":
        return f"{n:g}"
    divisor, name = scale_of(n, "B")
    return f"{n / divisor:g} {name}"


def y_axis(text: str, unit: Unit, wish: PlotOptions) -> Axis:
    """The y axis of a metric, named as asked."""
    given = wish.y_label
    return Axis(label(with_unit(text, unit) if given is None else given), scale(wish, "y"))


def threshold_lines(thresholds: Sequence[Threshold], unit: Unit, axis: Literal["x", "y"]) -> tuple[Line, ...]:
    """Lines at these values. Raises UsageError for one of another unit."""
    found = []
    for each in thresholds:
        if each.unit is not None and each.unit != unit.base:
            raise UsageError(f"threshold {each.label}: is in {each.unit}, but that axis is in {unit.base}")
        found.append(Line(each.value / unit.divisor, label(each.label), axis))
    return tuple(found)


def mark_lines(
    marks: Sequence[Threshold], unit: Unit, layers: Iterable[Layer]
) -> tuple[tuple[Line, ...], list[str]]:
    """Upright lines at those that lie among the points of the curves, and a word on each that does not.

    Raises UsageError for one of another unit.
    """
    lines = threshold_lines(marks, unit, "x")
    x = [point.x for layer in layers if isinstance(layer, Curve) for point in layer.points]
    if min(x) == max(x):
        return lines, []
    drawn = tuple(line for line in lines if min(x) <= line.at <= max(x))
    beyond = [line for line in lines if line not in drawn]
    return drawn, [
        f"{line.label}, at {_amount(line.at, unit)}, lies outside the x axis and is not drawn"
        for line in beyond
    ]


def _amount(value: float, unit: Unit) -> str:
    divisor, name = scale_of(abs(value), unit.base) if not unit.name else (1.0, unit.name)
    return f"{value / divisor:.4g} {name}".strip()


def bars_note(wish: PlotOptions, layers: Iterable[Layer]) -> list[str]:
    """Notes on the meaning of error bars, and on how many values have none."""
    points: list[Point | Box] = []
    for layer in layers:
        points += layer.points if isinstance(layer, Curve) else layer.boxes if isinstance(layer, Bars) else ()
    kind = wish.bars or "interval"
    if kind == "none":
        return []
    without = sum(p.low is None for p in points)
    said = BAR_WORDS[kind].format(c=f"{100 * wish.confidence:g}")
    if without == len(points):
        return ["no error bars: there are too few trials, or only summaries, to know one"]
    notes = [f"error bars: {said}"]
    if without:
        notes.append(f"{without} of {len(points)} values have too few trials for an error bar")
    return notes


def thinned(points: Sequence[Point], what: str) -> tuple[tuple[Point, ...], list[str]]:
    """The first and the last point and others, MOST_POINTS in all, and a note that says so."""
    if len(points) <= MOST_POINTS:
        return tuple(points), []
    step = (len(points) - 1) / (MOST_POINTS - 1)
    kept = tuple(points[round(n * step)] for n in range(MOST_POINTS))
    return kept, [f"{what}: {MOST_POINTS} of {len(points)} points are drawn"]


def on_log_axis(points: Sequence[Point], wish: PlotOptions, what: str) -> tuple[list[Point], list[str]]:
    """The points that a logarithmic y axis can show, with a note on the others. Raises InputError where none is
    left."""
    if "y" not in wish.log:
        return list(points), []
    kept = [
        p
        if p.low is None or p.low > 0
        else replace(p, low=p.y, high=p.high)  # the bar's lower end is at -infinity
        for p in points
        if p.y > 0
    ]
    if points and not kept:
        raise InputError(f"{what}: nothing to plot on a logarithmic axis: no value is above zero")
    lost = len(points) - len(kept)
    return kept, [f"{what}: {lost} values of zero or below are not on a logarithmic axis"] if lost else []
