"""Several searches in one figure: what was measured over load, the limit, and each one's peak with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etude.figures.data import Axis, Curve, Figure, Layer, Line, Mark, Panel, Point, Scale

FAR = 4.0
"""Loads further apart than this, largest over smallest that matter, are drawn on a log axis."""


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
    for number, search in enumerate(found):
        layers.append(Curve(search.name, _means(search), number))
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
