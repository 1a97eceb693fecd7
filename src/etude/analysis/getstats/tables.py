"""The figures and tables of Auto-pilot's Getstats, in the layout of figure 2 of its paper.

Plain Student intervals, without correction for repeated looks or dependence, so that numbers can be compared with
published ones. `etude stats` corrects for both.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from etude.analysis.getstats.options import Settings
from etude.analysis.getstats.warnings import FREE, slopes, warnings_of
from etude.results.series import Floats, Series, Whole
from etude.stats.columns import DISPLAY, display_name, metric_name
from etude.stats.intervals import t_quantile
from etude.stats.predicate import Figures, figures

SCORES_ONLY = Settings(slope=None)
"""Default settings of warnings: z-scores, but no slopes."""

HEADINGS = ("NAME", "COUNT", "MEAN", "MEDIAN", "LOW", "HIGH", "MIN", "MAX", "SDEV%", "HW%")
OVERHEAD = "O/H"
UNKNOWN = "-"

Raw = list[tuple[str, ...]]
"""A line of names, then the rows."""


class File(NamedTuple):
    """Columns of values by display name, with their epochs and warnings."""

    label: str
    samples: Mapping[str, Sequence[float]]
    epochs: Mapping[str, Sequence[int | str]] = {}
    """Epoch of each value, or its origin as text; counted from 1 where a column has none."""
    warnings: Sequence[str] = ()
    summaries: Mapping[str, Figures] = {}
    """Columns known only by these figures, without values; an unknown figure is NaN."""
    watched: Mapping[str, Sequence[float]] = {}
    """Columns that are not shown, but whose slope is checked."""
    earlier: Sequence[str] = ()
    """Warnings raised before the relation was joined or split, each with its label."""


def values_of(series: Series, column: str) -> Floats:
    """Shape (trials,): a column by our name, a metric, `wait` (elapsed - user - system) or `cpu` (100·(user +
    system)/elapsed), of each trial; NaN where there is none."""
    if column not in ("wait", "cpu"):
        found = series.column(column)
        return np.full(series.trials.size, np.nan) if found is None else found.values
    elapsed, user, system = (values_of(series, name) for name in ("elapsed", "user", "system"))
    if column == "wait":
        return elapsed - user - system
    return 100.0 * (user + system) / np.where(elapsed != 0, elapsed, np.nan)


def judged(series: Series, columns: Iterable[str]) -> dict[str, list[float]]:
    """Values of the included trials for each of these columns, which a predicate is judged on; may be empty."""
    return {column: _kept(series, column)[0].tolist() for column in map(metric_name, columns)}


def file_of(label: str, series: Series, columns: Sequence[str] = tuple(DISPLAY)) -> File:
    """Table of a test: these columns of its included trials."""
    found = {column: _kept(series, column) for column in columns}
    there = sorted((column for column in columns if found[column][0].size), key=lambda c: found[c][1][0])
    numbers = series.trials[series.kept]
    return File(
        label,
        {display_name(column): found[column][0].tolist() for column in there},
        {display_name(column): numbers[found[column][1]].tolist() for column in there},
        watched={name: series.sample(name).tolist() for name in FREE if name not in columns},
    )


def _kept(series: Series, column: str) -> tuple[Floats, Whole]:
    """Values of a column in the included trials, and the places of those trials that have one."""
    values = values_of(series, column)[series.kept]
    places = np.flatnonzero(~np.isnan(values))
    return values[places], places


def without_values(columns: Sequence[str] | None, samples: Collection[str]) -> list[str]:
    """Message naming the requested columns without a value in any trial; empty if there are none."""
    lacking = [name for name in columns or () if display_name(name) not in samples]
    return [f"No trial has a value of {', '.join(lacking)}."] if lacking else []


def table(
    files: Sequence[tuple[Any, ...]], confidence: float = 0.95, settings: Settings = SCORES_ONLY
) -> str:
    """Warnings, then a table for each file (a `File`, or its label and samples); the first one is the baseline.

    Raises ValueError for a value that is not finite.
    """
    warnings, tables = warnings_and_tables(files, confidence, settings)
    return "\n".join([*warnings, "\n\n".join("\n".join([label, *aligned(rows)]) for label, rows in tables)])


def warnings_and_tables(
    files: Sequence[tuple[Any, ...]], confidence: float, settings: Settings
) -> tuple[list[str], list[tuple[str, list[list[str]]]]]:
    """Lines of warnings; and label and cells of each file's table."""
    warnings, tables = list[str](), list[tuple[str, list[list[str]]]]()
    for label, found, rows in _described(files, confidence, settings):
        warnings += found
        cells = [[name, *(_cell(value, settings.precision) for value in values)] for name, *values in rows]
        heading = list(HEADINGS if not tables else (*HEADINGS, OVERHEAD))
        tables.append((label, [heading, *cells]))
    return warnings, tables


