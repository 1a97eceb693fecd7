"""A figure's content as plain data: drawn by `draw`, written with its scripts by `export`, compared in tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scale = Literal["linear", "log"]
Look = Literal["both", "line", "dots", "filled", "hollow", "steps", "crosses"]
State = Literal["measured", "predicted", "bounded", "failed"]
"""Origin of a field's value."""

GREY = -1
"""A colour that stands for no series."""


@dataclass(frozen=True)
class Point:
    """A value with its error bar; `low` and `high` are None where nothing is known of its spread."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


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
