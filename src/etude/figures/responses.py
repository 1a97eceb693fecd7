"""Figures of an offered load: its rates and response times over time, and the distribution of the response times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from etude.analysis.loads import QUANTILES, WindowFigures
from etude.figures.data import Axis, Band, Curve, Figure, Layer, Line, Look, Panel, Point, labels
from etude.results.histograms import Histogram
from etude.units.formatting import scale_of

SHOWN = (50.0, 99.0)
"""Percentiles that are drawn over time."""
POINTS = 400
"""Points of a distribution."""
DOTS = 60
"""Windows from which on lines have no dots."""


def over_time(windows: Sequence[WindowFigures], asked: float | None) -> Figure:
    """Two panels over the time of a run: requests due and answered per second, and percentiles of the response times.

    asked: the requested rate, 1/s. Bands are windows with failed requests.
    """
    look: Look = "both" if len(windows) <= DOTS else "line"
    rates: list[Layer] = [
        Curve("completed", tuple(Point(w.end_s, w.completed_rate) for w in windows), 1, look),
        Curve("offered", tuple(Point(w.end_s, w.offered_rate) for w in windows), 0, "hollow"),
    ]
    highest = max(asked or 0.0, *(rate for w in windows for rate in (w.offered_rate, w.completed_rate)))
    if asked is not None:
        rates.append(Line(asked, "requested", side="left"))
    shown = {
        percent: [(w.end_s, s) for w in windows if (s := w.quantiles_s[QUANTILES.index(percent)]) is not None]
        for percent in SHOWN
    }
    divisor, unit = scale_of(max((s for points in shown.values() for _, s in points), default=1.0), "s")
    times: list[Layer] = [
        Curve(f"p{percent:g}", tuple(Point(x, s / divisor) for x, s in points), number, look)
        for number, (percent, points) in enumerate(shown.items(), 2)
        if points
    ]
    starts = [0.0, *(w.end_s for w in windows)]
    failing: list[Layer] = [
        Band(start, w.end_s) for start, w in zip(starts, windows, strict=False) if w.failed
    ]
    panels = [Panel(Axis("requests/s", low=0.0, high=1.12 * highest or 1.0), (*failing, *rates))]
    if times:
        panels.append(Panel(Axis(f"response ({unit})", "log"), (*failing, *times)))
    notes = ("bands: windows with failed requests",) if failing else ()
    return Figure(Axis("time (s)", low=0.0), tuple(panels), "", "beside", notes, "responses-over-time")


def distributions(named: Sequence[tuple[str, Histogram]]) -> Figure:
    """The share of responses that took longer than a time, both on log axes: the tail is a line of its own length."""
    layers = []
    divisor, unit = scale_of(max(float(found.values[-1]) for _, found in named) * 1e-9, "s")
    shown = labels(name for name, _ in named)
    for number, (name, found) in enumerate(named):
        total = int(found.counts.sum())
        longer = total - found.counts.cumsum()
        times = found.values * 1e-9 / divisor
        where = np.unique(np.linspace(0, len(times) - 1, POINTS).astype(int))
        points = [Point(float(times[0]), 1.0)] if times[0] > 0 else []
        points += [
            Point(float(times[place]), float(longer[place]) / total)
            for place in where
            if longer[place] > 0 and times[place] > 0
        ]
        layers.append(Curve(shown[name], tuple(points), number, "line"))
    low = min((p.y for layer in layers for p in layer.points), default=1e-3)
    lines = [Line(1 - p / 100, f"p{p:g}") for p in QUANTILES if 1 - p / 100 >= low]
    panel = Panel(Axis("share that took longer", "log", low=low / 1.5, high=1.5), (*layers, *lines))
    x = Axis(f"response ({unit})", "log")
    return Figure(x, (panel,), "", "above" if len(named) > 1 else "off", (), "responses")
