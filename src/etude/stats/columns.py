"""What the columns of time data are called: by Étude, in Getstats' tables, and in Auto-pilot's files."""

from __future__ import annotations

from collections.abc import Mapping

DISPLAY: Mapping[str, str] = {
    "elapsed": "Elapsed",
    "system": "System",
    "user": "User",
    "wait": "Wait",
    "cpu": "CPU%",
}
"""Our metric's name to the name in a table, in the order of Auto-pilot's figure 2."""

RAW: Mapping[str, str] = {"elapsed": "elapsed", "system": "sys", "user": "user", "wait": "io", "cpu": "cpu"}
"""Our metric's name to Getstats' own name of the column, which its warnings use."""

_METRIC = {name: metric for names in (DISPLAY, RAW) for metric, name in names.items()}


def metric_name(column: str) -> str:
    """Our name of a column that may be given by any of its names; one that is none of these is a metric's own."""
    return _METRIC.get(column, column)


def display_name(column: str) -> str:
    """The name in a table of a column that may be given by any of its names."""
    metric = metric_name(column)
    return DISPLAY.get(metric, metric)
