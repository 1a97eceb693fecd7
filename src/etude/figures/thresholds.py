"""Lines across a panel, and names: of upright ones in rows above it, of level ones and marks where no curve runs.

Where names stand is known only once the axes have their place: names above are asked for when all else is drawn, the
others when the key has its place, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Transform
from numpy.typing import NDArray

from etude.figures import data, style

HALO: list[AbstractPathEffect] = [withStroke(linewidth=1.5, foreground="white")]
"""Around words that may stand on data."""

GAP = 2.0
"""Points between a line and its name."""

DASHED: dict[str, Any] = {"color": style.LINE_COLOUR, "linewidth": 0.7, "linestyle": (0, (4, 2))}


Panels = Sequence[tuple[Axes, data.Panel]]

ON_A_CURVE = 20
"""A word on a curve is worse than one on so many lines across the panel."""


@dataclass(frozen=True)
class Span:
    """An upright line's place, and the width of its name."""

    at: float
    width: float


@dataclass(frozen=True)
class Spot:
    """Left end of a name, and its row from 0 upwards."""

    begin: float
    row: int


def draw_line(axes: Axes, line: data.Line) -> None:
    """The line itself."""
    across = axes.axhline if line.axis == "y" else axes.axvline
    across(line.at, zorder=1.5, **DASHED)


def place_names_above(canvas: Canvas, panels: Panels, look: style.Style) -> None:
    """Writes the names of upright lines, which take height."""
    for axes, panel in panels:
        upright = [layer for layer in _lines(panel) if layer.axis == "x"]
        if upright:
            canvas.draw_without_rendering()
            _name_above(axes, sorted(upright, key=lambda line: line.at), look, panel.title)


def place_names_within(
    canvas: Canvas, panels: Panels, look: style.Style, apart: Sequence[data.Line] = ()
) -> tuple[list[Annotation], list[data.Line]]:
    """Writes the names of level lines, except those set apart, and of marks; all of these names, and the lines whose
    name lies on a curve wherever it stands."""
    layers = [layer for _, panel in panels for layer in panel.layers]
    if not any(isinstance(layer, data.Line | data.Mark) and layer.label for layer in layers):
        return [], []
    canvas.draw_without_rendering()
    names, covered = [], []
    for axes, panel in panels:
        for line in _lines(panel):
            if line.axis == "y" and line not in apart:
                name, free = _name_level(axes, line, look)
                names.append(name)
                covered += [] if free else [line]
        names += [_name_mark(axes, layer, look) for layer in panel.layers if isinstance(layer, data.Mark)]
    return names, covered


def _lines(panel: data.Panel) -> list[data.Line]:
    """Those that have a name."""
    return [layer for layer in panel.layers if isinstance(layer, data.Line) and layer.label]


def spots(spans: Sequence[Span], right: float) -> list[Spot]:
    """Place of the name of each line, given from left to right, in as few rows as that takes.

    A name stands right of its leader, which goes up from the panel through the rows below; from some line on, left of
    it, so that none reaches beyond `right`, if that can be. No name lies on another, nor on the leader of another.
    """
    best, cost = None, (0, 0)
    for turn in range(len(spans), -1, -1):
        begins = [span.at if n < turn else span.at - span.width for n, span in enumerate(spans)]
        found = _stacked(spans, begins)
        if found is not None:
            beyond = sum(spot.begin + span.width > right for spot, span in zip(found, spans, strict=True))
            now = (beyond, max((spot.row for spot in found), default=0))
            if best is None or now < cost:
                best, cost = found, now
    assert best is not None  # to the right of their leaders all have room in a row of their own
    return best


def _stacked(spans: Sequence[Span], begins: Sequence[float]) -> list[Spot] | None:
    """Each as low as can be above all that are in its way; None where some are in each other's."""
    above: dict[int, set[int]] = {n: set() for n in range(len(spans))}
    for i, j in product(above, above):
        end, other_end = begins[i] + spans[i].width, begins[j] + spans[j].width
        same = spans[i].at == spans[j].at and begins[i] == begins[j]
        if i != j and begins[i] < spans[j].at < end:
            above[i].add(j)  # the leader of j ends below the name of i
        elif (
            i < j
            and begins[i] < other_end
            and begins[j] < end
            and (same or not begins[j] < spans[i].at < other_end)
        ):
            above[i].add(j)
    rows: dict[int, int] = {}
    while len(rows) < len(spans):
        free = [n for n in above if n not in rows and above[n] <= rows.keys()]
        if not free:
            return None
        rows |= {n: 1 + max((rows[m] for m in above[n]), default=-1) for n in free}
    return [Spot(begin, rows[n]) for n, begin in enumerate(begins)]


def _words(look: style.Style) -> dict[str, Any]:
    return {
        "fontsize": look.font * 0.8,
        "color": "#333333",
        "xytext": (0, 0),
        "textcoords": "offset points",
        "path_effects": HALO,
        "zorder": 6,
    }


