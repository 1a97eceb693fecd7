"""Distributions of values: cumulative steps, boxes, violins, histograms, and percentile curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from etude.errors import InputError
from etude.figures.axes import (
    Unit,
    scale,
    spans_decades,
    thinned,
    threshold_lines,
    unit_for,
    with_unit,
    y_axis,
)
from etude.figures.data import (
    LONGEST,
    Axis,
    Bars,
    Box,
    Curve,
    Figure,
    Layer,
    Panel,
    Point,
    Shape,
    check_count,
    label,
    labels,
)
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, shown_metric, single_metric, values_or_refuse
from etude.results.series import Floats
from etude.stats.describe import quartiles

WHISKER = 1.5
"""Whiskers reach to the last value within so many interquartile ranges of the box (Tukey)."""

MOST_BINS = 60
SIDE_BY_SIDE = ("box", "violin")
"""Kinds with a name below each distribution: they need no key."""
OVER_VALUES = ("ecdf", "histogram")
"""Kinds with the values along x."""
GRID = 80
"""Places at which a violin's width is computed."""


@dataclass(frozen=True)
class Distributions:
    """Samples by label, in the unit of their axis, and how they are drawn."""

    values: Mapping[str, Floats]
    text: str
    """Name of the metric."""
    unit: Unit
    wish: PlotOptions
    notes: list[str]

    def check_log(self, axis: Literal["x", "y"]) -> None:
        """Raise InputError where an axis of the values is logarithmic and cannot show all of them."""
        if axis in self.wish.log and min(float(v.min()) for v in self.values.values()) <= 0:
            raise InputError(
                f"{self.text}: some values are zero or below, which a logarithmic axis cannot show"
            )

    def thinned(self, points: Sequence[Point], name: str) -> tuple[Point, ...]:
        """The points that are drawn, with a note where they are fewer."""
        drawn, fewer = thinned(points, name)
        self.notes.extend(fewer)
        return drawn

    def figure(self, kind: str, x: Axis, y: Axis, layers: Sequence[Layer], axis: Literal["x", "y"]) -> Figure:
        """The figure of these layers, and thresholds on the axis of the values."""
        panel = Panel(y, (*layers, *threshold_lines(self.wish.thresholds, self.unit, axis)))
        key = self.wish.key if len(self.values) > 1 and kind not in SIDE_BY_SIDE else "off"
        return Figure(x, (panel,), label(self.wish.title, 120), key, tuple(self.notes), kind)

    def figure_over_values(self, kind: str, y: Axis, layers: Sequence[Layer]) -> Figure:
        """One with the values along x."""
        self.check_log("x")
        given = self.wish.x_label
        text = with_unit(self.text, self.unit) if given is None else given
        x = Axis(label(text), scale(self.wish, "x"), rotate=self.wish.rotate or 0.0)
        return self.figure(kind, x, y, layers, "x")

    def figure_side_by_side(self, kind: str, layers: Sequence[Layer]) -> Figure:
        """One with the names along x."""
        self.check_log("y")
        names = list(self.values)
        rotate = 45.0 if sum(map(len, names)) > 36 else 0.0
        x = Axis(
            label(self.wish.x_label or ""),
            ticks=tuple((float(n), name) for n, name in enumerate(names)),
            rotate=rotate if self.wish.rotate is None else self.wish.rotate,
            low=-0.6,
            high=len(names) - 0.4,
        )
        return self.figure(kind, x, y_axis(self.text, self.unit, self.wish), layers, "y")


def distribution(samples: Sequence[Sample], wish: PlotOptions, kind: str) -> Figure:
    """One of ecdf, box, violin, histogram, percentiles. Raises InputError where no value is known."""
    metric = single_metric(samples, wish, f"--kind {kind}")
    found = values_or_refuse(samples, metric, kind)
    shown = labels((s.name for s in samples), 24 if kind in SIDE_BY_SIDE else LONGEST)
    notes = [f"{shown[s.name]}: has no value" for s in samples if s.name not in found]
    unit = unit_for((float(np.median(values)) for values in found.values()), samples[0].unit(metric), wish)
    named = {shown[name]: values / unit.divisor for name, values in found.items()}
    check_count(len(named), "distributions")
    if not wish.log and spans_decades(np.concatenate(list(named.values()))):
        wish = replace(wish, log="x" if kind in OVER_VALUES else "y")
        notes.append(f"the axis of {shown_metric(metric, wish)} is logarithmic, as its values suggest")
    return _KINDS[kind](Distributions(named, shown_metric(metric, wish), unit, wish, notes))


def _ecdf(found: Distributions) -> Figure:
    layers = []
    for colour, (name, x) in enumerate(found.values.items()):
        ordered = np.sort(x)
        points = [Point(float(ordered[0]), 0.0)]
        points += [Point(float(v), (n + 1) / ordered.size) for n, v in enumerate(ordered)]
        layers.append(Curve(name, found.thinned(points, name), colour, "steps"))
    y = Axis(label(found.wish.y_label or "share of trials at or below"), low=0.0, high=1.02)
    return found.figure_over_values("ecdf", y, layers)


