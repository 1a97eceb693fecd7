"""From entries of a store to what is exported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from etude.errors import InputError
from etude.export.document import Document, Point, Run
from etude.export.sample_description import figures_of
from etude.store.entry import Entry, Machine


def document_of(entries: Sequence[Entry], *, confidence: float = 0.95) -> Document:
    """Each entry as a point, in the order given; the metric that most of them have is judged, elapsed first.

    Raises:
        InputError: there is no entry.
    """
    if not entries:
        raise InputError("the store has no entry of these tests and metrics; etude store tests lists them")
    metrics = [entry.metric for entry in entries]
    primary = "elapsed" if "elapsed" in metrics else max(metrics, key=metrics.count)
    began: dict[tuple[int, Machine], datetime] = {}
    for entry in entries:
        place = entry.result, entry.machine
        began[place] = min(entry.measured, began.get(place, entry.measured))
    points = (_point(entry, began[entry.result, entry.machine], confidence) for entry in entries)
    return Document(tuple(points), primary)


def _point(entry: Entry, began: datetime, confidence: float) -> Point:
    run = Run(
        entry.source or f"result {entry.result}",
        entry.machine,
        began,
        entry.commit,
        entry.committed,
        entry.branch,
        entry.tags,
    )
    figures = figures_of(entry.values, entry.kind, confidence=confidence)
    return Point(run, entry.test, entry.metric, entry.unit, entry.kind, entry.values, figures)
