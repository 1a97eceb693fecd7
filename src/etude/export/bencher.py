"""Bencher Metric Format (BMF): an object of benchmarks, each an object of measures with a value and its limits.

As its reference says: names of benchmarks have up to 1024 characters, those of measures 64; there is no unit.
"""

from __future__ import annotations

import json

from etude.export.document import Document, Exported, at_most, omit_point, one_line, require_one_run

_NAME, _MEASURE = 1024, 64


def write(document: Document) -> Exported:
    """Means and the limits of their intervals; the unit stands in the measure's name."""
    points, left_out = require_one_run(document, "Bencher")
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for point in points:
        figures = point.figures
        if figures is None or figures.mean is None:
            left_out.append(omit_point(point))
            continue
        limits = {"lower_value": figures.low, "upper_value": figures.high}
        metric = {"value": figures.mean} | {k: v for k, v in limits.items() if v is not None}
        name = at_most(one_line(document.name(point)), _NAME)
        unit = "" if point.unit == "1" else f" ({point.unit})"
        measures = benchmarks.setdefault(name, {})
        measure = at_most(one_line(point.metric + unit), _MEASURE)
        if measure in measures:
            left_out.append(omit_point(point, f"another metric is called {measure!r}"))
        measures.setdefault(measure, metric)
    return Exported(json.dumps(benchmarks, indent=1, ensure_ascii=False) + "\n", tuple(left_out))
