"""A sweep of the I/O benchmark as blocks, as a section of a page, and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from etude.analysis.subject import Subject
from etude.iolab import comparisons, costs
from etude.iolab.lab import LINKING, SIGNIFICANCE, THROUGHPUT, Studied, figures_of, reading_of
from etude.iolab.landmarks import size_text
from etude.iolab.points import Points, Swept, gaps_of, swept_of
from etude.present.section import (
    Block,
    Column,
    FilePath,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
    number,
)
from etude.present.sentences import io_buffers, io_totals
from etude.present.sentences.io_lab import explanation_of, gap_lines, question_lines, sentence, verdict_of
from etude.results.series import Floats
from etude.units.formatting import percent, quantity

FORMAT, VERSION = "etude-io", 1
SIZE = (6.5, 3.9)
"""Size of a figure in a page, inches."""
CAPTIONS = {
    THROUGHPUT: "Median throughput over the buffer size; bars are quartiles. Upright lines are sizes of this machine.",
    LINKING: "Above: median times over the file size, bars are quartiles. Below: their ratio, with 1 % and 5 % more.",
    SIGNIFICANCE: "Above: mean times with standard deviations. Below: p at each size, not adjusted for their number.",
}
"""Captions of figures, by name."""


def sweep_section(subject: Subject, key: str, heading: str, *, several: bool = False) -> Section:
    """The section of one sweep; `several`: there are other results, so that its answer names it.

    Raises:
        InputError: it is none.
    """
    swept = swept_of(subject)
    explained = explanation_of(reading_of(swept))
    where = f"{subject.label}: " if several else ""
    answer, gaps = verdict_of(explained), gaps_of(subject, swept)
    questions = question_lines(explained, gaps)
    caveats = tuple(map(sentence, io_totals.CAVEATS if explained.over == "total" else io_buffers.CAVEATS))
    blocks: tuple[Block, ...] = (
        Paragraphs("Reading", explained.findings),
        Paragraphs("Not measured", gap_lines(gaps) or ("Nothing that was planned is missing.",)),
        Paragraphs("How to read it", caveats),
        *(Picture(CAPTIONS[name], figure, SIZE) for name, figure in figures_of(subject).items()),
        _page_table(swept, key),
    )
    told = {name: tuple(f"{where}{line}" for line in lines) for name, lines in questions.items()}
    return Section(key, heading, blocks, tuple(f"{where}{line}" for line in answer), told)


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
    unit = _unit(swept)
    columns = [Column(f"{swept.over} size", [size_text(size) for size in sizes])]
    for rank, curve in enumerate(swept.curves):
        cells = [_cell(curve, size, unit) for size in sizes]
        columns.append(Column(curve.name, [median for median, _ in cells], rank))
        columns.append(Column("quartiles", [spread for _, spread in cells], rank + len(swept.curves)))
    return Table(tuple(columns))


def _unit(swept: Swept) -> str:
    return "B/s" if swept.over == "buffer" else "s"


def _page_table(swept: Swept, key: str) -> Table:
    """All columns of the screen's table, with the number of trials; they sort by value."""
    sizes = sorted({float(size) for curve in swept.curves for size in curve.sizes})
    columns = [Column(f"{swept.over} size", [number(size_text(size), size) for size in sizes])]
    for curve in swept.curves:
        cells = [_cell(curve, size, _unit(swept)) for size in sizes]
        found = [_sample(curve, size) for size in sizes]
        medians = [None if sample is None else float(np.median(sample)) for sample in found]
        counts = [0 if sample is None else sample.size for sample in found]
        columns += [
            Column(
                curve.name, [number(text, value) for (text, _), value in zip(cells, medians, strict=True)]
            ),
            Column("quartiles", [spread for _, spread in cells]),
            Column("trials", [number(str(count), count) for count in counts]),
        ]
    what = "Median throughput" if swept.over == "buffer" else "Median time"
    return Table(tuple(columns), f"{key}-sizes", f"{what} of each curve at each size", 0, room="page")


def _sample(curve: Points, size: float) -> Floats | None:
    return curve.at(size) if size in curve.sizes else None


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
        "unit": _unit(swept),
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
