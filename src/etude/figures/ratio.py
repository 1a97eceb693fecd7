"""Two panels on one x axis: the metric, and below it how many times the reference each series takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from etude.errors import UsageError
from etude.figures.common import Unit, bars_note, threshold_lines, x_axis, y_axis
from etude.figures.data import Axis, Curve, Figure, Layer, Line, Mark, Panel, Point
from etude.figures.lines import curve_points, curves
from etude.figures.placing import Placed, place
from etude.figures.sources import Sample, chosen_metrics, shown_metric
from etude.figures.wish import Wish
from etude.figures.words import label
from etude.report.text import scale_of

LEVELS = (1.01, 1.05)
BELOW = (0.95, 0.99)
"""Where a difference is small: 1 % and 5 %."""


def ratio(samples: Sequence[Sample], wish: Wish) -> Figure:
    """Medians with quartiles above; below the ratios of the medians, and where they cross 1 % and 5 %."""
    wish = replace(wish, bars=wish.bars or "quartiles")
    top = Upper(samples, wish, "ratio")
    ratios = [
        (name, divided(points, top.points[top.reference]))
        for name, points in top.points.items()
        if name != top.reference
    ]
    notes = list(top.notes)
    layers: list[Layer] = []
    below = any(p.y < BELOW[-1] for _, points in ratios for p in points)
    levels = [*(BELOW if below else ()), *LEVELS]
    layers += _level_lines([*levels, 1.0], [p.y for _, points in ratios for p in points])
    for name, points in ratios:
        if not points:
            raise UsageError(f"{name}: has no x in common with {top.reference}: there is no ratio")
        layers.append(Curve("", tuple(points), top.colours[name]))
        for level in levels:
            for x in crossings(points, level, log="x" in wish.log):
                layers.append(Mark(x, level, top.shown_x(x)))
                notes.append(f"{name} crosses {_percent(level)} at {top.shown_x(x)}")
    low = Panel(Axis(label(f"ratio to {top.reference}", 32)), tuple(layers), 0.8)
    return Figure(top.axis, (top.panel, low), label(wish.title, 120), wish.key, tuple(notes), "ratio")


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

    def __init__(self, samples: Sequence[Sample], wish: Wish, kind: str) -> None:
        (metric, *others) = chosen_metrics(samples, wish)
        if others:
            raise UsageError(f"--kind {kind} shows one metric; name one")
        places = place(samples, wish.parameter)
        self.placed: dict[str, list[Placed]] = places.curves()
        if len(self.placed) < 2:
            raise UsageError(
                f"--kind {kind} compares series over x; there is only one: {next(iter(self.placed)) or '–'}"
            )
        self.metric = metric
        self.axis, self._unit = x_axis(places, wish)
        self.points = {
            name: curve_points(placed, metric, wish, self._unit) for name, placed in self.placed.items()
        }
        self.reference = _reference(list(self.points), wish)
        self.colours = {name: n for n, name in enumerate(self.points)}
        found, unit, notes = curves(list(self.points.items()), samples[0].unit(metric), wish)
        lines = (*threshold_lines(wish.thresholds, unit, "y"), *threshold_lines(wish.marks, self._unit, "x"))
        self.panel = Panel(y_axis(shown_metric(metric, wish), unit, wish), (*found, *lines), 1.2)
        self.notes = [*notes, *bars_note(wish, found)]

    @property
    def x_unit(self) -> Unit:
        """That of x."""
        return self._unit

    def shown_x(self, x: float) -> str:
        """A place on the x axis in words."""
        if self._unit.base == "B" and not self._unit.name:
            divisor, name = scale_of(x, "B")
            return f"{x / divisor:.3g} {name}"
        return f"{x:.3g} {self._unit.name}".strip()


def _reference(names: Sequence[str], wish: Wish) -> str:
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
    """Where the line between neighbouring points crosses the level; on a logarithmic axis along its own line."""
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