def _name_above(axes: Axes, lines: Sequence[data.Line], look: style.Style, title: str) -> None:
    """Names in rows above the panel, each beside a leader that goes on where its line ends."""
    points = 72.0 / axes.figure.dpi
    coordinates = ("data", "axes fraction")
    names = [
        axes.annotate(plain(line.label), (line.at, 1), xycoords=coordinates, va="bottom", **_words(look))
        for line in lines
    ]
    spans = [
        Span(
            axes.transData.transform((line.at, 1.0))[0] * points,
            name.get_window_extent().width * points + 2 * GAP,
        )
        for line, name in zip(lines, names, strict=True)
    ]
    height = look.font * 0.8 * 1.25
    found = spots(spans, axes.bbox.x1 * points)
    for line, name, span, spot in zip(lines, names, spans, found, strict=True):
        left = spot.begin < span.at
        name.set(ha="right" if left else "left", position=(-GAP if left else GAP, 1.0 + height * spot.row))
        leader = {"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, **DASHED}
        top = 1.0 + height * (spot.row + 0.8)
        spot_above: dict[str, Any] = {"xytext": (0, top), "textcoords": "offset points", "arrowprops": leader}
        axes.annotate("", (line.at, 1), xycoords=coordinates, **spot_above)
    if title:
        axes.set_title(plain(title), loc="left", pad=3 + height * (1 + max(spot.row for spot in found)))


def _name_level(axes: Axes, line: data.Line, look: style.Style) -> tuple[Annotation, bool]:
    """The line's name, placed on the line or below it, and True if no curve runs there."""
    place: dict[str, Any] = {"xy": (0, line.at), "xycoords": ("axes fraction", "data")}
    name = axes.annotate(plain(line.label), **place, **_words(look))
    return name, _name_where_free(axes, name, _places(line.side), 0.0)


def _name_mark(axes: Axes, mark: data.Mark, look: style.Style) -> Annotation:
    words = _words(look) | {"color": "black"}
    name = axes.annotate(plain(mark.label), (mark.x, mark.y), **words)
    _name_where_free(axes, name, AROUND, 1.5)
    return name


def _name_where_free(axes: Axes, name: Annotation, places: Iterable[dict[str, Any]], away: float) -> bool:
    """Moves the name to the first of the places on which, and so many points beside which, least lies; whether that
    is no curve."""
    pad = away * axes.figure.dpi / 72.0
    curves, lines = drawn(axes)
    taken = [text.get_window_extent() for text in axes.texts if text is not name and text.get_text()]
    if key := axes.get_legend():
        taken.append(key.get_window_extent())

    def cost(place: dict[str, Any]) -> int:
        _put(name, place)
        here = name.get_window_extent()
        box = here.padded(pad)
        clashes = sum(here.overlaps(other) for other in taken)
        outside = box.x0 < axes.bbox.x0 - 3 or box.x1 > axes.bbox.x1 + 3 or box.y0 < axes.bbox.y0 - 1
        covered = ON_A_CURVE * box.count_contains(curves) + box.count_contains(lines)
        return int(covered) + 50_000 * clashes + 100_000 * int(outside)

    best = min(places, key=cost)
    least = cost(best)
    return least < ON_A_CURVE


def _places(side: str) -> Iterator[dict[str, Any]]:
    """Candidate places of a level line's name, the usual one first."""
    ends = (0.0, 1.0, 0.2, 0.8, 0.4, 0.6, 0.1, 0.9, 0.3, 0.7, 0.5)
    for at in ends if side == "left" else (1.0 - end for end in ends):
        for va, dy in (("bottom", 1), ("top", -1)):
            ha, dx = ("left", 2) if at == 0.0 else ("right", -1) if at == 1.0 else ("center", 0)
            yield {"x": at, "ha": ha, "va": va, "position": (dx, dy)}


AROUND: tuple[dict[str, Any], ...] = tuple(
    {"ha": ha, "va": va, "position": (dx, dy if dx == 0 else dy * 0.7)}
    for va, dy in (("bottom", 6), ("top", -6), ("bottom", 12))
    for ha, dx in (("center", 0), ("left", 5), ("right", -5))
) + tuple(
    {"ha": "left" if side > 0 else "right", "va": "center", "position": (side * dx, dy)}
    for dx in (14, 24, 36, 48)
    for dy in (0, 10, -10, 20, -20)
    for side in (1, -1)
)
"""Candidate places for the word of a mark, the usual one first, those farther away last."""


def _put(name: Annotation, place: dict[str, Any]) -> None:
    if "x" in place:
        name.xy = (place["x"], name.xy[1])
    name.set(ha=place["ha"], va=place["va"], position=place["position"])


def drawn(axes: Axes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of curves with their marks and error bars, some pixels from each to the next, and of lines across the
    panel; each of shape (points, 2)."""
    curves, lines = [np.empty((0, 2))], [np.empty((0, 2))]
    for line in axes.lines:
        found = curves if line.get_transform() == axes.transData else lines
        corners = _on_screen(line.get_transform(), line.get_xydata())
        found.append(corners)
        if line.get_marker() not in ("None", "none", "", " ", None):
            reach = line.get_markersize() / 2 * axes.figure.dpi / 72.0
            found += [corners + reach * np.array(side) for side in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        if line.get_linestyle() not in ("None", "none", "", " "):
            found += _along(corners)
    for bars in axes.collections:
        if isinstance(bars, LineCollection):
            for segment in bars.get_segments():
                curves += _along(_on_screen(bars.get_transform(), segment))
    return np.concatenate(curves), np.concatenate(lines)


def _on_screen(transform: Transform, corners: object) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        places = transform.transform(np.asarray(corners, dtype=np.float64))
    return np.asarray(places[np.isfinite(places).all(axis=1)], dtype=np.float64)


def _along(corners: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    for a, b in pairwise(corners):
        steps = min(1000, int(np.hypot(*(b - a)) / 3) + 1)
        yield a + (b - a) * np.linspace(0, 1, steps, endpoint=False)[:, None]


def plain(text: str) -> str:
    """The text as matplotlib shows it letter by letter: a dollar begins no formula."""
    return text.replace("$", r"\$")
