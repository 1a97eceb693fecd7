"""A stop rule's predicate asked of stored results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from etude.errors import UsageError
from etude.report.getstats.options import JUDGED
from etude.report.subject import Subject
from etude.results.series import Floats, Series
from etude.stats.columns import metric_name
from etude.stats.expression import ExpressionError
from etude.stats.predicate import Predicate


def judge_subjects(
    subjects: Sequence[Subject], expression: str, metrics: Sequence[str], confidence: float
) -> bool:
    """Whether it holds for every one of these metrics (elapsed, user and system unless named) of every test.

    Raises:
        UsageError: the expression cannot be read or evaluated, or a test lacks a metric.
    """
    try:
        predicate = Predicate(expression, confidence)
        judgements = [
            predicate.judge(judged_samples(series, metrics))
            for subject in subjects
            for series in subject.tests
        ]
    except ExpressionError as error:
        raise UsageError(f"--predicate, column {error.column}: {error.message}") from None
    return bool(judgements) and all(judgement.holds for judgement in judgements)


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
