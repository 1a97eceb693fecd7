"""Two panels on one x axis: means with deviations, and below them how surely a t test tells the series apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from etude.errors import InputError
from etude.figures.data import Axis, Curve, Figure, Layer, Line, Panel, Point
from etude.figures.labels import label
from etude.figures.plot_options import PlotOptions
from etude.figures.ratio import Upper
from etude.figures.sources import Sample
from etude.results.series import Floats
from etude.stats.ranks import mann_whitney
from etude.stats.twosample import student, welch

LEVEL = 0.05
SMALLEST = 1e-12
"""Smaller p-values are drawn here: their size means nothing any more."""

PValue = Callable[[Floats, Floats], float]


def pvalues(samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """Means with a deviation to either side above; below p of the t test, of all and of the first n trials."""
    wish = replace(wish, bars=wish.bars or "deviation")
    top = Upper(samples, wish, "pvalues")
    method = "Student" if wish.pooled else "Welch"
    test: PValue = _student if wish.pooled else _welch
    tests = [(test, count, f"first {count} trials" if count else "all trials") for count in (0, *wish.first)]
    tests += [(_ranks, 0, "all trials, Mann-Whitney")] if wish.ranks else []
    base = {p.x: p.sample for p in top.placed[top.reference]}
    layers: list[Layer] = [Line(LEVEL, f"p = {LEVEL:g}", side="left")]
    notes, found = list(top.notes), 0
    for name, placed in top.placed.items():
        for test, count, shown in tests if name != top.reference else ():
            pairs = [
                (p.x, p.sample.values(top.metric), base[p.x].values(top.metric))
                for p in placed
                if p.x in base
            ]
            points = [point for x, a, b in pairs if (point := _p(x / top.x_unit.divisor, a, b, count, test))]
            if count and not points:
                notes.append(
                    f"no x has {count} trials of both {name} and {top.reference}: these are not drawn"
                )
                continue
            found += len(points)
            curve = f"{name} {shown}" if len(top.placed) > 2 else shown
            layers.append(Curve(label(curve), tuple(points), len(top.placed) + len(layers) - 1))
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


def _p(x: float, first: Floats, second: Floats, count: int, test: PValue) -> Point | None:
    a, b = (values[:count] if count else values for values in (first, second))
    if min(a.size, b.size) < max(2, count):
        return None
    try:
        return Point(x, max(test(a, b), SMALLEST))
    except ValueError:
        return None


def _student(a: Floats, b: Floats) -> float:
    return student(a, b).p


def _welch(a: Floats, b: Floats) -> float:
    return welch(a, b).p


def _ranks(a: Floats, b: Floats) -> float:
    return mann_whitney(a, b).p
