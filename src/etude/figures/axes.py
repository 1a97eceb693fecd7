"""Axes that kinds of figures share: positions of tests along x, readable units, thresholds, and what is not shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from etude.errors import InputError, UsageError
from etude.figures.data import Axis, Curve, Layer, Line, Point, Scale, label, labels
from etude.figures.plot_options import PlotOptions, Threshold
from etude.figures.sources import Sample
from etude.results.series import Floats
from etude.units.formatting import scale_of
from etude.units.parsing import quantity

_PART = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[kKMGT](?:i?B)?(?![A-Za-z]))?")
_OPTION = re.compile(r"(?<!\S)-[^\s=]*")
"""A word that begins with a dash, up to its value: `-5` of `gzip -5` chooses a way, not an amount."""


MOST_SLANTED = 14
"""Names that stand side by side at 45 degrees; more stand upright."""
MOST_POINTS = 2000
"""Points of a curve; of more, every so many-th is drawn."""


@dataclass(frozen=True, eq=False)
class AxisPosition:
    """A test on its curve."""

    curve: str
    x: float
    sample: Sample


@dataclass(frozen=True, eq=False)
class Places:
    """All of them, in order of curve and x."""

    placed: tuple[AxisPosition, ...]
    x_label: str
    ticks: tuple[tuple[float, str], ...] | None = None
    """Names along the axis where x is no number."""
    unit: str | None = None
    """Base unit of x, where it has one."""
    named: bool = False
    """True if x is a number in the names of the tests, which may be only their number."""

    def curves(self) -> dict[str, list[AxisPosition]]:
        """Positions by the name of the curve, each in order of x."""
        found: dict[str, list[AxisPosition]] = {}
        for each in self.placed:
            found.setdefault(each.curve, []).append(each)
        return {name: sorted(places, key=lambda p: p.x) for name, places in found.items()}


def place(samples: Sequence[Sample], parameter: str | None = None) -> Places:
    """Position of each test.

    Raises:
        UsageError: no test has the parameter.
    """
    varying = _varying(samples)
    if parameter is not None:
        return _by_parameter(samples, parameter)
    numeric = [
        name
        for name in varying
        if all(name in s.parameters and quantity(s.parameters[name]) for s in samples)
    ]
    if numeric:
        return _by_parameter(samples, numeric[-1])
    return by_names(samples, [sample.name for sample in samples])


def _varying(samples: Sequence[Sample]) -> list[str]:
    names = dict.fromkeys(name for sample in samples for name in sample.parameters)
    return [name for name in names if len({sample.parameters.get(name) for sample in samples}) > 1]


def _by_parameter(samples: Sequence[Sample], parameter: str) -> Places:
    having = [sample for sample in samples if parameter in sample.parameters]
    if not having:
        known = dict.fromkeys(name for sample in samples for name in sample.parameters)
        raise UsageError(
            f"--x {parameter}: no test has that parameter; they have {', '.join(known) or 'none'}"
        )
    others = [name for name in _varying(having) if name != parameter]
    curves = [_rest(sample, parameter, others) for sample in having]
    return _places(having, curves, [sample.parameters[parameter] for sample in having], label(parameter))


def _rest(sample: Sample, parameter: str, others: Sequence[str]) -> str:
    """Name of the curve: the other parameters that vary, else the test's name without the value of x."""
    if len(others) == 1 and quantity(sample.parameters.get(others[0], "0")) is None:
        return sample.parameters[others[0]]  # a word says what it is
    if others:
        return ", ".join(f"{name}={sample.parameters.get(name, '–')}" for name in others)
    value = sample.parameters[parameter]
    name = sample.name.replace(f"{parameter}={value}", "")
    for part in list(_PART.finditer(name))[::-1]:
        if part[0] == value:
            name = name[: part.start()] + name[part.end() :]
            break
    return re.sub(r"\(\s*,?\s*\)", "", name).strip(" ,:-_/") or parameter


