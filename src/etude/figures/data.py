"""A figure's content as plain data: drawn by `draw`, written with its scripts by `save`, compared in tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from etude.errors import UsageError
from etude.escaping import visible

Scale = Literal["linear", "log"]
Look = Literal["both", "line", "dots", "filled", "hollow", "steps", "crosses"]
State = Literal["measured", "predicted", "bounded", "failed"]
"""Origin of a field's value."""

GREY = -1
"""A colour that stands for no series."""


LONGEST = 48
"""Characters of a label."""
MOST_SERIES = 24
"""More curves, or kinds of bars, cannot be told from each other."""
Row = tuple[float | None, ...]


@dataclass(frozen=True)
class Point:
    """A value with its error bar; `low` and `high` are None where nothing is known of its spread."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None

    def divided(self, by: float) -> Point:
        """The point with y and its bar in a unit that is so many times larger."""
        low, high = (None if v is None else v / by for v in (self.low, self.high))
        return Point(self.x, self.y / by, low, high)


@dataclass(frozen=True)
class Curve:
    """Points of one series, in order of x."""

    name: str
    """Name in the key; empty: not in the key."""
    points: tuple[Point, ...]
    colour: int = 0
    """Its place in the palette, or GREY."""
    look: Look = "both"


@dataclass(frozen=True)
class Box:
    """One rectangle around `x`, with an error bar at `bar_x` (`x` itself unless given)."""

    x: float
    width: float
    bottom: float
    top: float
    low: float | None = None
    high: float | None = None
    bar_x: float | None = None


@dataclass(frozen=True)
class Bars:
    """Rectangles of one name; pale ones let their error bars end at their edge."""

    name: str
    boxes: tuple[Box, ...]
    colour: int = 0
    pale: bool = False


@dataclass(frozen=True)
class Shape:
    """A filled outline, such as a violin."""

    name: str
    outline: tuple[tuple[float, float], ...]
    colour: int = 0


@dataclass(frozen=True)
class Line:
    """A threshold across the whole panel, at a value of this axis."""

    at: float
    label: str
    axis: Literal["x", "y"] = "y"
    side: Literal["left", "right"] = "right"
    """Side of a horizontal line's label."""


@dataclass(frozen=True)
class Band:
    """A shaded stretch of the x axis: a block, or a boot."""

    low: float
    high: float
    label: str = ""


@dataclass(frozen=True)
class Mark:
    """A point that is pointed at, with a word."""

    x: float
    y: float
    label: str
    low: float | None = None
    high: float | None = None
    """Ends of the interval of x, drawn as a bar across; None where none is known."""


@dataclass(frozen=True)
class Spot:
    """A value of a field; None where none is known."""

    x: float
    y: float
    value: float | None
    state: State = "measured"


@dataclass(frozen=True)
class Field:
    """A value at each crossing of two axes: coloured cells with iso-lines, or a surface in space."""

    x: tuple[float, ...]
    """Places of the cells, ascending."""
    y: tuple[float, ...]
    spots: tuple[Spot, ...]
    label: str = ""
    """Label of the values, with their unit."""
    levels: tuple[float, ...] = ()
    """Levels of iso-lines."""
    solid: bool = False
    """Drawn as a surface in space; it is the only layer of its figure then."""


Layer = Curve | Bars | Shape | Line | Band | Mark | Field


@dataclass(frozen=True)
class Axis:
    """One axis; `ticks` in place of numbers are positions with their names."""

    label: str = ""
    scale: Scale = "linear"
    ticks: tuple[tuple[float, str], ...] | None = None
    rotate: float = 0.0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Panel:
    """One picture of those that stand below each other on a common x axis."""

    y: Axis
    layers: tuple[Layer, ...]
    height: float = 1.0
    """Height relative to the other panels."""
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """All that is drawn, and what has to be said beside it."""

    x: Axis
    panels: tuple[Panel, ...]
    title: str = ""
    key: str = "best"
    """Place of the key, in Gnuplot's words: `top right`, `outside`, `off`; `beside`: each panel's to its right."""
    notes: tuple[str, ...] = ()
    """Notes on what was left out, and on the meaning of error bars."""
    kind: str = "lines"

    def names(self) -> tuple[str, ...]:
        """Names in the key, each once."""
        found = (name_of(layer) for panel in self.panels for layer in panel.layers)
        return tuple(dict.fromkeys(name for name in found if name))


def name_of(layer: Layer) -> str:
    """The layer's name in the key; empty if it is not there."""
    return layer.name if isinstance(layer, Curve | Bars | Shape) else ""


