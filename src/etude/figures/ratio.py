"""Two panels on one x axis: the metric, and below it its ratios to a reference, or how surely a t test tells series
apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from etude.analysis.comparisons import noise_of
from etude.errors import InputError, UsageError
from etude.figures.axes import AxisPosition, mark_lines, place, threshold_lines, x_axis, y_axis
from etude.figures.data import (
    GREY,
    Axis,
    Curve,
    Figure,
    Layer,
    Line,
    Mark,
    Panel,
    Point,
    Shape,
    label,
    labels,
)
from etude.figures.lines import curve_points, curves, points_missing
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, bars_note, shown_metric, single_metric
from etude.results.series import Floats
from etude.stats.crossings import DRAWS, FEWEST_TRIALS, Crossing, crossing
from etude.stats.ranks import Shift, mann_whitney
from etude.stats.resampling import resampled_medians
from etude.stats.twosample import Difference, student, welch
from etude.units.formatting import scale_of

Pair = tuple[float, Floats, Floats]

MEDIANS = ("quartiles", "min-max")
"""Error bars that stand around medians: intervals of crossings are of these."""

LEVELS = (1.01, 1.05)
BELOW = (0.95, 0.99)
"""Ratios of small differences: 5 % and 1 %."""
NOISE = "A/A noise"


P_LEVEL = 0.05
SMALLEST = 1e-12
"""Smaller p-values are drawn here: their size means nothing any more."""
PValue = Callable[[Floats, Floats], Difference | Shift]


def ratio(samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """Medians with quartiles above; below the ratios of the medians, and where they cross 1 % and 5 %."""
    wish = replace(wish, bars=wish.bars or "quartiles")
    top = Upper(samples, wish, "ratio")
    ratios = [
        (name, divided(points, top.points[top.reference]))
        for name, points in top.points.items()
        if name != top.reference
    ]
    notes = list(top.notes)
    noise = top.noise(wish.confidence)
    layers: list[Layer] = _noise_band(noise)
    if noise:
        notes.append(
            f"{NOISE}: {100 * wish.confidence:g} % of means of the reference against itself stay within"
        )
    known = 0
    below = any(p.y < BELOW[-1] for _, points in ratios for p in points)
    levels = [*(BELOW if below else ()), *LEVELS]
    layers += _level_lines([*levels, 1.0], [p.y for _, points in ratios for p in points])
    for name, points in ratios:
        if not points:
            raise UsageError(f"{name}: has no x in common with {top.reference}: there is no ratio")
        pairs = top.pairs(name) if wish.bars in MEDIANS else []
        points = _with_intervals(points, pairs, top.x_unit.divisor, wish.confidence)
        known += sum(point.low is not None for point in points)
        layers.append(Curve("", tuple(points), top.colours[name]))
        for level in levels:
            marks, said = _level_marks(name, points, level, pairs, top, wish)
            layers += marks
            notes += said
    if known:
        notes.append(f"ratios: {100 * wish.confidence:g} % intervals (bootstrap)")
    low = Panel(Axis(label(f"ratio to {top.names[top.reference]}", 32)), tuple(layers), 0.8)
    return Figure(top.axis, (top.panel, low), label(wish.title, 120), wish.key, tuple(notes), "ratio")


def _noise_band(noise: Sequence[Point]) -> list[Layer]:
    """The range around 1 in which ratios of identical commands stay, as an area; at a single x as a bar."""
    if len(noise) < 2:
        return [Curve(NOISE, tuple(noise), GREY, "dots")] if noise else []
    upper = [(point.x, 1.0 if point.high is None else point.high) for point in noise]
    lower = [(point.x, 1.0 if point.low is None else point.low) for point in reversed(noise)]
    return [Shape(NOISE, (*upper, *lower), GREY)]


def _with_intervals(
    points: Sequence[Point], pairs: Sequence[Pair], divisor: float, confidence: float
) -> list[Point]:
    """The ratios with their intervals, by medians of trials drawn anew; without where a side has too few trials."""
    trials = {x / divisor: (base, other) for x, base, other in pairs}
    found = []
    for point in points:
        sides = trials.get(point.x)
        if (
            sides is not None
            and min(side.size for side in sides) >= FEWEST_TRIALS
            and min(map(np.min, sides)) > 0
        ):
            drawn = resampled_medians(sides, DRAWS, np.random.default_rng(0))
            tail = (1.0 - confidence) / 2.0
            low, high = np.quantile(drawn[:, 1] / drawn[:, 0], (tail, 1.0 - tail))
            point = replace(point, low=min(float(low), point.y), high=max(float(high), point.y))
        found.append(point)
    return found


def _level_marks(
    name: str, points: Sequence[Point], level: float, pairs: Sequence[Pair], top: Upper, wish: PlotOptions
) -> tuple[list[Mark], list[str]]:
    """Marks where the drawn line crosses the level, with the interval of the last crossing."""
    log = "x" in wish.log
    places = list(crossings(points, level, log=log))
    found = _crossing(pairs, level, log, wish) if pairs else None
    if not places:
        why = _told(found.why, points, top) if found is not None and found.why else None
        return [], [f"{top.names[name]} does not cross {_percent(level)}: {why}"] if why else []
    marks = [Mark(x, level, top.shown_x(x)) for x in places]
    said = [f"{top.names[name]} crosses {_percent(level)} at {mark.label}" for mark in marks]
    if found is not None and found.interval is not None:
        low, high = (end / top.x_unit.divisor for end in (found.interval.low, found.interval.high))
        marks[-1] = replace(marks[-1], low=low, high=high)
        said[-1] += f" ({top.shown_range(low, high)}, {100 * wish.confidence:g} %)"
    elif found is not None and found.why:
        said[-1] += f" ({found.why})"
    return marks, said


def _told(why: str, points: Sequence[Point], top: Upper) -> str:
    """The reason with the last size as the axis tells it."""
    said, comma, _ = why.partition(", ")
    return f"{said}, {top.shown_x(points[-1].x)}" if comma else said


def _crossing(pairs: Sequence[Pair], level: float, log: bool, wish: PlotOptions) -> Crossing | None:
    x, base, other = zip(*pairs, strict=True)
    try:
        return crossing(x, base, other, level, log=log, confidence=wish.confidence)
    except ValueError:
        return None  # one point, or values at zero: the line is drawn, and nothing more is known


def _level_lines(levels: Sequence[float], ratios: Sequence[float]) -> list[Line]:
    """Lines with their names; where these would stand on each other, the highest line has them all."""
    span = max([*ratios, max(levels)]) - min([*ratios, min(levels)])
    ordered = sorted(levels)
    if min(b - a for a, b in pairwise(ordered)) > 0.06 * span:
        return [Line(level, _percent(level), side="left") for level in ordered]
    names = ", ".join(map(_percent, ordered))
    return [Line(level, names if level == ordered[-1] else "", side="left") for level in ordered]


class Upper:
    """The upper panel of figures with two, and what the lower one is made from."""

    def __init__(self, samples: Sequence[Sample], wish: PlotOptions, kind: str) -> None:
        metric = single_metric(samples, wish, f"--kind {kind}")
        places = place(samples, wish.parameter)
        self.placed: dict[str, list[AxisPosition]] = places.curves()
        self.names = labels(self.placed)
        if len(self.placed) < 2:
            raise UsageError(
                f"--kind {kind} compares series over x; there is only one: {next(iter(self.placed)) or '–'}"
            )
        self.metric = metric
        self.axis, self.x_unit = x_axis(places, wish)
        self.points = {
            name: curve_points(placed, metric, wish, self.x_unit) for name, placed in self.placed.items()
        }
        self.reference = _reference(list(self.points), wish)
        self.colours = {name: n for n, name in enumerate(self.points)}
        found, unit, notes = curves(list(self.points.items()), samples[0].unit(metric), wish)
        marks, outside = mark_lines(wish.marks, self.x_unit, found)
        lines = (*threshold_lines(wish.thresholds, unit, "y"), *marks)
        self.panel = Panel(y_axis(shown_metric(metric, wish), unit, wish), (*found, *lines), 1.2)
        self.notes = [
            *notes,
            *(
                note
                for name, placed in self.placed.items()
                for note in points_missing(placed, len(self.points[name]), metric, wish)
            ),
            *bars_note(wish, [point for curve in found for point in curve.points]),
            *outside,
        ]

    def pairs(self, name: str) -> list[Pair]:
        """x with the trials of the reference and of that series, where both have some."""
        base = {p.x: p.sample.values(self.metric) for p in self.placed[self.reference]}
        found = [(p.x, base[p.x], p.sample.values(self.metric)) for p in self.placed[name] if p.x in base]
        return [pair for pair in found if pair[1].size and pair[2].size]

    def noise(self, confidence: float) -> list[Point]:
        """1 with the A/A noise of the reference's means at each x at which it also ran against itself, for the fewest
        trials of any series there."""
        found = []
        for p in self.placed[self.reference]:
            sample = p.sample
            if sample.subject is None or sample.series is None or sample.series.column(self.metric) is None:
                continue
            here = [each.sample for placed in self.placed.values() for each in placed if each.x == p.x]
            pairs = min(each.values(self.metric).size for each in here)
            off = noise_of(sample.subject, sample.series, self.metric, pairs, confidence)
            if off is not None and math.isfinite(off):
                found.append(Point(p.x / self.x_unit.divisor, 1.0, 1.0 / (1.0 + off), 1.0 + off))
        return sorted(found, key=lambda point: point.x)

    def shown_x(self, x: float) -> str:
        """A place on the x axis in words."""
        return " ".join(filter(None, self._number_and_unit(x)))

    def shown_range(self, low: float, high: float) -> str:
        """Two of them; a unit that both have is said once."""
        ends = self._number_and_unit(low), self._number_and_unit(high)
        if ends[0][1] == ends[1][1]:
            return f"{ends[0][0]}–{self.shown_x(high)}"
        return f"{self.shown_x(low)} to {self.shown_x(high)}"

    def _number_and_unit(self, x: float) -> tuple[str, str]:
        if self.x_unit.base == "B" and not self.x_unit.name:
            divisor, name = scale_of(x, "B")
            return f"{x / divisor:.3g}", name
        return f"{x:.3g}", self.x_unit.name


def _reference(names: Sequence[str], wish: PlotOptions) -> str:
    if wish.reference is None:
        return names[0]
    if wish.reference not in names:
        raise UsageError(f"--reference {wish.reference}: no such series; there are {', '.join(names[:12])}")
    return wish.reference


def divided(points: Sequence[Point], by: Sequence[Point]) -> list[Point]:
    """The ratio at each x that both have, where the divisor is above zero."""
    base = {p.x: p.y for p in by if p.y > 0}
    return [Point(p.x, p.y / base[p.x]) for p in points if p.x in base]


def crossings(points: Sequence[Point], level: float, *, log: bool) -> Iterator[float]:
    """Places where the line between neighbouring points crosses the level; on a logarithmic axis along its own line."""
    for a, b in pairwise(points):
        if a.y == level:
            yield a.x
        elif (a.y - level) * (b.y - level) < 0:
            part = (level - a.y) / (b.y - a.y)
            yield a.x * (b.x / a.x) ** part if log else a.x + part * (b.x - a.x)
    if points and points[-1].y == level:
        yield points[-1].x


def _percent(level: float) -> str:
    if level == 1.0:
        return "1:1"
    return f"{100 * (level - 1):+.2g} %" if level > 1 else f"{100 * (level - 1):.2g} %".replace("-", "−")


def pvalues(samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """Means with a deviation to either side above; below p of the t test, of all and of the first n trials."""
    wish = replace(wish, bars=wish.bars or "deviation")
    top = Upper(samples, wish, "pvalues")
    method = "Student" if wish.pooled else "Welch"
    test: PValue = student if wish.pooled else welch
    tests = [(test, count, f"first {count} trials" if count else "all trials") for count in (0, *wish.first)]
    tests += [(mann_whitney, 0, "all trials, Mann-Whitney")] if wish.ranks else []
    base = {p.x: p.sample for p in top.placed[top.reference]}
    layers: list[Layer] = [Line(P_LEVEL, f"p = {P_LEVEL:g}", side="left")]
    notes, found = list(top.notes), 0
    several = len(top.placed) > 2
    called = labels(f"{name} {shown}" if several else shown for name in top.placed for _, _, shown in tests)
    for name, placed in top.placed.items():
        for test, count, shown in tests if name != top.reference else ():
            pairs = [
                (p.x, p.sample.values(top.metric), base[p.x].values(top.metric))
                for p in placed
                if p.x in base
            ]
            points = [
                point for x, a, b in pairs if (point := _p_point(x / top.x_unit.divisor, a, b, count, test))
            ]
            if count and not points:
                notes.append(
                    f"no x has {count} trials of both {top.names[name]} and {top.names[top.reference]}: "
                    "these are not drawn"
                )
                continue
            found += len(points)
            curve = called[f"{name} {shown}" if several else shown]
            layers.append(Curve(curve, tuple(points), len(top.placed) + len(layers) - 1))
    if not found:
        raise InputError(
            "nothing to plot: no x has two trials of both series, or none varies: there is no p-value"
        )
    if any(p.y <= SMALLEST for layer in layers if isinstance(layer, Curve) for p in layer.points):
        notes.append(f"p-values below {SMALLEST:g} are drawn there")
    notes.append(f"p: {method}'s t test, two-sided; it assumes normal values, and does not show size")
    if wish.ranks:
        notes.append("p of Mann-Whitney: two-sided, by ranks; it supposes nothing of the shape")
    low = Panel(Axis("p" if wish.ranks else f"p ({method})", "log", high=1.5), tuple(layers), 0.8)
    return Figure(top.axis, (top.panel, low), label(wish.title, 120), wish.key, tuple(notes), "pvalues")


def _p_point(x: float, first: Floats, second: Floats, count: int, test: PValue) -> Point | None:
    a, b = (values[:count] if count else values for values in (first, second))
    if min(a.size, b.size) < max(2, count):
        return None
    try:
        return Point(x, max(test(a, b).p, SMALLEST))
    except ValueError:
        return None
