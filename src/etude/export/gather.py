"""The document of results directories and of files of other programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np

from etude.analysis.comparison import Comparison
from etude.analysis.load_subject import Summaries, read_subject
from etude.analysis.subject import SIMULATED, Subject, was_simulated
from etude.analysis.verdict import MetricSummary, Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.errors import InputError
from etude.export.document import Compared, Document, Figures, Point, Run
from etude.present.sentences.comparison import comparison_lines
from etude.present.sentences.result_notes import NO_VALUE, missing_reason
from etude.present.sentences.warnings import group_text
from etude.results.model import metric_kind
from etude.results.series import Series
from etude.results.trial_join import kind_of
from etude.stats.describe import Summary, describe
from etude.stats.means import Kind
from etude.store.entry import Entry, Machine, machine_of


def gather(paths: Sequence[str], origin: Run | None = None, *, confidence: float = 0.95) -> Document:
    """Read what `etude stats` reads.

    origin: its commit, branch and tags are those of all the results.

    Raises:
        InputError: one cannot be read, or has no test.
    """
    documents = [_read(path, origin or Run(""), confidence) for path in paths]
    points = tuple(point for document in documents for point in document.points)
    if not points:
        raise InputError(f"{', '.join(paths)}: has no test, so there is nothing to export")
    return Document(
        points,
        documents[0].primary,
        tuple(c for document in documents for c in document.compared),
        tuple(note for document in documents for note in document.notes),
    )


def _read(path: str, origin: Run, confidence: float) -> Document:
    found = read_subject(path, confidence=confidence)
    run = replace(origin, source=path)
    if isinstance(found, Summaries):
        primary = next((row.metric for row in found.rows if row.metric == "elapsed"), found.rows[0].metric)
        return Document(tuple(_of_summaries(found, run)), primary, notes=found.warnings)
    if was_simulated(found.experiment or {}):
        run = replace(run, tags=tuple(dict.fromkeys((*run.tags, SIMULATED))))
    judged = verdict(found, verdict_options=VerdictOptions(confidence=confidence))
    points = tuple(
        point for number in range(len(found.tests)) for point in _points(judged, number, run, confidence)
    )
    compared = tuple(_compared(found, c) for c in judged.comparisons)
    return Document(points, judged.primary, compared, tuple(map(group_text, judged.warnings)))


def _of_summaries(found: Summaries, run: Run) -> Iterator[Point]:
    for row in found.rows:
        get = row.figures.get
        count = get("count")
        mean = get("mean", get("median"))
        interval = row.interval
        figures = Figures(
            None if count is None else int(count),
            mean,
            interval.low if interval else None,
            interval.high if interval else None,
            get("median"),
            get("minimum"),
            get("maximum"),
            get("deviation"),
        )
        parameters = tuple(row.parameters.items())
        kind = kind_of(row.unit)
        yield Point(
            run,
            row.test,
            row.metric,
            row.unit,
            kind,
            (),
            figures if mean is not None else None,
            parameters=parameters,
        )


def _points(judged: Verdict, number: int, run: Run, confidence: float) -> Iterator[Point]:
    subject = judged.subject
    series, test = subject.tests[number], judged.tests[number]
    if not test.metrics:
        yield _never_made(judged, series.test, run)
    hosts = _hosts(subject, series)
    for host in dict.fromkeys(hosts) or ("",):
        here = np.array([each == host for each in hosts], dtype=bool)
        its_run = _run(subject, host, run)
        for metric in test.metrics:
            values = _values(series, metric, here)
            figures = (
                _of_one(judged, series, metric, values, confidence)
                if len(set(hosts)) > 1 and not metric.within_shell
                else of_summary(metric.summary)
                if metric.summary
                else None
            )
            yield Point(
                its_run,
                series.test,
                metric.metric,
                metric.unit,
                metric.kind,
                values,
                figures,
                "" if figures else missing_reason(metric) or NO_VALUE,
                tuple((str(name), str(value)) for name, value in series.parameters.items()),
            )


def _never_made(judged: Verdict, test: str, run: Run) -> Point:
    """A test that was given up before its first trial: the primary metric, which is lost."""
    hosts = [str(sitting["host"]) for sitting in _sessions(judged.subject)]
    others = (m for other in judged.tests for m in other.metrics if m.metric == judged.primary)
    what = next(others, None) or metric_kind(judged.primary, "1")
    its_run = _run(judged.subject, hosts[0] if hosts else "", run)
    return Point(its_run, test, judged.primary, what.unit, what.kind, (), None, "no trial was made")


def _hosts(subject: Subject, series: Series) -> list[str]:
    """Host name of each trial, by its session; "" where it is not known."""
    named = {sitting["sitting"]: str(sitting["host"]) for sitting in _sessions(subject)}
    if series.sittings is None:
        return [next(iter(named.values()), "")] * series.trials.size
    return [named.get(int(sitting), "") for sitting in series.sittings]


def _sessions(subject: Subject) -> Sequence[Mapping[str, Any]]:
    return (subject.experiment or {}).get("sittings") or ()


def _run(subject: Subject, host: str, run: Run) -> Run:
    """The result on this machine: its snapshot is that of its first session, else the experiment's."""
    sittings = [sitting for sitting in _sessions(subject) if sitting["host"] == host]
    if not sittings:
        return run
    first = sittings[0]
    snapshot = (first.get("machine") or (subject.experiment or {}).get("machine") or {}).get("before")
    return replace(run, machine=machine_of(host, snapshot), measured=_time(first.get("start")))


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def _values(series: Series, metric: MetricSummary, here: np.ndarray[Any, Any]) -> tuple[float | None, ...]:
    """Values of the included trials, less what the verdict subtracts; none where that is all of it."""
    column = series.columns[metric.metric]
    if metric.within_shell:
        return ()
    values = column.values[series.kept & here] - metric.corrected_s
    return tuple(float(value) if np.isfinite(value) else None for value in values)


