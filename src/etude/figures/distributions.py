"""Distributions of values: cumulative steps, boxes, violins, histograms, and percentile curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from etude.errors import InputError, UsageError
from etude.figures.common import Unit, scale, thinned, threshold_lines, unit_for, with_unit, y_axis
from etude.figures.data import Axis, Bars, Box, Curve, Figure, Layer, Panel, Point, Shape
from etude.figures.labels import check_count, label
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, chosen_metrics, shown_metric, values_or_refuse
from etude.results.series import Floats
from etude.stats.describe import quartiles

WHISKER = 1.5
"""Whiskers reach to the last value within so many interquartile ranges of the box (Tukey)."""

MOST_BINS = 60
GRID = 80
"""Places at which a violin's width is computed."""

Values = Mapping[str, Floats]


def distribution(samples: Sequence[Sample], wish: PlotOptions, kind: str) -> Figure:
    """One of ecdf, box, violin, histogram, percentiles. Raises InputError where no value is known."""
    (metric, *others) = chosen_metrics(samples, wish)
    if others:
        raise UsageError(f"--kind {kind} shows one metric; name one")
    found = values_or_refuse(samples, metric, kind)
    notes = [f"{label(s.name)}: has no value" for s in samples if s.name not in found]
    unit = unit_for((float(np.median(values)) for values in found.values()), samples[0].unit(metric), wish)
    named = {name: values / unit.divisor for name, values in found.items()}
    check_count(len(named), "distributions")
    return _KINDS[kind](named, shown_metric(metric, wish), unit, wish, notes)


def _over_values(values: Values, text: str, unit: Unit, wish: PlotOptions) -> Axis:
    """An x axis of the values themselves."""
    if "x" in wish.log and min(float(v.min()) for v in values.values()) <= 0:
        raise InputError(f"{text}: some values are zero or below, which a logarithmic axis cannot show")
    given = wish.x_label
    return Axis(
        label(with_unit(text, unit) if given is None else given), scale(wish, "x"), None, wish.rotate or 0.0
    )


def _ecdf(values: Values, text: str, unit: Unit, wish: PlotOptions, notes: list[str]) -> Figure:
    layers: list[Layer] = []
    for colour, (name, x) in enumerate(values.items()):
        ordered = np.sort(x)
        points = [Point(float(ordered[0]), 0.0)]
        points += [Point(float(v), (n + 1) / ordered.size) for n, v in enumerate(ordered)]
        drawn, fewer = thinned(points, label(name))
        notes += fewer
        layers.append(Curve(label(name), drawn, colour, "steps"))
    y = Axis(label(wish.y_label or "share of trials at or below"), low=0.0, high=1.02)
    panel = Panel(y, (*layers, *threshold_lines(wish.thresholds, unit, "x")))
    return _figure(_over_values(values, text, unit, wish), panel, wish, notes, "ecdf", len(values))


def _percentiles(values: Values, text: str, unit: Unit, wish: PlotOptions, notes: list[str]) -> Figure:
    """Values over percentiles, with as much room for 99 to 99.9 as for 90 to 99."""
    layers: list[Layer] = []
    most = max(x.size for x in values.values())
    for colour, (name, x) in enumerate(values.items()):
        ordered = np.sort(x)
        ranks = np.arange(ordered.size)
        points = [
            Point(float(1.0 / (1.0 - rank / ordered.size)), float(v))
            for rank, v in zip(ranks, ordered, strict=True)
        ]
        drawn, fewer = thinned(points, label(name))
        notes += fewer
        layers.append(Curve(label(name), drawn, colour, "line"))
    shares = [
        s for s in (0.0, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999) if 1.0 / (1.0 - s) <= most * 1.001
    ]
    ticks = tuple((1.0 / (1.0 - s), f"{100 * s:.6g}") for s in shares)
    axis = Axis(
        label(wish.x_label or "percentile"), "log", ticks, wish.rotate or 0.0, 1.0, max(2.0, float(most))
    )
    panel = Panel(y_axis(text, unit, wish), (*layers, *threshold_lines(wish.thresholds, unit, "y")))
    return _figure(axis, panel, wish, notes, "percentiles", len(values))


