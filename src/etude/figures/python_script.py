"""The short Python script of a figure: it needs matplotlib, and nothing of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.figures.data import Axis, Band, Bars, Block, Curve, Field, Figure, Line, Mark, Shape
from etude.figures.style import BAND_COLOUR, LINE_COLOUR, MARKERS, colour, paler

HEAD = '''\
"""Draws {stem}.dat again: python3 {stem}.py [FILE.pdf]. Needs matplotlib only."""

import sys
from pathlib import Path

from matplotlib.figure import Figure

here = Path(__file__).resolve()
text = here.with_suffix(".dat").read_text(encoding="utf-8")
blocks = [
    [[float(value) for value in line.split()] for line in block.splitlines() if line and line[0] != "#"]
    for block in text.split("\\n\\n\\n")
]


def columns(number):
    return list(zip(*blocks[number]))


def error_bars(axes, x, low, high, color):
    axes.vlines(x, low, high, color=color, linewidth=0.8, zorder=3)


def label(text):
    return text.replace("$", r"\\$")  # a dollar begins no formula


figure = Figure(figsize=({width}, {height}), layout="constrained")
panels = figure.subplots({count}, 1, sharex=True, squeeze=False)[:, 0]
'''

TAIL = """\
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else here.with_suffix(".py.png"), dpi=200)
"""

LOOKS = {
    "both": "marker={marker!r}",
    "line": "marker=''",
    "steps": "drawstyle='steps-post'",
    "dots": "marker='o', linestyle='none', markersize=2.5",
    "filled": "marker='o', linestyle='none'",
    "hollow": "marker='o', linestyle='none', markerfacecolor='white'",
    "crosses": "marker='x', linestyle='none'",
}


def python_script(figure: Figure, found: Sequence[Block], stem: str) -> str:
    """It draws STEM.dat into the file that it is given, or into STEM.py.png."""
    head = HEAD.replace("{stem}", _in_docstring(stem)).replace("{count}", str(len(figure.panels)))
    lines = [head.replace("{width}", "5").replace("{height}", f"{3.5 if len(figure.panels) == 1 else 5:g}")]
    for number, panel in enumerate(figure.panels):
        lines.append(f"axes = panels[{number}]")
        for block in found:
            if block.panel == number:
                lines += _layer(block)
        lines += _axis("y", panel.y)
        if panel.title:
            lines.append(f"axes.set_title(label({panel.title!r}), loc='left')")
        if figure.key != "off" and any(_named(block) for block in found if block.panel == number):
            lines.append("axes.legend(frameon=False)")
        lines.append("")
    lines += _axis("x", figure.x)
    if figure.title:
        lines.append(f"figure.suptitle(label({figure.title!r}))")
    return "\n".join(lines) + "\n" + TAIL


def _in_docstring(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_.: " else "_" for c in text)


def _named(block: Block) -> bool:
    return bool(getattr(block.layer, "name", ""))


def _key(name: str) -> str:
    """The name as an argument; matplotlib leaves out names that begin with an underscore."""
    return f", label=label({(' ' + name if name.startswith('_') else name)!r})" if name else ""


def _layer(block: Block) -> Iterator[str]:
    layer, number = block.layer, block.index
    if isinstance(layer, Curve):
        shade = colour(layer.colour)
        look = LOOKS[layer.look].format(marker=MARKERS[max(layer.colour, 0) % len(MARKERS)])
        yield f"x, y, low, high = columns({number})"
        yield f"axes.plot(x, y, color={shade!r}, {look}{_key(layer.name)})"
        yield f"error_bars(axes, x, low, high, {shade!r})"
    elif isinstance(layer, Bars):
        edge = colour(layer.colour)
        fill = paler(edge, 0.65 if layer.pale else 0.25)
        yield f"x, bottom, top, width, low, high, bar_x = columns({number})"
        yield "heights = [t - b for t, b in zip(top, bottom)]"
        shades = f"facecolor={fill!r}, edgecolor='black', linewidth=0.5"
        yield f"axes.bar(x, heights, width, bottom, {shades}{_key(layer.name)})"
        yield "error_bars(axes, bar_x, low, high, 'black')"
    elif isinstance(layer, Field):
        yield f"x, y, value, known = columns({number})"
        yield "drawn = axes.scatter(x, y, c=value, marker='s', s=600, cmap='viridis')"
        yield f"figure.colorbar(drawn, ax=axes, label=label({layer.label!r}))"
    elif isinstance(layer, Shape):
        edge = colour(layer.colour)
        yield f"x, y = columns({number})"
        yield f"axes.fill(x, y, facecolor={paler(edge)!r}, edgecolor={edge!r}{_key(layer.name)})"
    elif isinstance(layer, Line):
        side = 0 if layer.side == "left" else 1
        across = "h"
        at = f"({side}, {layer.at!r}), xycoords=('axes fraction', 'data'), ha={layer.side!r}, va='bottom'"
        if layer.axis == "x":
            across, at = (
                "v",
                f"({layer.at!r}, 1), xycoords=('data', 'axes fraction'), xytext=(1, 2), "
                "textcoords='offset points', rotation=40",
            )
        yield f"axes.ax{across}line({layer.at!r}, color={LINE_COLOUR!r}, linewidth=0.7, linestyle='--')"
        yield f"axes.annotate(label({layer.label!r}), {at}, fontsize='small')"
    elif isinstance(layer, Band):
        yield f"axes.axvspan({layer.low!r}, {layer.high!r}, color={BAND_COLOUR!r}, zorder=0)"
        if layer.label:
            place = f"({layer.low!r}, 1), xycoords=('data', 'axes fraction'), va='top', fontsize='small'"
            yield f"axes.annotate(label({layer.label!r}), {place})"
    elif isinstance(layer, Mark):
        ring = "marker='o', markersize=8, markerfacecolor='none', color='black'"
        yield f"axes.plot([{layer.x!r}], [{layer.y!r}], {ring})"
        if layer.low is not None and layer.high is not None:
            ends = f"[{layer.low!r}, {layer.high!r}], [{layer.y!r}, {layer.y!r}]"
            yield f"axes.plot({ends}, marker='|', color='black', linewidth=1)"
        yield (
            f"axes.annotate(label({layer.label!r}), ({layer.x!r}, {layer.y!r}), xytext=(6, 8), "
            "textcoords='offset points', fontsize='small')"
        )


def _axis(letter: str, axis: Axis) -> Iterator[str]:
    yield f"axes.set_{letter}scale({axis.scale!r})"
    yield f"axes.set_{letter}label(label({axis.label!r}))"
    if axis.ticks is not None:
        names = ", ".join(f"label({name!r})" for _, name in axis.ticks)
        where = (
            f", rotation={axis.rotate!r}, ha={'right' if axis.rotate > 0 else 'left'!r}"
            if axis.rotate
            else ""
        )
        yield f"axes.set_{letter}ticks([{', '.join(repr(at) for at, _ in axis.ticks)}], [{names}]{where})"
        yield "axes.minorticks_off()"
    if axis.low is not None or axis.high is not None:
        yield f"axes.set_{letter}lim({axis.low!r}, {axis.high!r})"
