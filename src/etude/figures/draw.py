"""Draws a figure's data by matplotlib: no window, nothing of the user's own settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedFormatter,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
)

from etude.figures import data, style
from etude.figures.fields import draw_field, draw_solid, height_of
from etude.figures.thresholds import (
    DASHED,
    HALO,
    ON_A_CURVE,
    Panels,
    draw_line,
    drawn,
    place_names_above,
    place_names_within,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist

TOGETHER = ("above", "outside", "below")
"""Places of one key for all panels."""

BESIDE = "beside"
"""The place of a key of each panel, to the right of it."""

NAMED_DECADES = 3.0
"""Decades of a logarithmic axis below which its ticks between powers of ten have names, too."""

LARGEST_SHARE = 0.35
"""Share of a figure's height or width that names along an axis may take."""
SHORT = 24
"""Letters of an axis' label that fits anyway."""
FEWEST_LETTERS = 6
"""Letters of a name along an axis, however little room there is."""

PLACES: dict[str, Any] = {
    "best": "best",
    "top right": "upper right",
    "top left": "upper left",
    "top center": "upper center",
    "bottom right": "lower right",
    "bottom left": "lower left",
    "bottom center": "lower center",
    "center right": "center right",
    "center left": "center left",
    "center center": "center",
}


def draw(figure: data.Figure, look: style.Style) -> Canvas:
    """The figure on a canvas of its own, to be saved."""
    if any(isinstance(layer, data.Field) and layer.solid for layer in figure.panels[0].layers):
        return draw_solid(figure, look)
    heights = [panel.height for panel in figure.panels]
    size = (look.width, look.height or _height(figure, look))
    with matplotlib.style.context(["default", dict(style.settings(look))]):
        canvas = Canvas(figsize=size, layout="constrained")
        axes = canvas.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
            :, 0
        ].tolist()
        for panel, place in zip(figure.panels, axes, strict=True):
            _panel(place, panel, figure, look)
            _x_axis(place, figure.x, last=place is axes[-1])
        if figure.title:
            canvas.suptitle(plain(figure.title), fontsize=look.font * 1.1)
        _keys(canvas, axes, figure, look)
        if figure.key == BESIDE:
            canvas.align_ylabels(axes)
        panels = list(zip(axes, figure.panels, strict=True))
        _limit_names(canvas, panels, figure, look)
        height = canvas.get_figheight()
        place_names_above(canvas, panels, look)
        if figure.key == "best" and not _clear(canvas, panels):
            _key_below(canvas, panels, figure, look, height)
        names, covered = place_names_within(canvas, panels, look)
        if covered and figure.key in ("best", "off"):
            for name in names:
                name.remove()
            _key_below(canvas, panels, figure, look, height, covered)
            place_names_within(canvas, panels, look, covered)
        return canvas


def _height(figure: data.Figure, look: style.Style) -> float:
    fields = [layer for panel in figure.panels for layer in panel.layers if isinstance(layer, data.Field)]
    if fields:
        return height_of(fields[0], look)
    if len(figure.panels) > 2:
        return look.width * (0.25 + 0.36 * len(figure.panels))
    return look.width * (0.72 if len(figure.panels) == 1 else 1.15)


def _panel(axes: Axes, panel: data.Panel, figure: data.Figure, look: style.Style) -> None:
    axes.set_yscale(panel.y.scale)
    axes.set_xscale(figure.x.scale)
    for layer in panel.layers:
        if isinstance(layer, data.Curve):
            _curve(axes, layer)
        elif isinstance(layer, data.Bars):
            _bars(axes, layer)
        elif isinstance(layer, data.Shape):
            x, y = zip(*layer.outline, strict=True)
            shade = style.colour(layer.colour)
            axes.fill(x, y, facecolor=style.paler(shade), edgecolor=shade, linewidth=0.8)
        elif isinstance(layer, data.Band):
            axes.axvspan(layer.low, layer.high, color=style.BAND_COLOUR, linewidth=0, zorder=0)
            if layer.label:
                _band_label(axes, layer, look)
        elif isinstance(layer, data.Mark):
            _mark(axes, layer)
        elif isinstance(layer, data.Field):
            draw_field(axes, layer, look)
    for line in (layer for layer in panel.layers if isinstance(layer, data.Line)):
        draw_line(axes, line)
    axes.set_ylabel(plain(panel.y.label))
    _ticks(axes.yaxis, panel.y)
    if not any(isinstance(layer, data.Field) for layer in panel.layers):
        axes.grid(axis="y", color="#dddddd", linewidth=0.4)
    if (
        any(isinstance(layer, data.Bars) and not layer.pale for layer in panel.layers)
        and panel.y.scale == "linear"
    ):
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _below_zero(panel) else 0.0)
    if panel.y.low is not None:
        axes.set_ylim(bottom=panel.y.low)
    if panel.y.high is not None:
        axes.set_ylim(top=panel.y.high)
    if panel.title:
        axes.set_title(plain(panel.title), loc="left", pad=2)


