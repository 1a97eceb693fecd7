"""The trials of sweeps as rows, for programs that draw and compute on their own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from etude.iolab.points import Swept

COLUMNS = ("over", "curve", "size_bytes", "trial", "metric", "value", "unit")

Row = dict[str, str | int | float]


def rows_of(swept: Swept) -> Iterator[Row]:
    """A row a kept trial: curve by curve, sizes rising, trials from 1 in the order in which they ran."""
    unit = "B/s" if swept.over == "buffer" else "s"
    for curve in swept.curves:
        for size, values in zip(curve.sizes, curve.samples, strict=True):
            for trial, value in enumerate(values, 1):
                row = (swept.over, curve.name, int(size), trial, swept.metric, float(value), unit)
                yield dict(zip(COLUMNS, row, strict=True))


def csv_text(sweeps: Iterable[Swept]) -> str:
    """The rows of all of them under one head."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for swept in sweeps:
        writer.writerows(rows_of(swept))
    return text.getvalue()
