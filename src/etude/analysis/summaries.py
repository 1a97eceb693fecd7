"""What another program wrote only as summaries: one metric of one test a row, with what can be said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from etude.results.table import Table
from etude.stats.intervals import Interval, t_quantile
from etude.stats.moments import interval_above_zero


@dataclass(frozen=True)
class SummaryRow:
    """One metric of one test. Values in `unit`; None for what the file does not tell."""

    test: str
    parameters: Mapping[str, str]
    metric: str
    unit: str
    figures: Mapping[str, float]
    """By the names of `results.table.SUMMARY`."""
    interval: Interval | None
    """Of the mean, from count, mean and deviation by Student's t."""


@dataclass(frozen=True)
class Summaries:
    """A file of summaries."""

    label: str
    rows: tuple[SummaryRow, ...]
    warnings: tuple[str, ...]


def summaries_of(table: Table, confidence: float = 0.95) -> Summaries:
    """The rows of a table of summaries."""
    rows = []
    for row in table.frame.iter_rows(named=True):
        figures = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, float) and value is not None and math.isfinite(value)
        }
        parameters = {name: row[name] for name in table.parameters if row[name] is not None}
        unit = table.units.get(row["metric"], "1")
        interval = _interval(figures, confidence)
        rows.append(SummaryRow(row["test"], parameters, row["metric"], unit, figures, interval))
    return Summaries(table.label, tuple(rows), table.warnings)


def _interval(figures: Mapping[str, float], confidence: float) -> Interval | None:
    """Student's, where count, mean and deviation are known; of values that are known to be positive, above zero."""
    count, mean, deviation = (figures.get(name) for name in ("count", "mean", "deviation"))
    if count is None or mean is None or deviation is None or count < 2:
        return None
    half = t_quantile(confidence, count - 1) * deviation / math.sqrt(count)
    interval = Interval(mean - half, mean + half)
    if mean > 0.0 and figures.get("minimum", -1.0) >= 0.0:
        return interval_above_zero(interval, mean, int(count))
    return interval