def _below_zero(panel: data.Panel) -> bool:
    boxes = [box for layer in panel.layers if isinstance(layer, data.Bars) for box in layer.boxes]
    return any(min(box.top, box.bottom, box.low or 0.0) < 0 for box in boxes)


def _curve(axes: Axes, curve: data.Curve) -> None:
    options = _curve_options(curve)
    if len(curve.points) == 1 and options["linestyle"] != "none":
        options |= {"marker": _marker(curve)}
    axes.plot([p.x for p in curve.points], [p.y for p in curve.points], **options)
    _error_bars(axes, [(p.x, p.low, p.high) for p in curve.points], style.colour(curve.colour))


def _curve_options(curve: data.Curve) -> dict[str, Any]:
    dashes = style.DASHES[max(curve.colour, 0) // len(style.COLOURS) % len(style.DASHES)]
    look: dict[data.Look, dict[str, Any]] = {
        "steps": {"drawstyle": "steps-post", "linestyle": dashes},
        "line": {"linestyle": dashes},
        "both": {"marker": _marker(curve), "linestyle": dashes},
        "crosses": {"marker": "x", "linestyle": "none"},
        "hollow": {"marker": "o", "linestyle": "none", "markerfacecolor": "white", "zorder": 3},
        "dots": {"marker": "o", "linestyle": "none", "markersize": 2.5},
        "filled": {"marker": "o", "linestyle": "none", "zorder": 3},
    }
    return {"color": style.colour(curve.colour), **look[curve.look]}


def _marker(curve: data.Curve) -> str:
    return style.MARKERS[max(curve.colour, 0) % len(style.MARKERS)]


def _bars(axes: Axes, bars: data.Bars) -> None:
    shade = style.colour(bars.colour)
    boxes = bars.boxes
    hatch = "" if bars.pale else style.HATCHES[bars.colour % len(style.HATCHES)]
    axes.bar(
        [box.x for box in boxes],
        [box.top - box.bottom for box in boxes],
        [box.width for box in boxes],
        [box.bottom for box in boxes],
        facecolor=style.paler(shade, 0.65 if bars.pale else 0.25),
        edgecolor=shade if bars.pale else "#222222",
        hatch=hatch,
        linewidth=0.8 if bars.pale else 0.5,
        zorder=2.5 if bars.pale else 2,
    )
    ends = [(box.bar_x if box.bar_x is not None else box.x, box.low, box.high) for box in boxes]
    _error_bars(axes, ends, shade if bars.pale else "#222222", zorder=2.2 if bars.pale else 4.0)


def _error_bars(
    axes: Axes, ends: Sequence[tuple[float, float | None, float | None]], shade: str, zorder: float = 2.4
) -> None:
    known = [(x, low, high) for x, low, high in ends if low is not None and high is not None]
    if known:
        x = [k[0] for k in known]
        low, high = [k[1] for k in known], [k[2] for k in known]
        axes.vlines(x, low, high, color=shade, linewidth=0.8, zorder=zorder)
        for side in (low, high):
            axes.plot(
                x,
                side,
                linestyle="none",
                marker="_",
                markersize=4,
                color=shade,
                zorder=zorder,
                markeredgewidth=0.8,
            )


def _band_label(axes: Axes, band: data.Band, look: style.Style) -> None:
    options: dict[str, Any] = {
        "xy": (band.low, 1),
        "xycoords": ("data", "axes fraction"),
        "xytext": (1, 1),
        "va": "bottom",
        "fontsize": look.font * 0.8,
        "color": "#333333",
        "textcoords": "offset points",
    }
    axes.annotate(plain(band.label), **options)


def _mark(axes: Axes, mark: data.Mark) -> None:
    if mark.low is not None and mark.high is not None:
        bar: dict[str, Any] = {"color": "black", "linewidth": 0.9, "marker": "|", "markersize": 5}
        axes.plot([mark.low, mark.high], [mark.y, mark.y], zorder=5, path_effects=HALO, **bar)
    axes.plot(
        [mark.x],
        [mark.y],
        marker="o",
        markersize=6,
        markerfacecolor="none",
        markeredgecolor="black",
        zorder=6,
        path_effects=HALO,
    )


def _x_axis(axes: Axes, axis: data.Axis, *, last: bool) -> None:
    _ticks(axes.xaxis, axis)
    if axis.low is not None or axis.high is not None:
        axes.set_xlim(axis.low, axis.high)
    if not last:
        return
    axes.set_xlabel(plain(axis.label))
    if axis.rotate:
        for text in axes.get_xticklabels():
            text.set(rotation=axis.rotate, ha="right" if axis.rotate > 0 else "left", rotation_mode="anchor")


def _ticks(drawn: Any, axis: data.Axis) -> None:
    if axis.ticks is not None:
        drawn.set_major_locator(FixedLocator([at for at, _ in axis.ticks]))
        drawn.set_major_formatter(FixedFormatter([plain(name) for _, name in axis.ticks]))
        drawn.set_minor_locator(NullLocator())
        drawn.set_minor_formatter(NullFormatter())
    elif axis.scale == "log":
        _logarithmic_ticks(drawn)


def _limit_names(canvas: Canvas, panels: Panels, figure: data.Figure, look: style.Style) -> None:
    """Names along an axis take a share of the figure; it grows for long ones below, unless its height is given."""
    every = (figure.x, *(panel.y for panel in figure.panels))
    if not any(axis.ticks or len(axis.label) > SHORT for axis in every):
        return
    canvas.draw_without_rendering()
    lowest, _ = panels[-1]
    width, height = canvas.get_size_inches()
    beside = [(axes.yaxis, panel.y, LARGEST_SHARE * width) for axes, panel in panels]
    for side, axis, most in (*beside, (lowest.xaxis, figure.x, LARGEST_SHARE * height)):
        boxes = [name.get_window_extent() for name in side.get_majorticklabels()] if axis.ticks else []
        below = axis is figure.x
        room = max((box.height if below else box.width for box in boxes), default=0.0) / canvas.dpi
        if room <= most:
            continue
        if below and look.height is None:
            canvas.set_size_inches(width, height + room - most)
            continue
        names = [name for _, name in axis.ticks or ()]
        shorter = data.labels(names, max(int(max(map(len, names)) * most / room), FEWEST_LETTERS))
        side.set_major_formatter(FixedFormatter([plain(shorter[name]) for name in names]))
    canvas.draw_without_rendering()
    for axes, panel in panels:
        box = axes.yaxis.label.get_window_extent()
        middle = (box.y0 + box.y1) / 2
        most = 2 * min(middle, canvas.bbox.height - middle)
        if box.height > most > 0:
            axes.set_ylabel(plain(data.label(panel.y.label, int(len(panel.y.label) * most / box.height))))


def _logarithmic_ticks(drawn: Any) -> None:
    """Plain numbers at 1, 2 and 5 of each decade where there are few decades; only powers of ten have names else."""
    low, high = drawn.get_view_interval()
    if 0.0 < low < high and math.log10(high / low) < NAMED_DECADES:
        drawn.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        drawn.set_major_formatter(FuncFormatter(lambda at, _: f"{at:g}"))
    drawn.set_minor_formatter(NullFormatter())


def _keys(canvas: Canvas, panels: Sequence[Axes], figure: data.Figure, look: style.Style) -> None:
    """A key in each panel that has names; outside: one for all below."""
    if figure.key == "off":
        return
    seen: set[str] = set()
    everything: list[tuple[Artist, str]] = []
    for axes, panel in zip(panels, figure.panels, strict=True):
        entries = []
        for layer in panel.layers:
            name = data.name_of(layer)
            if name and name not in seen:
                seen.add(name)
                entries.append((_handle(layer), name))
        everything += entries
        if entries and figure.key == BESIDE:
            axes.legend(*_key(entries), loc="upper left", bbox_to_anchor=(1.0, 1.05))
        elif entries and figure.key not in TOGETHER:
            axes.legend(*_key(entries), loc=PLACES.get(figure.key, "best"))
    if everything and figure.key in TOGETHER:
        _common_key(canvas, everything, figure.key, look)


def _common_key(canvas: Canvas, entries: Sequence[tuple[Artist, str]], place: str, look: style.Style) -> None:
    options: Any = {"loc": f"outside {'upper' if place == 'above' else 'lower'} center", "columnspacing": 1.2}
    canvas.legend(*_key(entries), ncols=_columns(entries, look), **options)


def _key_below(
    canvas: Canvas,
    panels: Panels,
    figure: data.Figure,
    look: style.Style,
    height: float,
    lines: Sequence[data.Line] = (),
) -> None:
    """One key below in place of those in the panels, these lines in it too, and room for it. height: without it."""
    for earlier in canvas.legends[:]:
        earlier.remove()
    layers = [] if figure.key == "off" else [layer for _, panel in panels for layer in panel.layers]
    named = {name: _handle(layer) for layer in layers[::-1] if (name := data.name_of(layer))}
    entries = [*list(named.items())[::-1], *((line.label, Line2D([], [], **DASHED)) for line in lines)]
    for axes, _ in panels:
        if key := axes.get_legend():
            key.remove()
    _common_key(canvas, [(handle, name) for name, handle in entries], "below", look)
    if look.height is None:
        rows = canvas.legends[0].get_window_extent().height / canvas.dpi
        canvas.set_size_inches(look.width, height + rows)


def _clear(canvas: Canvas, panels: Panels) -> bool:
    """Moves the key of each panel to where least lies; whether none lies on a curve there."""
    free = True
    for axes, panel in panels:
        key = axes.get_legend()
        if key is None or not all(
            isinstance(layer, data.Curve | data.Line | data.Mark) for layer in panel.layers
        ):
            continue
        canvas.draw_without_rendering()
        curves, lines = drawn(axes)
        costs = {}
        for place in PLACES.values():
            key.set_loc(place)
            box = key.get_window_extent()
            covered = box.count_contains(curves)
            costs[place] = ON_A_CURVE * covered + box.count_contains(lines)
            if not covered and place == "best":
                break
        best = min(costs, key=costs.__getitem__)
        key.set_loc(best)
        for name in key.get_texts():
            name.set_path_effects(HALO)
        free &= costs[best] < ON_A_CURVE
    return free


def _columns(entries: Sequence[tuple[Artist, str]], look: style.Style) -> int:
    """Columns of a key, up to four: as few as make no more rows than those that fit, by the usual width of a letter."""
    letter = look.font * 0.85 * 0.55 / 72.0
    widths = [letter * (6.0 + len(name)) for _, name in entries]
    for count in range(min(4, len(entries)), 1, -1):
        if sum(max(column) for column in np.array_split(widths, count)) <= look.width:
            rows = -(-len(entries) // count)
            return -(-len(entries) // rows)
    return 1


def _key(entries: Sequence[tuple[Artist, str]]) -> tuple[Any, Any]:
    return [handle for handle, _ in entries], [plain(name) for _, name in entries]


def _handle(layer: data.Layer) -> Artist:
    if isinstance(layer, data.Curve):
        return Line2D([], [], **_curve_options(layer))
    assert isinstance(layer, data.Bars | data.Shape)
    shade = style.colour(layer.colour)
    if isinstance(layer, data.Shape) or layer.pale:
        return Patch(facecolor=style.paler(shade), edgecolor=shade, linewidth=0.8)
    hatch = style.HATCHES[layer.colour % len(style.HATCHES)]
    return Patch(facecolor=style.paler(shade, 0.25), edgecolor="#222222", hatch=hatch, linewidth=0.5)
