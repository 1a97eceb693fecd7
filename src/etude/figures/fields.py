"""Values over two axes: coloured cells with iso-lines, or a surface in space; each cell marked by how it is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from etude.figures import data, style
from etude.figures.thresholds import HALO, plain

Floats = NDArray[np.float64]

_DOT: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": "black", "markeredgewidth": 0.8}
MARKS: Mapping[data.State, dict[str, Any]] = {
    "measured": _DOT | {"markerfacecolor": "black"},
    "predicted": _DOT | {"markerfacecolor": "white"},
    "bounded": _DOT | {"marker": "^", "markerfacecolor": "white"},
    "failed": _DOT | {"marker": "x"},
}
NAMES: Mapping[data.State, str] = {
    "measured": "measured",
    "predicted": "predicted",
    "bounded": "only a bound",
    "failed": "not known",
}


def height_of(field: data.Field, look: style.Style) -> float:
    """Inches: more for many rows."""
    return look.width * (0.62 + 0.04 * min(len(field.y), 10))


def draw_field(axes: Axes, field: data.Field, look: style.Style) -> None:
    """Coloured cells, iso-lines, marks, a scale of colours and a key below."""
    values = grid(field)
    x, y = edges(field.x), edges(field.y)
    known = np.ma.masked_invalid(values)
    mesh = axes.pcolormesh(
        x, y, known, cmap=colours(), norm=_range(values), edgecolors="white", linewidth=0.4
    )
    mesh.set_rasterized(False)
    if field.levels and min(values.shape) > 1 and np.isfinite(values).sum() > 3:
        lines = axes.contour(
            field.x, field.y, known, levels=field.levels, colors="black", linewidths=0.7, zorder=3
        )
        _name_lines(axes, lines, field, look)
    for state in MARKS:
        spots = [spot for spot in field.spots if spot.state == state]
        if spots:
            axes.plot(
                [s.x for s in spots], [s.y for s in spots], markersize=look.font * 0.45, **MARKS[state],
                markeredgecolor="white" if state == "measured" else "black", zorder=4,
            )  # fmt: skip
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)
    if isinstance(axes.figure, Canvas):
        bar = axes.figure.colorbar(mesh, ax=axes, label=plain(field.label), pad=0.02, aspect=25)
        bar.outline.set_visible(False)
        _key(axes.figure, field)


def _name_lines(axes: Axes, lines: Any, field: data.Field, look: style.Style) -> None:
    """Each line's value, where it is farthest from marks and other names; none where there is no room."""
    size = np.array([field.x[-1] - field.x[0], field.y[-1] - field.y[0]]) / np.array([1.0, 0.85])
    taken = np.array([[spot.x, spot.y] for spot in field.spots]) / size
    for level, line in zip(lines.levels, lines.allsegs, strict=True):
        corners = [np.asarray(part) for part in line if len(part) > 1]
        steps = np.linspace(0.0, 1.0, 12)[:, None]
        points = [a + steps * (b - a) for part in corners for a, b in pairwise(part)]
        if not points:
            continue
        every = np.concatenate(points)
        inside = ((every >= [field.x[0], field.y[0]]) & (every <= [field.x[-1], field.y[-1]])).all(axis=1)
        apart = np.abs(every[:, None, :] / size - taken[None, :, :]) / np.array([0.09, 0.04])
        room = np.where(inside, apart.max(axis=2).min(axis=1), -1.0)
        if (best := int(room.argmax())) >= 0 and room[best] > 0.7:
            axes.text(
                float(every[best, 0]), float(every[best, 1]), f"{level:,.12g}", fontsize=look.font * 0.75,
                ha="center", va="center", path_effects=HALO, zorder=5,
            )  # fmt: skip
            taken = np.vstack([taken, every[best] / size])


