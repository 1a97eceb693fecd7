"""Results as hyperfine 1 writes them with --export-json: times by run, and their summary.

User and system time are means over all runs there; each run has its wall time, and its memory where that is known.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from typing import Any

from etude.export.document import Document, Exported, NotExported, Point, by_test, omit_point, one_line
from etude.results.delimited import text_cell

COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")
"""Columns of its CSV."""


def write(document: Document) -> Exported:
    """The test's name is the command, as with hyperfine's --command-name."""
    results, left_out = [], list[NotExported]()
    for group in by_test(document.points):
        metrics = {point.metric: point for point in group}
        elapsed = metrics.get("elapsed")
        if elapsed is None or elapsed.unit != "s" or None in elapsed.values or not elapsed.values:
            left_out.append(
                NotExported(group[0].test, "elapsed", "not every included trial has it in seconds")
            )
            continue
        results.append(_result(document, elapsed, metrics))
        held = ("elapsed", "user", "system", "peak_memory")
        left_out += [omit_point(p, "hyperfine has no such metric") for p in group if p.metric not in held]
    return Exported(json.dumps({"results": results}, indent=2, ensure_ascii=False) + "\n", tuple(left_out))


def write_csv(document: Document) -> Exported:
    """Results as it writes them with --export-csv: a row a test, times in seconds, a column for each parameter."""
    found = write(document)
    results = json.loads(found.text)["results"]
    names = list(dict.fromkeys(name for each in results for name in each.get("parameters", {})))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *(f"parameter_{name}" for name in names)])
    for each in results:
        values = each.get("parameters", {})
        cells = [*(each[column] for column in COLUMNS), *(values.get(name, "") for name in names)]
        rows.writerow([text_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return Exported(text.getvalue(), found.left_out)


def _result(document: Document, elapsed: Point, metrics: dict[str, Point]) -> dict[str, Any]:
    times = list(elapsed.known)
    result: dict[str, Any] = {
        "command": one_line(document.name(elapsed)),
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        **{name: _mean(metrics.get(name)) for name in ("user", "system")},
        "min": min(times),
        "max": max(times),
        "times": times,
    }
    memory = metrics.get("peak_memory")
    if memory is not None and len(memory.known) == len(times) and memory.unit == "B":
        result["memory_usage_byte"] = [int(value) for value in memory.known]
    result["exit_codes"] = [None] * len(times)  # a kept trial's was allowed, and need not have been 0
    if elapsed.parameters:
        result["parameters"] = {one_line(name): one_line(value) for name, value in elapsed.parameters}
    return result


def _mean(point: Point | None) -> float | None:
    return statistics.fmean(point.known) if point is not None and point.known and point.unit == "s" else None
