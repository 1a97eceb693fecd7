"""A custom tool's results for github-action-benchmark: a list of names with a value, its unit and its spread."""

from __future__ import annotations

import json

from etude.export.document import (
    Document,
    Exported,
    NotExported,
    Point,
    omit_point,
    one_line,
    require_one_run,
)
from etude.units.formatting import counted


def write_smaller(document: Document) -> Exported:
    """Results for its tool customSmallerIsBetter: the means of all costs; `range` is the margin of error."""
    return _means(document, "cost")


def write_bigger(document: Document) -> Exported:
    """Results for its tool customBiggerIsBetter: the means of all rates."""
    return _means(document, "rate")


def _means(document: Document, kind: str) -> Exported:
    """Means of all metrics of this kind; a test's primary metric has the test's name alone."""
    points, left_out = require_one_run(document, "github-action-benchmark")
    rows = []
    for point in points:
        if point.kind != kind:
            continue
        if point.figures is None or point.figures.mean is None:
            left_out.append(omit_point(point))
            continue
        rows.append(_row(document, point))
    unclear = "it is not known whether more of it is better"
    left_out += [omit_point(p, unclear) for p in points if p.figures and p.kind not in ("cost", "rate")]
    if not rows:
        left_out.append(NotExported("", "", f"no metric is a {kind}, and the action refuses an empty list"))
    return Exported(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", tuple(left_out))


def _row(document: Document, point: Point) -> dict[str, str | float]:
    figures = point.figures
    assert figures is not None
    assert figures.mean is not None
    name = one_line(document.name(point))
    row: dict[str, str | float] = {
        "name": name if point.metric == document.primary else f"{name}: {one_line(point.metric)}",
        "value": figures.mean,
        "unit": point.unit,
    }
    if figures.low is not None and figures.high is not None:
        row["range"] = f"± {(figures.high - figures.low) / 2!r}"
    row["extra"] = "\n".join(_extra(point))
    return row


def _extra(point: Point) -> list[str]:
    figures = point.figures
    assert figures is not None
    lines = [counted(figures.count, "trial")] if figures.count is not None else []
    lines += [f"median {figures.median!r} {point.unit}"] if figures.median is not None else []
    lines += [f"machine {one_line(point.run.machine.name)}"] if point.run.machine else []
    lines += [f"tags {one_line(','.join(point.run.tags))}"] if point.run.tags else []
    return lines + [f"{one_line(name)}={one_line(value)}" for name, value in point.parameters]
