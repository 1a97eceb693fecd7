"""A stop rule's predicate asked of stored results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from etude.analysis.getstats.options import JUDGED
from etude.analysis.subject import Subject
from etude.errors import UsageError
from etude.results.series import Floats, Series
from etude.stats.columns import metric_name
from etude.stats.expression import ExpressionError
from etude.stats.predicate import Judgement, Predicate


def read_predicate(expression: str, confidence: float) -> Predicate:
    """The predicate. Raises UsageError where it cannot be read."""
    try:
        return Predicate(expression, confidence)
    except ExpressionError as error:
        raise UsageError(f"--predicate, column {error.column}: {error.message}") from None


def judge_subjects(
    subjects: Sequence[Subject], predicate: Predicate, metrics: Sequence[str]
) -> list[tuple[str, Judgement]]:
    """Of each test whether it holds for every one of these metrics (elapsed, user and system unless named).

    Raises:
        UsageError: the expression cannot be evaluated, or a test lacks a metric.
    """
    try:
        return [
            (series.test, predicate.judge(judged_samples(series, metrics)))
            for subject in subjects
            for series in subject.tests
        ]
    except ExpressionError as error:
        raise UsageError(f"--predicate, column {error.column}: {error.message}") from None


def judged_samples(series: Series, metrics: Sequence[str]) -> dict[str, list[float]]:
    """The values that a predicate is judged on. Raises UsageError for a metric that the test lacks."""
    names = [metric_name(name) for name in metrics] or [name for name in JUDGED if name in series.columns]
    found = {}
    for name in names or series.columns:
        values = _values(series, name)
        if values is None:
            raise UsageError(f"{series.test}: has no metric {name!r}; it has {', '.join(series.columns)}")
        found[name] = values.tolist()
    return found


def _values(series: Series, name: str) -> Floats | None:
    if name in series.columns:
        return series.sample(name)
    columns = [series.column(part) for part in ("elapsed", "user", "system")]
    if name not in ("wait", "cpu") or any(column is None for column in columns):
        return None
    elapsed, user, system = (column.values[series.kept] for column in columns if column is not None)
    with np.errstate(all="ignore"):
        values = elapsed - user - system if name == "wait" else 100.0 * (user + system) / elapsed
    found: Floats = values[np.isfinite(values)]
    return found
