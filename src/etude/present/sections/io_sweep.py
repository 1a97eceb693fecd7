"""A sweep of the I/O benchmark as blocks: its table, its reading, its figures; and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from etude.iolab import comparisons, costs
from etude.iolab.lab import Studied
from etude.iolab.landmarks import size_text
from etude.iolab.points import Points, Swept
from etude.present.section import Block, Column, FilePath, Sentence, Table
from etude.present.sentences.io_lab import explanation_of
from etude.units.formatting import percent, quantity

FORMAT, VERSION = "etude-io", 1


def sweep_blocks(each: Studied) -> Iterator[Block]:
    """A sweep: its table, its reading, and where the figures are."""
    yield _table(each.swept)
    explained = explanation_of(each.reading)
    yield from map(Sentence, explained.findings)
    yield from (Sentence(f"Note: {caveat}.", "aside") for caveat in explained.caveats)
    yield from figure_places(each)
    yield FilePath("Results", str(each.results.directory), "aside")


def figure_places(each: Studied) -> Iterator[Block]:
    """Paths of the figures of a sweep."""
    return (FilePath(f"Figure {name}", str(path), "aside") for name, path in each.figures.items())


def sweeps_document(studied: Sequence[Studied]) -> dict[str, Any]:
    """Sweeps as JSON-able data."""
    return {"format": FORMAT, "version": VERSION, "sweeps": [_document(each) for each in studied]}


def _table(swept: Swept) -> Table:
    sizes = sorted({float(size) for curve in swept.curves for size in curve.sizes})
    unit = "B/s" if swept.over == "buffer" else "s"
    columns = [Column(f"{swept.over} size", [size_text(size) for size in sizes])]
    for rank, curve in enumerate(swept.curves):
        cells = [_cell(curve, size, unit) for size in sizes]
        columns.append(Column(curve.name, [median for median, _ in cells], rank))
        columns.append(Column("quartiles", [spread for _, spread in cells], rank + len(swept.curves)))
    return Table(tuple(columns))


def _cell(curve: Points, size: float, unit: str) -> tuple[str, str]:
    if size not in curve.sizes:
        return "–", "–"
    place = int((curve.sizes == size).argmax())
    median, (low, high) = float(curve.medians[place]), (ends[place] for ends in curve.quartiles)
    return quantity(median, unit), f"{_away(low, median)} … {_away(high, median)}"


def _away(value: float, median: float) -> str:
    relative = value / median - 1
    return f"{'−' if relative < 0 else '+'}{percent(abs(relative))}"


def _document(studied: Studied) -> dict[str, Any]:
    swept, reading = studied.swept, explanation_of(studied.reading)
    return {
        "results": str(studied.results.directory),
        "over": swept.over,
        "metric": swept.metric,
        "unit": "B/s" if swept.over == "buffer" else "s",
        "curves": [{"name": curve.name, "points": _points(curve)} for curve in swept.curves],
        "storage": None if swept.storage is None else [float(value) for value in swept.storage],
        "costs": [costs.document(each) for each in reading.costs],
        "shapes": [asdict(each) for each in reading.shapes],
        "partings": [asdict(each) for each in reading.partings],
        "comparisons": [comparisons.document(each) for each in reading.comparisons],
        "findings": list(reading.findings),
        "caveats": list(reading.caveats),
        "figures": {name: str(path) for name, path in studied.figures.items()},
    }


def _points(curve: Points) -> list[dict[str, float]]:
    low, high = curve.quartiles
    return [
        {"size": float(size), "trials": values.size, "median": float(median), "q1": float(a), "q3": float(b)}
        for size, values, median, a, b in zip(
            curve.sizes, curve.samples, curve.medians, low, high, strict=True
        )
    ]
