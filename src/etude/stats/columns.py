"""Names of time columns: in Étude, in Getstats' tables, and in Auto-pilot's files; and columns of aligned cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DISPLAY: Mapping[str, str] = {
    "elapsed": "Elapsed",
    "system": "System",
    "user": "User",
    "wait": "Wait",
    "cpu": "CPU%",
}
"""Names in tables by our metric's name, in the order of Auto-pilot's figure 2."""

RAW: Mapping[str, str] = {"elapsed": "elapsed", "system": "sys", "user": "user", "wait": "io", "cpu": "cpu"}
"""Getstats' own column names by our metric's name, used in its warnings."""

_METRIC = {name: metric for names in (DISPLAY, RAW) for metric, name in names.items()}


def metric_name(column: str) -> str:
    """Our name of a column given by any of its names; other names are returned unchanged."""
    return _METRIC.get(column, column)


def display_name(column: str) -> str:
    """Table name of a column given by any of its names."""
    metric = metric_name(column)
    return DISPLAY.get(metric, metric)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned cells: the first of a row to the left with two blanks after it, the others to the right with one
    between."""
    widths = [max(map(len, cell)) for cell in zip(*rows, strict=True)]
    return [
        f"{first.ljust(widths[0])}  {' '.join(map(str.rjust, rest, widths[1:]))}" for first, *rest in rows
    ]