def _of_one(
    judged: Verdict, series: Series, metric: MetricSummary, values: Sequence[float | None], confidence: float
) -> Figures | None:
    """Statistics of one of several machines; the verdict's own are of all of them."""
    there = [value for value in values if value is not None]
    factor = judged.asked.factors[series.test]
    return figures_of(there, metric.kind, confidence=confidence, factor=factor)


def _compared(subject: Subject, c: Comparison) -> Compared:
    column = subject.test(c.base).column(c.metric)
    kind = column.kind if column else ""
    worse = {"cost": c.ratio.ratio > 1.0, "rate": c.ratio.ratio < 1.0}.get(kind)
    worse = worse and c.differs
    lines = tuple(comparison_lines(c))
    return Compared(
        c.base, c.other, c.metric, c.ratio.ratio, c.ratio.low, c.ratio.high, worse, lines, c.differs
    )


def figures_of(
    values: Sequence[float], kind: str, *, confidence: float, factor: float = 1.0
) -> Figures | None:
    """Statistics of the values; None without values."""
    if not values:
        return None
    return of_summary(describe(values, cast(Kind, kind), confidence=confidence, factor=factor))


def of_summary(summary: Summary) -> Figures:
    """Statistics from a given summary."""
    interval = summary.mean_interval
    return Figures(
        summary.count,
        _finite(summary.mean),
        _finite(interval.low) if interval else None,
        _finite(interval.high) if interval else None,
        summary.median,
        summary.minimum,
        summary.maximum,
        summary.deviation,
        summary.which,
    )


def _finite(value: float) -> float | None:
    """No format has a word for an open end, as the interval of a harmonic mean may have."""
    return value if math.isfinite(value) else None


def document_of(entries: Sequence[Entry], *, confidence: float = 0.95) -> Document:
    """Each entry as a point, in the order given; the metric that most of them have is judged, elapsed first.

    Raises:
        InputError: there is no entry.
    """
    if not entries:
        raise InputError("the store has no entry of these tests and metrics; etude store tests lists them")
    metrics = [entry.metric for entry in entries]
    primary = "elapsed" if "elapsed" in metrics else max(metrics, key=metrics.count)
    began: dict[tuple[int, Machine], datetime] = {}
    for entry in entries:
        place = entry.result, entry.machine
        began[place] = min(entry.measured, began.get(place, entry.measured))
    points = (_point(entry, began[entry.result, entry.machine], confidence) for entry in entries)
    return Document(tuple(points), primary)


def _point(entry: Entry, began: datetime, confidence: float) -> Point:
    run = Run(
        entry.source or f"result {entry.result}",
        entry.machine,
        began,
        entry.commit,
        entry.committed,
        entry.branch,
        entry.tags,
    )
    figures = figures_of(entry.values, entry.kind, confidence=confidence)
    return Point(run, entry.test, entry.metric, entry.unit, entry.kind, entry.values, figures)