def by_names(samples: Sequence[Sample], names: Sequence[str]) -> Places:
    """x is the last number in the names that varies among names which are alike but for their numbers.

    `ext4:1`, `ext4:2` and `xfs:1` are two curves over 1 and 2; digits of an option are no number.
    Without such a number the names themselves stand along the axis, of one curve.
    """
    parts = [_numbers(name) for name in names]
    common = min((len(found) for found in parts), default=0)
    for back in range(1, common + 1):
        rests = [
            name[: p[-back].start()] + "\0" + name[p[-back].end() :]
            for name, p in zip(names, parts, strict=True)
        ]
        varying: Mapping[str, set[str]] = {rest: set() for rest in rests}
        for rest, found in zip(rests, parts, strict=True):
            varying[rest].add(found[-back][0])
        if any(len(values) > 1 for values in varying.values()):
            curves = [rest.replace("\0", "").strip(" ,:-_/=()") for rest in rests]
            return replace(_places(samples, curves, [found[-back][0] for found in parts], ""), named=True)
    places = tuple(AxisPosition("", float(n), sample) for n, sample in enumerate(samples))
    shown = labels(names, 24)
    return Places(places, "", tuple((float(n), shown[name]) for n, name in enumerate(names)))


def _numbers(name: str) -> list[re.Match[str]]:
    options = [match.span() for match in _OPTION.finditer(name)]
    found = _PART.finditer(name)
    return [part for part in found if not any(start <= part.start() < end for start, end in options)]


def _places(samples: Sequence[Sample], curves: Sequence[str], texts: Sequence[str], x_label: str) -> Places:
    numbers = [quantity(text) for text in texts]
    known = [found for found in numbers if found is not None]
    if len(known) < len(numbers):
        order = list(dict.fromkeys(texts))
        placed = tuple(
            AxisPosition(curve, float(order.index(text)), sample)
            for curve, text, sample in zip(curves, texts, samples, strict=True)
        )
        shown = labels(order, 24)
        return Places(placed, x_label, tuple((float(n), shown[text]) for n, text in enumerate(order)))
    units = {unit for _, unit in known}
    placed = tuple(
        AxisPosition(curve, x, sample) for curve, (x, _), sample in zip(curves, known, samples, strict=True)
    )
    return Places(placed, x_label, unit=units.pop() if len(units) == 1 else None)


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


DECADES = 2.0
"""Decades from which on an axis is logarithmic, unless the options set one."""


def spans_decades(values: Sequence[float] | Floats) -> bool:
    """True if all values are above 0, and the largest is at least 100 times the smallest."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return low > 0.0 and math.log10(high / low) >= DECADES


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
        rotate = turned([name for _, name in places.ticks]) if wish.rotate is None else wish.rotate
        return Axis(label(wish.x_label or places.x_label), "linear", places.ticks, rotate), Unit("1")
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


def turned(names: Sequence[str]) -> float:
    """Degrees by which names along x are turned so that they do not touch."""
    if sum(max(len(name), 4) for name in names) <= 44:
        return 0.0
    return 90.0 if len(names) > MOST_SLANTED else 45.0


def x_ticks(numbers: Sequence[float], unit: Unit, log: Scale) -> tuple[tuple[float, str], ...] | None:
    """Ticks at the numbers, where they are few or powers of two; None: the drawing chooses them."""
    distinct = sorted({n / unit.divisor for n in numbers})
    if log == "log" and len(distinct) > 1 and all(math.log2(n).is_integer() for n in distinct if n > 0):
        step = max(1, math.ceil(len(distinct) / 6))
        return tuple((n, _power_of_two(n, unit)) for n in distinct[::step])
    if not 1 < len(distinct) <= 8:
        return None
    closest = min(b - a for a, b in pairwise(distinct))
    if log == "linear" and closest < 0.06 * (distinct[-1] - distinct[0]):
        return None
    return tuple((n, f"{n:g}") for n in distinct)


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
    """Lines at these values. Raises UsageError for one of another unit, or without the axis's."""
    found = []
    for each in thresholds:
        if each.unit is None and each.value and unit.base != "1":
            shown = unit.name or unit.base
            base = f" or {each.value:g} {unit.base}" if shown != unit.base else ""
            raise UsageError(
                f"threshold {each.label}: has no unit, but the {axis} axis is in {shown}: write "
                f"{each.value:g} {shown}{base}"
            )
        if each.unit is not None and each.unit != unit.base:
            axis_is = "has no unit" if unit.base == "1" else f"is in {unit.base}"
            raise UsageError(f"threshold {each.label}: is in {each.unit}, but the {axis} axis {axis_is}")
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
