"""Lines: a metric over a parameter, one curve a series and metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from etude.errors import InputError
from etude.figures.axes import (
    AxisPosition,
    Places,
    Unit,
    mark_lines,
    on_log_axis,
    place,
    thinned,
    threshold_lines,
    unit_for,
    x_axis,
    y_axis,
)
from etude.figures.data import Curve, Figure, Panel, Point, check_count, label, labels
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, bars_note, chosen_metrics, shown_metric, summary_point

Series = dict[str, Places]
"""Curves that belong together, by the name of their series; empty for one without."""

MOST_NAMED = 4
"""Tests without a value that a note names."""


def lines(samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """One curve for each series and metric over what varies."""
    return lines_of({"": place(samples, wish.parameter)}, wish)


def lines_of(series: Series, wish: PlotOptions) -> Figure:
    """One curve for each series, its own curves, and each metric, on one x axis."""
    samples = [p.sample for places in series.values() for p in places.placed]
    metrics = chosen_metrics(samples, wish)
    first = next(iter(series.values()))
    everything = replace(first, placed=tuple(p for places in series.values() for p in places.placed))
    axis, x_unit = x_axis(everything, wish)
    found: list[tuple[str, list[Point]]] = []
    missing: list[str] = []
    for prefix, places in series.items():
        for name, placed in places.curves().items():
            for metric in metrics:
                shown = [
                    prefix or name,
                    shown_metric(metric, wish) if len(metrics) > 1 or not (prefix or name) else "",
                ]
                if prefix and len(places.curves()) > 1:
                    shown.insert(1, name)
                found.append((" ".join(filter(None, shown)), curve_points(placed, metric, wish, x_unit)))
                missing += points_missing(placed, len(found[-1][1]), metric, wish)
    layers, unit, notes = curves(found, samples[0].unit(metrics[0]), wish)
    text = shown_metric(metrics[0], wish) if len(metrics) == 1 else "time" if unit.base == "s" else "value"
    marks, outside = mark_lines(wish.marks, x_unit, layers)
    extra = (*threshold_lines(wish.thresholds, unit, "y"), *marks)
    return Figure(
        axis,
        (Panel(y_axis(text, unit, wish), (*layers, *extra)),),
        label(wish.title, 120),
        wish.key if len(layers) > 1 else "off",
        tuple(
            notes + missing + bars_note(wish, [point for curve in layers for point in curve.points]) + outside
        ),
        "lines",
    )


def curve_points(placed: Sequence[AxisPosition], metric: str, wish: PlotOptions, x_unit: Unit) -> list[Point]:
    """A point for each test that has a value; x in its unit, y in the base unit."""
    found = (summary_point(p.sample, metric, wish, x=p.x / x_unit.divisor) for p in placed)
    return [point for point in found if point is not None]


def points_missing(placed: Sequence[AxisPosition], drawn: int, metric: str, wish: PlotOptions) -> list[str]:
    """A note on the tests that a curve of so many points lacks; none on a curve without any, which is left out."""
    if drawn in (0, len(placed)):
        return []
    lost = [label(p.sample.name) for p in placed if summary_point(p.sample, metric, wish) is None]
    more = [f"{len(lost) - MOST_NAMED} more"] if len(lost) > MOST_NAMED else []
    return [f"{', '.join([*lost[:MOST_NAMED], *more])}: {'has' if len(lost) == 1 else 'have'} no value"]


def curves(
    named: Sequence[tuple[str, list[Point]]], base: str, wish: PlotOptions
) -> tuple[tuple[Curve, ...], Unit, list[str]]:
    """Curves in one unit that suits all, and what was left out.

    Raises:
        InputError: no point is left; UsageError: there are too many curves.
    """
    check_count(len(named), "curves")
    if not any(points for _, points in named):
        raise InputError("nothing to plot: no included trial has a value of that metric")
    unit = unit_for((p.y for _, points in named for p in points), base, wish)
    found, notes = [], []
    names = labels(name for name, _ in named)
    for colour, (name, points) in enumerate(named):
        if not points:
            notes.append(f"{names[name]}: has no value and is left out")
            continue
        kept, lost = on_log_axis([p.divided(unit.divisor) for p in points], wish, names[name])
        drawn, fewer = thinned(kept, names[name])
        notes += lost + fewer
        found.append(Curve(names[name], drawn, colour))
    return tuple(found), unit, notes