def draw_solid(figure: data.Figure, look: style.Style) -> Canvas:
    """A surface in space, with its cells on it."""
    (panel,) = figure.panels
    (field,) = (layer for layer in panel.layers if isinstance(layer, data.Field))
    with matplotlib.style.context(["default", dict(style.settings(look))]):
        canvas = Canvas(figsize=(look.width, look.height or look.width * 0.86))
        axes: Any = canvas.add_axes((-0.02, 0.08, 0.93, 0.92 if not figure.title else 0.86), projection="3d")
        values = grid(field)
        x, y = np.meshgrid(field.x, field.y)
        axes.plot_surface(
            x, y, values, cmap=colours(), norm=_range(values), edgecolor="#444444", linewidth=0.4,
            rstride=1, cstride=1, antialiased=True, shade=False,
        )  # fmt: skip
        bottom = min(0.0, float(np.nanmin(values)))
        _spots(axes, field, bottom, look)
        axes.set_zlim(bottom=bottom)
        _space_axis(axes, "x", figure.x, look)
        _space_axis(axes, "y", panel.y, look)
        axes.set_zlabel(plain(field.label), labelpad=-2)
        axes.tick_params(axis="z", pad=0)
        axes.view_init(elev=24, azim=_side(values))
        axes.set_box_aspect((1, 1, 0.8), zoom=0.9)
        if figure.title:
            canvas.suptitle(plain(figure.title), fontsize=look.font * 1.1)
        _key(canvas, field)
        return canvas


def grid(field: data.Field) -> Floats:
    """Values by y, then x; NaN where none is known."""
    found = np.full((len(field.y), len(field.x)), math.nan)
    for spot in field.spots:
        if spot.value is not None:
            found[field.y.index(spot.y), field.x.index(spot.x)] = spot.value
    return found


def edges(centres: tuple[float, ...]) -> list[float]:
    """Between neighbours half way; outside as far as the nearest one inside."""
    if len(centres) == 1:
        return [centres[0] - 0.5, centres[0] + 0.5]
    middles = [(a + b) / 2 for a, b in pairwise(centres)]
    return [2 * centres[0] - middles[0], *middles, 2 * centres[-1] - middles[-1]]


def colours() -> ListedColormap:
    """Viridis without its darkest part, so that black can be read on it."""
    from matplotlib import colormaps

    return ListedColormap(colormaps["viridis"](np.linspace(0.25, 1.0, 256)))


def _range(values: Floats) -> Normalize:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return Normalize(low, high if high > low else low + 1)


def _spots(axes: Any, field: data.Field, bottom: float, look: style.Style) -> None:
    for state in MARKS:
        spots = [spot for spot in field.spots if spot.state == state]
        if spots:
            heights = [bottom if spot.value is None else spot.value for spot in spots]
            axes.plot(
                [s.x for s in spots], [s.y for s in spots], heights,
                markersize=look.font * 0.4, zorder=10, **MARKS[state],
            )  # fmt: skip


def _space_axis(axes: Any, letter: str, axis: data.Axis, look: style.Style) -> None:
    ticks = axis.ticks or ()
    getattr(axes, f"set_{letter}ticks")([at for at, _ in ticks])
    getattr(axes, f"set_{letter}ticklabels")([plain(name) for _, name in ticks])
    getattr(axes, f"set_{letter}label")(plain(axis.label), labelpad=-2)
    axes.tick_params(axis=letter, pad=-2, labelsize=look.font * 0.85)


def _side(values: Floats) -> float:
    """Azimuth, degrees, at which the lower corner is in front."""
    if min(values.shape) < 2 or not np.isfinite(values).all():
        return -125.0
    falls_x, falls_y = values[:, -1].mean() < values[:, 0].mean(), values[-1].mean() < values[0].mean()
    return {(False, False): -125.0, (True, False): -55.0, (False, True): 125.0, (True, True): 55.0}[
        bool(falls_x), bool(falls_y)
    ]


def _key(canvas: Canvas, field: data.Field) -> None:
    there = [state for state in MARKS if any(spot.state == state for spot in field.spots)]
    handles = [Line2D([], [], markersize=4, **MARKS[state]) for state in there]
    place: Any = "outside lower center" if canvas.get_layout_engine() is not None else "lower center"
    canvas.legend(handles, [NAMES[state] for state in there], loc=place, ncols=len(there))
