"""A figure's layers as blocks of numbers, and as a text file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from etude.figures.data import Band, Bars, Curve, Field, Figure, Layer, Line, Mark, Shape, name_of

Row = tuple[float | None, ...]


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
