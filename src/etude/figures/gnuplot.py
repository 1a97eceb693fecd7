"""The Gnuplot script of a figure: kept beside its data, to be edited and run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.figures.data import Axis, Band, Bars, Block, Curve, Field, Figure, Line, Mark, Panel, Shape
from etude.figures.style import BAND_COLOUR, LINE_COLOUR, MARKERS, colour, paler

POINTS = (7, 5, 9, 13, 11, 2, 3, 1)
"""Gnuplot's marks, in the order of ours."""

THRESHOLD = f"dashtype 2 linecolor rgb '{LINE_COLOUR}'"
SLANT = 40
"""Degrees of the names above a panel: neighbours do not lie on each other."""

WHISKERS = "with vectors heads size graph 0.006,90 nofilled"

KEY_WORDS = {
    "best": "top right",
    "above": "above",
    "outside": "below",
    "below": "below",
    "beside": "outside right top",
}


def gnuplot_script(figure: Figure, found: Sequence[Block], stem: str) -> str:
    """It draws STEM.gnuplot.svg from STEM.dat, in the directory in which both are."""
    several = len(figure.panels)
    height = 480 if several < 2 else 160 + 200 * several
    lines = [
        f"# Draws {_comment(stem)}.dat: run gnuplot in this directory. Needs Gnuplot 5 or newer.",
        "set encoding utf8",
        f"set terminal svg size 640,{height} noenhanced font 'DejaVu Sans,14' background 'white'",
        f"set output {quoted(stem + '.gnuplot.svg')}",
        f"data = {quoted(stem + '.dat')}",
        "set border 3",
        "set tics nomirror",
        "set grid ytics linecolor rgb '#dddddd'",
        _key(figure),
        *_axis("x", figure.x),
    ]
    if several > 1:
        lines.append("set lmargin 12")  # panels stand exactly below each other
        title = f" title {quoted(figure.title)}" if figure.title else ""
        lines.append(f"set multiplot layout {len(figure.panels)},1{title}")
    elif figure.title:
        lines.append(f"set title {quoted(figure.title)}")
    for number, panel in enumerate(figure.panels):
        if several > 1:
            lines.append(f"set xlabel {quoted(figure.x.label if number == several - 1 else '')}")
        lines += _panel(panel, [block for block in found if block.panel == number])
    if several > 1:
        lines.append("unset multiplot")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A text between single quotes, in which nothing has a meaning but the quote itself."""
    return "'" + text.replace("'", "''").replace("\n", " ") + "'"


def _comment(text: str) -> str:
    """The text of a comment; a backslash at its end would join the next line."""
    return text.replace("\\", "/").replace("\n", " ")


def _key(figure: Figure) -> str:
    if figure.key == "off" or not figure.names():
        return "unset key"
    return f"set key {KEY_WORDS.get(figure.key, figure.key)}"


def _axis(letter: str, axis: Axis) -> Iterator[str]:
    yield f"set {letter}label {quoted(axis.label)}"
    yield f"{'set' if axis.scale == 'log' else 'unset'} logscale {letter}"
    low, high = ("*" if end is None else f"{end:.12g}" for end in (axis.low, axis.high))
    yield f"set {letter}range [{low}:{high}]"
    if axis.ticks is not None:
        ticks = ", ".join(f"{quoted(name)} {at:.12g}" for at, name in axis.ticks)
        rotate = f" rotate by {axis.rotate:g} right" if axis.rotate else ""
        yield f"set {letter}tics{rotate} ({ticks})"
    elif axis.rotate:
        yield f"set {letter}tics rotate by {axis.rotate:g} right"


def _panel(panel: Panel, found: Sequence[Block]) -> Iterator[str]:
    yield from _axis("y", panel.y)
    if (
        any(isinstance(block.layer, Bars) for block in found)
        and panel.y.low is None
        and panel.y.scale == "linear"
    ):
        lowest = min(b.bottom for block in found if isinstance(block.layer, Bars) for b in block.layer.boxes)
        pale = any(block.layer.pale for block in found if isinstance(block.layer, Bars))
        if lowest >= 0 and not pale:
            yield "set yrange [0:*]"
    yield "unset arrow"
    yield "unset object"
    yield "unset label"
    if panel.title:
        yield f"set title {quoted(panel.title)}"
    if any(isinstance(block.layer, Line) and block.layer.axis == "x" for block in found):
        yield "set tmargin 8; set rmargin 10"  # for the names of upright lines, which Gnuplot gives no room
    yield from _beside(found)
    drawn = [part for block in found for part in _parts(block)]
    if not drawn:  # thresholds alone: an empty panel keeps its place
        drawn = ["NaN notitle"]
    yield "plot " + ", \\\n     ".join(drawn)


def _beside(found: Sequence[Block]) -> Iterator[str]:
    for block in found:
        layer = block.layer
        if isinstance(layer, Line):
            yield from _threshold(layer)
        elif isinstance(layer, Band):
            yield (
                f"set object rectangle from {layer.low:.12g}, graph 0 to {layer.high:.12g}, graph 1 behind "
                f"fillstyle solid noborder fillcolor rgb '{BAND_COLOUR}'"
            )
            if layer.label:
                yield f"set label {quoted(layer.label)} at {layer.low:.12g}, graph 1.04"
        elif isinstance(layer, Mark):
            if layer.low is not None and layer.high is not None:
                ends = f"from {layer.low:.12g}, {layer.y:.12g} to {layer.high:.12g}, {layer.y:.12g}"
                yield f"set arrow {ends} heads size graph 0.01,90 front linecolor rgb 'black'"
            yield f"set label {quoted(layer.label)} at {layer.x:.12g}, {layer.y:.12g} point pointtype 6 offset 0.7,0.7"


def _threshold(line: Line) -> Iterator[str]:
    """The label, and the line where it is a vertical one: a horizontal one is plotted, so that it is in range."""
    at = f"{line.at:.12g}"
    if line.axis == "x":
        yield f"set arrow from {at}, graph 0 to {at}, graph 1 nohead {THRESHOLD}"
        place = f"{at}, graph 1.02 rotate by {SLANT}"
    else:
        place = f"graph {0.01 if line.side == 'left' else 0.99}, first {at} {line.side} offset 0,0.4"
    if line.label:
        yield f"set label {quoted(line.label)} at {place} front"


def _parts(block: Block) -> Iterator[str]:
    layer, at = block.layer, f"data index {block.index}"
    if isinstance(layer, Curve):
        shade = f"linecolor rgb '{colour(layer.colour)}'"
        mark = f"pointtype {POINTS[max(layer.colour, 0) % len(MARKERS)]}"
        looks = {
            "both": f"with linespoints {shade} {mark}",
            "line": f"with lines {shade}",
            "steps": f"with steps {shade}",
            "dots": f"with points {shade} pointtype 7 pointsize 0.4",
            "filled": f"with points {shade} pointtype 7",
            "hollow": f"with points {shade} pointtype 6",
            "crosses": f"with points {shade} pointtype 2",
        }
        yield f"{at} using 1:2 {looks[layer.look]} {_title(layer.name)}"
        if any(p.low is not None for p in layer.points):
            yield f"{at} using 1:3:(0):($4-$3) {WHISKERS} {shade} notitle"
    elif isinstance(layer, Bars):
        edge = colour(layer.colour)
        inside = paler(edge, 0.65 if layer.pale else 0.25)
        fill = f"fillstyle solid 1.0 border linecolor rgb '{edge}' fillcolor rgb '{inside}'"
        box = "($1-$4/2):($1+$4/2):2:3"
        yield f"{at} using 1:2:{box} with boxxyerror {fill} {_title(layer.name)}"
        if any(b.low is not None for b in layer.boxes):
            yield f"{at} using 7:5:(0):($6-$5) {WHISKERS} linecolor rgb 'black' notitle"
    elif isinstance(layer, Line) and layer.axis == "y":
        yield f"{layer.at:.12g} with lines {THRESHOLD} notitle"
    elif isinstance(layer, Field):
        yield f"{at} using 1:2:3 with points palette pointtype 5 pointsize 5 notitle"
    elif isinstance(layer, Shape):
        edge = colour(layer.colour)
        yield f"{at} using 1:2 with filledcurves closed fillcolor rgb '{paler(edge)}' {_title(layer.name)}"


def _title(name: str) -> str:
    return f"title {quoted(name)}" if name else "notitle"