def as_csv(
    files: Sequence[tuple[Any, ...]], confidence: float = 0.95, settings: Settings = SCORES_ONLY
) -> str:
    """The same figures with all their digits, a line each; warnings are left out."""
    lines = [("FILE", *HEADINGS, OVERHEAD)]
    for label, _, rows in _described(files, confidence, settings):
        for name, *values in rows:
            digits = ["" if value is None else f"{value:.15g}" for value in values]
            lines.append((label, name, *digits, *[""] * (len(HEADINGS) - len(values))))
    return comma_separated(lines)


def comma_separated(lines: Iterable[Sequence[str]]) -> str:
    """Rows of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().rstrip("\n")


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells: the first to the left and two blanks behind it, the others to the right with one between."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        f"{first.ljust(widths[0])}  {' '.join(map(str.rjust, rest, widths[1:]))}" for first, *rest in lines
    ]


Row = tuple[Any, ...]  # a column's name, then a number or None for each heading


def figures_of(file: File, confidence: float) -> dict[str, Figures]:
    """Figures of each column that has values, or given figures."""
    found = {name: figures(values, confidence) for name, values in file.samples.items() if len(values)}
    return found | {name: _with_delta(f, confidence) for name, f in file.summaries.items()}


def _with_delta(f: Figures, confidence: float) -> Figures:
    """The figures with the margin of error as `delta`; NaN if the deviation is unknown."""
    half = t_quantile(confidence, f.count - 1) * f.stddev / math.sqrt(f.count) if f.count > 1 else math.nan
    return replace(f, delta=half)


def _described(
    files: Sequence[tuple[Any, ...]], confidence: float, settings: Settings
) -> Iterator[tuple[str, list[str], list[Row]]]:
    """Label, warnings and rows of each file."""
    baseline: Mapping[str, Figures] | None = None
    for file in (File(*members) for members in files):
        found = figures_of(file, confidence)
        rows = [
            (
                name,
                *_numbers(f, settings.error_bars),
                *([] if baseline is None else [_overhead(f, baseline.get(name))]),
            )
            for name, f in found.items()
        ]
        lines = [*file.warnings, *_warnpass(file, found, settings)]
        lines = [*file.earlier, *(f"{file.label}: {line}" for line in lines)]
        yield file.label, lines if settings.warn else [], rows
        baseline = found if baseline is None else baseline


def _numbers(f: Figures, error_bars: str) -> list[float | None]:
    sure = f.count > 1
    half = f.delta if error_bars == "interval" else f.stddev
    ends: tuple[float | None, ...] = (f.mean - half, f.mean + half) if sure else (None, None)
    if error_bars == "minmax":
        ends = (f.minimum, f.maximum)
    relative: tuple[float | None, ...] = (f.sdev, f.hw) if sure else (None, None)
    values = (f.count or None, f.mean, f.median, *ends, f.minimum, f.maximum, *relative)
    return [None if value is None or math.isnan(value) else value for value in values]


def _overhead(f: Figures, baseline: Figures | None) -> float | None:
    if baseline is None or not baseline.mean or math.isnan(baseline.mean) or math.isnan(f.mean):
        return None
    return 100.0 * (f.mean / baseline.mean - 1.0)


def _warnpass(file: File, found: Mapping[str, Figures], settings: Settings) -> Iterator[str]:
    """Warnings about every column that has values."""
    for name, values in file.samples.items():
        if name in found and name not in file.summaries:
            epochs = file.epochs.get(name) or range(1, len(values) + 1)
            yield from warnings_of(name, values, epochs, found[name], settings)
    for name, values in file.watched.items():
        if settings.slope is not None and name not in found and len(values):
            yield from slopes(name, figures(values), settings.slope)


def _cell(value: float | None, precision: int) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if isinstance(value, int) else f"{value:.{precision}f}"
