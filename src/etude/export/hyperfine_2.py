"""Results as hyperfine 2 writes them with --export-json (schema_version 2): each run's measurement with all its
metrics."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from typing import Any

from etude.export.document import Document, Exported, NotExported, Point, by_test, omit_point, one_line
from etude.version import __version__

SCHEMA = 2
_NAMES = {
    "elapsed": ("time_wall_clock", "s"),
    "user": ("time_user", "s"),
    "system": ("time_system", "s"),
    "peak_memory": ("memory_peak_resident", "B"),
    "cycles": ("cpu_cycles", "1"),
    "instructions": ("instructions", "1"),
    "cache_references": ("cache_references", "1"),
    "cache_misses": ("cache_misses", "1"),
    "branch_misses": ("branch_misses", "1"),
}
"""Our metrics that it has, by name there, with the unit that each must have."""
_UNITS = {"s": "second", "B": "byte"}


def write(document: Document) -> Exported:
    """`time_cpu` is the sum of user and system time, as it is there."""
    results, left_out = [], list[NotExported]()
    for group in by_test(document.points):
        columns, lacking = _columns(group)
        left_out += lacking
        if "time_wall_clock" in columns:
            results.append(_result(document, group[0], columns))
        else:
            left_out.append(
                NotExported(group[0].test, "elapsed", "not every included trial has it in seconds")
            )
    whole = {
        "schema_version": SCHEMA,
        "metadata": {"written_by": f"etude {__version__}"},
        "primary_metric": _NAMES.get(document.primary, _NAMES["elapsed"])[0],
        "results": results,
    }
    if not all(whole["primary_metric"] in result["summary"] for result in results):
        whole["primary_metric"] = "time_wall_clock"
    return Exported(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", tuple(left_out))


def _columns(group: tuple[Point, ...]) -> tuple[dict[str, tuple[str, tuple[float, ...]]], list[NotExported]]:
    columns, lacking = {}, []
    count = max(len(point.values) for point in group)
    for point in group:
        name, unit = _NAMES.get(point.metric, ("", ""))
        if name and unit == point.unit and count and len(point.known) == count:
            columns[name] = unit, point.known
        else:
            why = (
                "not every included trial has it"
                if name and unit == point.unit
                else "hyperfine has no such metric"
            )
            lacking.append(omit_point(point, why))
    if "time_user" in columns and "time_system" in columns:
        both = zip(columns["time_user"][1], columns["time_system"][1], strict=True)
        columns["time_cpu"] = "s", tuple(user + system for user, system in both)
    return columns, lacking


def _result(
    document: Document, point: Point, columns: Mapping[str, tuple[str, tuple[float, ...]]]
) -> dict[str, Any]:
    count = len(columns["time_wall_clock"][1])
    result: dict[str, Any] = {
        "command": one_line(document.name(point)),
        "measurements": [
            {name: _quantity(values[row], unit) for name, (unit, values) in columns.items()}
            | {"exit_code": None}
            for row in range(count)
        ],
    }
    if point.parameters:
        result["parameters"] = {
            one_line(name): {"value": one_line(value)} for name, value in point.parameters
        }
    result["summary"] = {name: _summary(*column) for name, column in sorted(columns.items())}
    return result


def _quantity(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": _UNITS[unit]} if unit in _UNITS else {"value": value}


def _summary(unit: str, values: tuple[float, ...]) -> dict[str, Any]:
    return ({"unit": _UNITS[unit]} if unit in _UNITS else {}) | {
        "count": len(values),
        "mean": statistics.fmean(values),
        "stddev": statistics.stdev(values) if len(values) > 1 else None,
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }
