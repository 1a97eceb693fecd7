"""Samples of each test of each file: its values or, where only those were written, its summaries."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from etude.analysis.comparisons import shell_cost
from etude.analysis.load_subject import Summaries, SummaryRow, read_subject, relabelled
from etude.analysis.subject import Subject
from etude.analysis.verdict import metric_summary
from etude.analysis.verdict_options import VerdictOptions
from etude.errors import InputError, UsageError
from etude.figures.data import Box, Point, labels
from etude.figures.plot_options import Bars, PlotOptions
from etude.results.series import Floats, Series
from etude.stats.columns import display_name, metric_name
from etude.stats.describe import error_bar
from etude.stats.intervals import Interval, t_quantile
from etude.stats.moments import deviation_of

BAR_WORDS = {
    "interval": "{c} % interval of the mean",
    "quartiles": "quartiles around the median",
    "min-max": "smallest to largest around the median",
    "deviation": "one standard deviation around the mean",
}
"""Meaning of each kind of error bars."""
DERIVED: Mapping[str, str] = {"wait": "s", "cpu": "%"}
"""Metrics computed from elapsed, user and system, as in Getstats' tables, with their units."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One test of one file. Either `series` or `rows` says what is known of it."""

    name: str
    file: str
    """Its path, as it was named."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    subject: Subject | None = None
    series: Series | None = None
    rows: Mapping[str, SummaryRow] = field(default_factory=dict)

    def metrics(self) -> list[str]:
        """Metrics that can be drawn."""
        if self.series is None:
            return list(self.rows)
        found = list(self.series.columns)
        return [
            *found,
            *(d for d in DERIVED if d not in found and {"elapsed", "user", "system"} <= set(found)),
        ]

    def unit(self, metric: str) -> str:
        """Base unit of a metric; 1 where it has none of that name."""
        if self.series is not None and (column := self.series.column(metric)) is not None:
            return column.unit
        row = self.rows.get(metric)
        return row.unit if row is not None else DERIVED.get(metric, "1")

    def values(self, metric: str) -> Floats:
        """The finite values of the kept trials, in order; empty where there is none."""
        if self.series is None:
            return np.empty(0)
        values = trial_values(self.series, metric)[self.series.kept]
        return values[np.isfinite(values)]


def trial_values(series: Series, metric: str) -> Floats:
    """The metric of all trials, shape (trials,), kept or not; NaN where a trial has none."""
    column = series.column(metric)
    if column is not None:
        return column.values
    parts = [series.column(name) for name in ("elapsed", "user", "system")]
    if metric not in DERIVED or any(part is None for part in parts):
        return np.full(series.trials.size, np.nan)
    elapsed, user, system = (part.values for part in parts if part is not None)
    if metric == "wait":
        return elapsed - user - system
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100.0 * (user + system) / elapsed


def read_samples(
    paths: Sequence[str], wish: PlotOptions, labels: Mapping[str, str] | None = None
) -> list[Sample]:
    """The tests of all files, in order. Two of one name get their file's name in front.

    labels: names of paths, where they are not themselves.

    Raises:
        InputError: a file cannot be read, or holds no test.
    """
    found = [sample for path in paths for sample in _read(path, (labels or {}).get(path, path), wish)]
    names = Counter(sample.name for sample in found)
    files = _short_names(dict.fromkeys(sample.file for sample in found))
    return [
        replace(sample, name=f"{files[sample.file]}: {sample.name}") if names[sample.name] > 1 else sample
        for sample in found
    ]


def _read(path: str, label: str, wish: PlotOptions) -> list[Sample]:
    found = relabelled(read_subject(path, confidence=wish.confidence), label)
    if isinstance(found, Summaries):
        samples = _of_summaries(label, found)
        return _or_refuse(label, samples)
    return samples_of(found, label)


def samples_of(subject: Subject, path: str) -> list[Sample]:
    """The tests of one file. Raises InputError where none has a trial."""
    found = [
        Sample(series.test, path, series.parameters, subject, series)
        for series in subject.tests
        if series.trials.size
    ]
    return _or_refuse(path, found)


def _or_refuse(path: str, samples: list[Sample]) -> list[Sample]:
    if not samples:
        raise InputError(f"{path}: nothing to plot: it holds no test with a trial")
    return samples


def _of_summaries(path: str, found: Summaries) -> list[Sample]:
    tests: dict[str, dict[str, SummaryRow]] = {}
    for row in found.rows:
        tests.setdefault(row.test, {})[row.metric] = row
    return [
        Sample(name, path, next(iter(rows.values())).parameters, rows=rows) for name, rows in tests.items()
    ]


def _short_names(paths: Sequence[str] | Mapping[str, None]) -> dict[str, str]:
    """Each path without what all have in common in front."""
    stems = {path: Path(path).stem or path for path in paths}
    if len(set(stems.values())) == len(stems):
        return stems
    shared = os.path.commonpath([os.path.abspath(path) for path in paths])
    return {path: os.path.relpath(os.path.abspath(path), shared) for path in paths}


def by_file(samples: Sequence[Sample]) -> list[tuple[str, list[Sample]]]:
    """The samples of each file, by its short name."""
    files: dict[str, list[Sample]] = {}
    for sample in samples:
        files.setdefault(sample.file, []).append(sample)
    names = _short_names(dict.fromkeys(files))
    return [(names[file], members) for file, members in files.items()]


def chosen_metrics(samples: Sequence[Sample], wish: PlotOptions) -> tuple[str, ...]:
    """Our names of the metrics that were asked for, or the primary one.

    Raises:
        UsageError: no test has one of them.
    """
    known = dict.fromkeys(metric for sample in samples for metric in sample.metrics())
    if not known:
        raise InputError(f"{samples[0].file}: nothing to plot: it holds no metric")
    if not wish.metrics:
        subject = samples[0].subject
        primary = subject.asked.primary if subject is not None else next(iter(known))
        return (primary if primary in known else next(iter(known)),)
    for metric in map(metric_name, wish.metrics):
        if metric not in known:
            raise UsageError(
                f"metric {metric!r}: no test has one of that name; there are {_few(list(known))}"
            )
    return tuple(dict.fromkeys(map(metric_name, wish.metrics)))


def single_metric(samples: Sequence[Sample], wish: PlotOptions, what: str) -> str:
    """The one metric of a figure that shows no more. Raises UsageError where several are named."""
    (metric, *others) = chosen_metrics(samples, wish)
    if others:
        raise UsageError(f"{what} shows one metric; name one")
    return metric


def _few(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shown_metric(metric: str, wish: PlotOptions) -> str:
    """Name of a metric in a figure."""
    return shown_metrics([metric], wish)[metric]


def shown_metrics(metrics: Iterable[str], wish: PlotOptions) -> dict[str, str]:
    """Names of the metrics of one figure."""
    texts = {m: display_name(m) if wish.plain_names else m.replace("_", " ") for m in metrics}
    named = labels(texts.values())
    return {metric: named[text] for metric, text in texts.items()}


def summary_point(sample: Sample, metric: str, wish: PlotOptions, *, x: float = 0.0) -> Point | None:
    """Mean with its interval or deviation, or median with quartiles or extremes; None where there is no value."""
    kind = wish.bars or "interval"
    if sample.series is None:
        return _of_row(sample.rows.get(metric), kind, x)
    values = sample.values(metric)
    if values.size == 0:
        return None
    if kind == "interval" and not wish.plain_intervals and sample.series.column(metric) is not None:
        return _of_verdict(sample, metric, wish, x)
    middle = float(np.median(values)) if kind in ("quartiles", "min-max") else float(values.mean())
    bar = _bar(values, kind, wish)
    return Point(x, middle, *((bar.low, bar.high) if bar else (None, None)))


def _bar(values: Floats, kind: Bars, wish: PlotOptions) -> Interval | None:
    if kind == "none":
        return None
    if kind != "interval" or not wish.plain_intervals:
        return error_bar(values, kind, confidence=wish.confidence)
    if values.size < 2:
        return None
    half = t_quantile(wish.confidence, values.size - 1) * deviation_of(values) / math.sqrt(values.size)
    return Interval(float(values.mean()) - half, float(values.mean()) + half)


def _of_verdict(sample: Sample, metric: str, wish: PlotOptions, x: float) -> Point | None:
    """The mean and its interval as `etude stats` has them: with what the stop rule and the shell's start cost."""
    assert sample.series is not None
    assert sample.subject is not None
    subject = sample.subject
    shell = shell_cost(subject) if metric == "elapsed" else (0.0, 0.0)
    factor = subject.asked.factors.get(sample.series.test, 1.0)
    found = metric_summary(
        sample.series, metric, factor, shell, VerdictOptions(confidence=wish.confidence)
    ).summary
    if found is None or not np.isfinite(found.mean):
        return None
    interval = found.mean_interval
    return Point(x, found.mean, *((interval.low, interval.high) if interval else (None, None)))


def _of_row(row: SummaryRow | None, kind: str, x: float) -> Point | None:
    if row is None:
        return None
    figures = row.figures
    if kind in ("quartiles", "min-max"):
        ends = ("q1", "q3") if kind == "quartiles" else ("minimum", "maximum")
        middle = figures.get("median", figures.get("mean"))
        low, high = (figures.get(end) for end in ends)
    else:
        middle, spread = figures.get("mean", figures.get("median")), figures.get("deviation")
        low = high = None
        if kind == "deviation" and middle is not None and spread is not None:
            low, high = middle - spread, middle + spread
        elif kind == "interval" and row.interval is not None:
            low, high = row.interval.low, row.interval.high
    if middle is None:
        return None
    return Point(x, middle, low, high) if low is not None and high is not None else Point(x, middle)


def values_or_refuse(samples: Sequence[Sample], metric: str, kind: str) -> dict[str, Floats]:
    """The values of each test that has some. Raises InputError where none has."""
    found = {sample.name: values for sample in samples if (values := sample.values(metric)).size}
    if not found:
        why = (
            "only summaries are known"
            if samples and samples[0].series is None
            else "no included trial has a value"
        )
        raise InputError(f"{samples[0].file}: nothing to plot as {kind}: {why} of {metric}")
    return found


def bars_note(wish: PlotOptions, points: Sequence[Point | Box]) -> list[str]:
    """Notes on the meaning of error bars, and on how many of these values have none."""
    kind = wish.bars or "interval"
    if kind == "none":
        return []
    without = sum(p.low is None for p in points)
    said = BAR_WORDS[kind].format(c=f"{100 * wish.confidence:g}")
    if without == len(points):
        return ["no error bars: there are too few trials, or only summaries, to know one"]
    notes = [f"error bars: {said}"]
    if without:
        notes.append(f"{without} of {len(points)} values have too few trials for an error bar")
    return notes