def _percentiles(found: Distributions) -> Figure:
    """Values over percentiles, with as much room for 99 to 99.9 as for 90 to 99."""
    layers = []
    most = max(x.size for x in found.values.values())
    for colour, (name, x) in enumerate(found.values.items()):
        points = [Point(float(1.0 / (1.0 - rank / x.size)), float(v)) for rank, v in enumerate(np.sort(x))]
        layers.append(Curve(name, found.thinned(points, name), colour, "line"))
    shares = [
        s for s in (0.0, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999) if 1.0 / (1.0 - s) <= most * 1.001
    ]
    x_axis = Axis(
        label(found.wish.x_label or "percentile"),
        "log",
        tuple((1.0 / (1.0 - s), f"{100 * s:.6g}") for s in shares),
        found.wish.rotate or 0.0,
        1.0,
        max(2.0, float(most)),
    )
    return found.figure("percentiles", x_axis, y_axis(found.text, found.unit, found.wish), layers, "y")


def _histogram(found: Distributions) -> Figure:
    """Bins of one width for all, after Freedman and Diaconis; each bar is a share of its own test's trials."""
    found.check_log("x")
    log = "x" in found.wish.log
    seen = {name: np.log10(x) if log else x for name, x in found.values.items()}
    edges = _edges(list(seen.values()))
    shown = 10.0**edges if log else edges
    layers: list[Layer] = []
    for colour, (name, x) in enumerate(seen.items()):
        counts, _ = np.histogram(x, edges)
        if len(seen) == 1:
            boxes = tuple(
                Box(float(a + b) / 2, float(b - a), 0.0, float(count) / x.size)
                for (a, b), count in zip(pairwise(shown), counts, strict=True)
                if count
            )
            layers.append(Bars(name, boxes, colour))
            continue
        steps = [Point(float(shown[0]), 0.0)]
        steps += [Point(float(a), float(c) / x.size) for a, c in zip(shown, counts, strict=False)]
        layers.append(Curve(name, (*steps, Point(float(shown[-1]), 0.0)), colour, "steps"))
    y = Axis(label(found.wish.y_label or "share of trials"), low=0.0)
    return found.figure_over_values("histogram", y, layers)


def _edges(samples: Sequence[Floats]) -> Floats:
    """Edges of bins as narrow as the sample with the narrowest needs: pooled, apart samples would share one bin."""
    values = np.concatenate(samples)
    low, high = float(values.min()), float(values.max())
    if low == high:
        half = abs(low) * 0.05 or 0.5
        return np.array([low - half, low + half])
    widths = [2.0 * (third - first) / x.size ** (1 / 3) for x in samples for first, third in [quartiles(x)]]
    width = min((width for width in widths if width > 0), default=0.0)
    bins = int(np.clip(np.ceil((high - low) / width) if width > 0 else 10, 1, MOST_BINS))
    return np.linspace(low, high, bins + 1)


def _box(found: Distributions) -> Figure:
    layers: list[Layer] = []
    for place, x in enumerate(found.values.values()):
        first, third = quartiles(x)
        reach = WHISKER * (third - first)
        inside = x[(x >= first - reach) & (x <= third + reach)]
        low, high, middle = float(inside.min()), float(inside.max()), float(np.median(x))
        halves = (Box(place, 0.6, first, middle, low, high), Box(place, 0.6, middle, third))
        layers.append(Bars("", halves, place, pale=True))
        outside = [Point(float(place), float(v)) for v in x[(x < low) | (x > high)]]
        if outside:
            layers.append(Curve("", found.thinned(outside, "outside"), place, "hollow"))
    found.notes.append(
        "boxes: quartiles and median; whiskers: the last value within 1.5 interquartile ranges"
    )
    return found.figure_side_by_side("box", layers)


def _violin(found: Distributions) -> Figure:
    layers: list[Layer] = []
    for place, (name, x) in enumerate(found.values.items()):
        outline = _outline(x, float(place), "y" in found.wish.log)
        if not outline:
            found.notes.append(f"{name}: too few different values for a violin; they are drawn as points")
            few = tuple(Point(float(place), float(v)) for v in np.unique(x)[:50])
            layers.append(Curve("", few, place, "dots"))
            continue
        layers.append(Shape("", outline, place))
        first, third = quartiles(x)
        layers.append(Bars("", (Box(place, 0.06, first, third),), place, pale=True))
        layers.append(Curve("", (Point(float(place), float(np.median(x))),), place, "hollow"))
    found.notes.append("violins: kernel density; inside the quartiles and the median")
    return found.figure_side_by_side("violin", layers)


def _outline(x: Floats, place: float, log: bool) -> tuple[tuple[float, float], ...]:
    """A closed line of the density to either side; empty for values that have none. It ends at the extremes."""
    if np.unique(x).size < 3 or (log and float(x.min()) <= 0):
        return ()
    from scipy.stats import gaussian_kde

    seen = np.log(x) if log else x
    spread = float(np.std(seen))
    if not spread > 1e-12 * max(abs(float(seen.mean())), 1e-300):
        return ()
    sparse = seen[:: max(1, seen.size // 5000)]
    grid = np.linspace(float(seen.min()), float(seen.max()), GRID)
    density = gaussian_kde((sparse - seen.mean()) / spread)((grid - seen.mean()) / spread)
    half = 0.4 * density / density.max()
    y = np.exp(grid) if log else grid
    right = [(place + float(h), float(v)) for h, v in zip(half, y, strict=True)]
    left = [(place - float(h), float(v)) for h, v in zip(half[::-1], y[::-1], strict=True)]
    return (*right, *left)


_KINDS = {
    "ecdf": _ecdf,
    "box": _box,
    "violin": _violin,
    "histogram": _histogram,
    "percentiles": _percentiles,
}