def label(text: str, longest: int = LONGEST) -> str:
    """The text in one line, without control characters, shortened in its middle."""
    clean = "".join(c if c.isprintable() else " " for c in text.encode("utf-8", "replace").decode("utf-8"))
    clean = " ".join(clean.split())
    if len(clean) <= longest:
        return clean
    half = (longest - 1) // 2
    return f"{clean[: longest - 1 - half]}…{clean[len(clean) - half :]}"


def labels(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """The label of each name of one figure; no two names have the same one.

    Names that would be alike once shortened are cut where they agree; those that differ in blanks only have a number.
    """
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(label(visible(name) if name else "", longest), []).append(name)
    found = {same[0]: text for text, same in alike.items() if len(same) == 1}
    taken = set(found.values())
    for same in alike.values():
        for name, text in _cut_alike(same, longest).items() if len(same) > 1 else ():
            number, free = 1, text
            while free in taken:
                number += 1
                free = f"{label(text, max(longest - len(str(number)) - 3, 1))} ({number})"
            taken.add(free)
            found[name] = free
    return found


def _cut_alike(names: Sequence[str], longest: int) -> dict[str, str]:
    """Names around the part in which they differ, with what is before and behind it cut where it is too long."""
    texts = [" ".join(visible(name).split()) for name in names]
    before = _shared(texts)
    least = min(map(len, texts))
    behind = min(_shared([text[::-1] for text in texts]), least - before)
    room = longest - 2 - max(len(text) - before - behind for text in texts)
    kept_behind = min(behind, max(room // 2, 0))
    kept_before = min(before, max(room - kept_behind, 0))
    found = {}
    for name, text in zip(names, texts, strict=True):
        end = len(text) - behind
        middle = text[before - kept_before : end + kept_behind]
        shown = f"{'…' * (kept_before < before)}{middle}{'…' * (kept_behind < behind)}"
        found[name] = label(shown, longest)
    return found


def _shared(texts: Sequence[str]) -> int:
    """Characters at the begin that all have; the first and the last in order differ soonest."""
    first, last = min(texts), max(texts)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def check_count(count: int, what: str) -> None:
    """Raises UsageError where there are more than can be told from each other."""
    if count > MOST_SERIES:
        raise UsageError(
            f"{count} {what} in one figure are not distinguishable; choose at most {MOST_SERIES} "
            "(name fewer files, or --test)"
        )


COLUMNS = {
    Curve: "x y low high",
    Bars: "x bottom top width low high bar_x",
    Shape: "x y",
    Line: "at",
    Band: "low high",
    Mark: "x y low high",
    Field: "x y value measured",
}


@dataclass(frozen=True)
class Block:
    """One layer's rows in the data file, and where it belongs."""

    index: int
    """Number of the block in the file, from 0: Gnuplot's `index`."""
    panel: int
    layer: Layer
    rows: tuple[Row, ...]


def blocks(figure: Figure) -> Iterator[Block]:
    """Each layer that has rows, in the order in which it is drawn."""
    index = 0
    for panel, each in enumerate(figure.panels):
        for layer in each.layers:
            rows = tuple(_rows(layer))
            if rows:
                yield Block(index, panel, layer, rows)
                index += 1


def _rows(layer: Layer) -> Iterator[Row]:
    if isinstance(layer, Curve):
        yield from ((p.x, p.y, p.low, p.high) for p in layer.points)
    elif isinstance(layer, Bars):
        for b in layer.boxes:
            yield b.x, b.bottom, b.top, b.width, b.low, b.high, b.x if b.bar_x is None else b.bar_x
    elif isinstance(layer, Shape):
        yield from layer.outline
    elif isinstance(layer, Field):
        yield from ((s.x, s.y, s.value, float(s.state == "measured")) for s in layer.spots)
    elif isinstance(layer, Line):
        yield (layer.at,)
    elif isinstance(layer, Band):
        yield layer.low, layer.high
    else:
        yield layer.x, layer.y, layer.low, layer.high


def data_file(figure: Figure, found: Sequence[Block]) -> str:
    """Blocks of numbers, two empty lines apart; `NaN` where nothing is known."""
    parts = [f"# {line}" for line in (figure.title, *figure.notes) if line]
    for block in found:
        if block.index:
            parts += ["", ""]
        name = name_of(block.layer) or getattr(block.layer, "label", "")
        parts.append(
            f"# block {block.index}, panel {block.panel + 1}: {type(block.layer).__name__} {name}".rstrip()
        )
        parts.append(f"# {COLUMNS[type(block.layer)]}")
        parts += [
            " ".join("NaN" if value is None else f"{value:.12g}" for value in row) for row in block.rows
        ]
    return "\n".join(parts) + "\n"