def _histogram(values: Values, text: str, unit: Unit, wish: PlotOptions, notes: list[str]) -> Figure:
    """Bins of one width for all, after Freedman and Diaconis; each bar is a share of its own test's trials."""
    axis = _over_values(values, text, unit, wish)
    log = axis.scale == "log"
    together = np.concatenate([np.log10(x) if log else x for x in values.values()])
    edges = _edges(together)
    layers: list[Layer] = []
    for colour, (name, x) in enumerate(values.items()):
        counts, _ = np.histogram(np.log10(x) if log else x, edges)
        shown = 10.0**edges if log else edges
        boxes = tuple(
            Box(float(a + b) / 2, float(b - a), 0.0, float(count) / x.size)
            for (a, b), count in zip(pairwise(shown), counts, strict=True)
            if count
        )
        if len(values) == 1:
            layers.append(Bars(label(name), boxes, colour))
            continue
        steps = [Point(float(shown[0]), 0.0)]
        steps += [Point(float(a), float(c) / x.size) for a, c in zip(shown, counts, strict=False)]
        layers.append(Curve(label(name), (*steps, Point(float(shown[-1]), 0.0)), colour, "steps"))
    panel = Panel(
        Axis(label(wish.y_label or "share of trials"), low=0.0),
        (*layers, *threshold_lines(wish.thresholds, unit, "x")),
    )
    return _figure(axis, panel, wish, notes, "histogram", len(values))


def _edges(values: Floats) -> Floats:
    low, high = float(values.min()), float(values.max())
    if low == high:
        half = abs(low) * 0.05 or 0.5
        return np.array([low - half, low + half])
    first, third = quartiles(values)
    width = 2.0 * (third - first) / values.size ** (1 / 3)
    bins = int(np.clip(np.ceil((high - low) / width) if width > 0 else 10, 1, MOST_BINS))
    return np.linspace(low, high, bins + 1)


def _box(values: Values, text: str, unit: Unit, wish: PlotOptions, notes: list[str]) -> Figure:
    layers: list[Layer] = []
    for place, x in enumerate(values.values()):
        first, third = quartiles(x)
        reach = WHISKER * (third - first)
        inside = x[(x >= first - reach) & (x <= third + reach)]
        low, high, middle = float(inside.min()), float(inside.max()), float(np.median(x))
        halves = (Box(place, 0.6, first, middle, low, high), Box(place, 0.6, middle, third))
        layers.append(Bars("", halves, place, pale=True))
        outside, fewer = thinned(
            [Point(float(place), float(v)) for v in x[(x < low) | (x > high)]], "outside"
        )
        notes += fewer
        if outside:
            layers.append(Curve("", outside, place, "hollow"))
    notes.append("boxes: quartiles and median; whiskers: the last value within 1.5 interquartile ranges")
    return _side_by_side(values, layers, text, unit, wish, notes, "box")


def _violin(values: Values, text: str, unit: Unit, wish: PlotOptions, notes: list[str]) -> Figure:
    layers: list[Layer] = []
    for place, (name, x) in enumerate(values.items()):
        outline = _outline(x, float(place), "y" in wish.log)
        if outline:
            layers.append(Shape("", outline, place))
        else:
            notes.append(f"{label(name)}: too few different values for a violin; they are drawn as points")
            few = tuple(Point(float(place), float(v)) for v in np.unique(x)[:50])
            layers.append(Curve("", few, place, "dots"))
            continue
        first, third = quartiles(x)
        layers.append(Bars("", (Box(place, 0.06, first, third),), place, pale=True))
        layers.append(Curve("", (Point(float(place), float(np.median(x))),), place, "hollow"))
    notes.append("violins: kernel density; inside the quartiles and the median")
    return _side_by_side(values, layers, text, unit, wish, notes, "violin")


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


def _side_by_side(
    values: Values,
    layers: Sequence[Layer],
    text: str,
    unit: Unit,
    wish: PlotOptions,
    notes: list[str],
    kind: str,
) -> Figure:
    if "y" in wish.log and min(float(v.min()) for v in values.values()) <= 0:
        raise InputError(f"{text}: some values are zero or below, which a logarithmic axis cannot show")
    names = [label(name, 24) for name in values]
    rotate = wish.rotate if wish.rotate is not None else (45.0 if sum(map(len, names)) > 36 else 0.0)
    ticks = tuple((float(n), name) for n, name in enumerate(names))
    axis = Axis(label(wish.x_label or ""), "linear", ticks, rotate, -0.6, len(names) - 0.4)
    panel = Panel(y_axis(text, unit, wish), (*layers, *threshold_lines(wish.thresholds, unit, "y")))
    return _figure(axis, panel, wish, notes, kind, 1)


def _figure(axis: Axis, panel: Panel, wish: PlotOptions, notes: list[str], kind: str, names: int) -> Figure:
    key = wish.key if names > 1 else "off"
    return Figure(axis, (panel,), label(wish.title, 120), key, tuple(notes), kind)


_KINDS = {
    "ecdf": _ecdf,
    "box": _box,
    "violin": _violin,
    "histogram": _histogram,
    "percentiles": _percentiles,
}
