"""The figures and tables of Auto-pilot's Getstats, in the layout of figures 2 and 3 of its paper, and its warnings.

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

from etude.analysis.getstats.options import GetstatsOptions, Settings
from etude.results.series import Floats, Series, Whole
from etude.stats.columns import DISPLAY, RAW, aligned, display_name, metric_name
from etude.stats.intervals import t_quantile
from etude.stats.moments import Moments, Sample
from etude.stats.predicate import Figures, figures
from etude.stats.twosample import Difference, VarianceTest, student, t_test_by_variance

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


TEST_HEADINGS = ("Null Hyp.", "Alt. Hyp.", "P-value", "Result")


def comparison(files: Sequence[File], options: GetstatsOptions) -> str:
    """Warnings, the files' tables, and each later file (u1) compared with the first one (u2), column by column.

    A column that the first file lacks, or whose values cannot be compared, has one line with the reason.
    """
    warnings, tables = warnings_and_tables(files, options.confidence, options.settings)
    parts = ["\n".join([label, *to_the_left(rows)]) for label, rows in tables]
    baseline = files[0]
    for file in files[1:]:
        heading = f"Comparing {file.label} (Sample 1) to {baseline.label} (Sample 2)."
        blocks = ["\n".join(block) for block in _test_blocks(file, baseline, options)]
        parts.append("\n".join([heading, "\n\n".join(blocks)]))
    return "\n".join([*warnings, "\n\n".join(parts)])


def to_the_left(lines: Sequence[Sequence[str]]) -> list[str]:
    """Rows of left-aligned cells, each followed by one blank, also the last."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "".join(f"{cell.ljust(width)} " for cell, width in zip(row, widths, strict=True)) for row in lines
    ]


def _test_blocks(file: File, baseline: File, options: GetstatsOptions) -> Iterator[list[str]]:
    found, first = figures_of(file, options.confidence), figures_of(baseline, options.confidence)
    for name in found:
        if name not in first:
            yield [f"{name}: - ({baseline.label} has none)"]
            continue
        try:
            difference, variances = _compare(
                _sample_of(file, name, found), _sample_of(baseline, name, first), options
            )
        except ValueError as error:
            yield [f"{name}: - ({error})"]
            continue
        yield _test_block(name, f"{file.label} - {baseline.label}", difference, variances, options)


def _compare(
    first: Sample, second: Sample, options: GetstatsOptions
) -> tuple[Difference, VarianceTest | None]:
    if options.choice is None:
        return student(first, second, confidence=options.confidence), None
    return t_test_by_variance(first, second, confidence=options.confidence, by=options.choice)


def _sample_of(file: File, name: str, found: Mapping[str, Figures]) -> Sample:
    if name in file.samples and name not in file.summaries:
        return file.samples[name]
    return Moments(found[name].count, found[name].mean, found[name].stddev)


def _test_block(
    name: str, what: str, d: Difference, variances: VarianceTest | None, options: GetstatsOptions
) -> list[str]:
    digits = options.settings.precision
    percent = f"{100.0 * options.confidence:.10g}%"
    lines = [f"{name}: {percent}CI for {what} = ({d.low:.{digits}f}, {d.high:.{digits}f})"]
    if variances is not None:
        statistic = "F" if variances.method == "F" else "W"
        lines.append(
            f"{variances.method} test of equal variances: {statistic} = {variances.statistic:.{digits}f}, "
            f"P-value {variances.p:.{digits}f}: {d.method}'s t, {d.degrees:.1f} degrees of freedom"
        )
    rows = [(h.null, h.alternative, f"{h.p:.{digits}f}", h.result) for h in d.hypotheses]
    return [*lines, *to_the_left([TEST_HEADINGS, *rows])]


FREE = ("free", "memory_free", "memory_available")
"""Names of columns of free memory. They are checked even where a table does not show them."""

REGRESSED = ("elapsed", "system", "user", *FREE)
"""Columns whose slope is checked: times, and free memory (Auto-pilot paper, section 3.3)."""


def raw_name(column: str) -> str:
    """Getstats' own name of a column, which its warnings use instead of the table's name."""
    return RAW.get(metric_name(column), column)


def high_scores(
    column: str, values: Iterable[float], places: Iterable[int | str], found: Figures, threshold: float
) -> Iterator[str]:
    """A sentence for each value more than `threshold` deviations from the mean; the sign is dropped.

    places: the epoch of each value, or another place in words.

    Source: the deviation is that with n-1, which reproduces the score printed in figure 2.
    """
    if found.count < 2 or not found.stddev > 0.0:
        return
    for value, place in zip(values, places, strict=True):
        score = abs(value - found.mean) / found.stddev
        if score > threshold:
            where = place if isinstance(place, str) else f"epoch {place}"
            yield f"High z-score of {score:.15g} for {raw_name(column)} in {where}."


def slopes(column: str, found: Figures, threshold: float) -> Iterator[str]:
    """A sentence if the least-squares slope per epoch is more than `threshold` percent of the mean.

    For free memory only a loss counts. The slope is a magnitude without a test of its significance.
    """
    if metric_name(column) not in REGRESSED or found.count < 2 or not found.mean:
        return
    percent = 100.0 * found.slope / abs(found.mean)
    if round(abs(percent), 9) > threshold and (percent < 0.0 or column not in FREE):
        yield f"Linear regression slope for {raw_name(column)} is: {percent:.3f}%."


def warnings_of(
    column: str, values: Iterable[float], places: Iterable[int | str], found: Figures, settings: Settings
) -> Iterator[str]:
    """The warnpass for one column."""
    yield from high_scores(column, values, places, found, settings.high_z)
    if settings.slope is not None:
        yield from slopes(column, found, settings.slope)
