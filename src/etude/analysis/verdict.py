"""The verdict on an experiment: each test's numbers, each comparison, and whether the tests did the same work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Literal, cast

import numpy as np

from etude.analysis.comparison import Comparison, NoComparison, pairs_of, within_reach
from etude.analysis.comparisons import compare_tests, shell_cost
from etude.analysis.outliers_explained import explain_outliers
from etude.analysis.subject import (
    ResultNote,
    StopRuleInfo,
    Subject,
    check_metric,
    column_of,
    failure_in,
    limited_in,
    several_matches_in,
    subject_of,
    watched_in,
)
from etude.analysis.time_breakdown import TimeBreakdown, mean_trial_s, seconds_per_trial, time_spent
from etude.analysis.verdict_options import VerdictOptions
from etude.analysis.warnings import (
    DataWarning,
    WarningGroup,
    machine_warnings,
    ranked,
    series_warnings,
    work_warnings,
)
from etude.analysis.warnings.facts import AgainstItself, NoteOnResult, WithinShell
from etude.analysis.warnings.machine import others_warnings
from etude.analysis.warnings.series import DATA, limited, never_begun, several_matches
from etude.analysis.warnings.shapes import MEMORY
from etude.analysis.warnings.warning import warning
from etude.results.results import Results
from etude.results.series import Column, Floats, Series
from etude.stats.describe import Summary, describe
from etude.stats.levels import Split, at_least_as_wide, split_by_kind
from etude.stats.means import Kind
from etude.stats.moments import interval_above_zero
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.ratio import further_range, more_trials

NO_REASON = "no reason given"


@dataclass(frozen=True)
class MetricSummary:
    """One metric of one test; `corrected_s`: time subtracted from each value (a shell's start)."""

    metric: str
    unit: str
    summary: Summary | None
    reason: str | None = None
    """Recorded reason why there is no summary."""
    corrected_s: float = 0.0
    kind: str = "cost"
    levels: Split | None = None
    """Split of the spread if there is more than one session, boot or machine: the mean and its interval are then over
    the outermost of these levels."""
    joined: str = ""
    """Method that joined the workers of a trial, or its commands (`results.trial_join`); empty for one value."""
    workers: int = 1

    @property
    def within_shell(self) -> bool:
        """True if a time minus the start of the shell is not above 0, so that it has no figure."""
        return self.summary is None and self.corrected_s > 0.0


@dataclass(frozen=True)
class TestVerdict:
    """One test: number of trials, and each metric."""

    __test__ = False

    test: str
    parameters: Mapping[str, str]
    made: int
    set_aside: Mapping[str, int]
    """Number of excluded trials by reason."""
    kept: int
    inner: int
    metrics: tuple[MetricSummary, ...]
    more: int
    """Further trials until the mean reaches the requested precision at the present spread,"""
    more_s: float
    """… and their wall-clock time (s), including what runs between trials."""
    spent: TimeBreakdown | None = None
    """Breakdown of the time; None if elapsed, user or system is unknown."""
    missed: bool = False
    """True if the interval of the mean is wider than requested, even if more trials of one session do not help."""

    @property
    def more_range(self) -> tuple[int, int]:
        """Likely range of `more`, given how well the spread is known."""
        return further_range(self.kept, self.more, max(self.kept - 1, 1))

    @property
    def within_reach(self) -> bool:
        """True if `more` further trials are worth recommending."""
        return within_reach(self.more, self.kept, self.more_s)

    def metric(self, name: str) -> MetricSummary | None:
        """The summary of one metric."""
        return next((m for m in self.metrics if m.metric == name), None)

    def has_interval(self, name: str) -> bool:
        """True if the mean of a metric has an interval."""
        found = self.metric(name)
        return found is not None and found.summary is not None and found.summary.mean_interval is not None


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """The verdict on an experiment's results."""

    subject: Subject
    primary: str
    """The judged metric."""
    tests: tuple[TestVerdict, ...]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[WarningGroup, ...]
    """Most important first: differences of the work of the tests."""
    every: tuple[DataWarning, ...] = ()
    """The same warnings before grouping: each is about one test, or about the whole experiment."""
    without: tuple[NoComparison, ...] = ()
    verdict_options: VerdictOptions = field(default_factory=VerdictOptions)
    """Options of the verdict."""

    @property
    def judged(self) -> tuple[str, ...]:
        """The primary metric, and others that a script's stop rules name."""
        return judged_metrics(self.asked, self.primary)

    def together(self, metric: str) -> tuple[tuple[TestVerdict, ...], int]:
        """The tests, with intervals of this metric's means that hold for all of them together (Bonferroni), and the
        number of these intervals."""
        count = sum(test.has_interval(metric) for test in self.tests)
        if count < 2:
            return self.tests, 1
        verdict_options = replace(
            self.verdict_options, confidence=bonferroni_confidence(self.verdict_options.confidence, count)
        )
        judged = [
            _test_verdict(self.subject, s, (metric,), metric, verdict_options) for s in self.subject.tests
        ]
        return tuple(judged), count

    @property
    def asked(self) -> StopRuleInfo:
        """Request of the experiment."""
        return self.subject.asked

    @property
    def directory(self) -> Path:
        """Directory of the results."""
        return Path(self.subject.label)


def verdict(
    source: Results | Subject,
    metrics: Sequence[str] | None = None,
    verdict_options: VerdictOptions | None = None,
) -> Verdict:
    """Judge an experiment, or the results of another program.

    `metrics` limits the summaries to those that exist; its first, which must, is compared instead of the primary. It
    need not be in every test where the stop rules named it.

    Raises:
        InputError: its plan cannot be read; UsageError: no such metric.
    """
    verdict_options = verdict_options or VerdictOptions()
    subject = (
        source
        if isinstance(source, Subject)
        else subject_of(source, _read(source, metrics, verdict_options.watched))
    )
    primary = metrics[0] if metrics else subject.asked.primary
    if subject.experiment is not None and primary not in subject.asked.judged:
        check_metric(subject.tests, primary)
    tests = tuple(
        _test_verdict(subject, series, metrics, primary, verdict_options) for series in subject.tests
    )
    compared = [
        compare_tests(subject, metric, verdict_options) for metric in judged_metrics(subject.asked, primary)
    ]
    printed = {(test.test, m.metric): m for test in tests for m in test.metrics}
    comparisons = [_with_printed_mean(c, printed) for found, _ in compared for c in found]
    without = [each for _, uncompared in compared for each in uncompared]
    notes: list[ResultNote | NoComparison] = [*subject.notes, *without]
    found = [
        *work_warnings(subject.work),
        *machine_warnings(subject.experiment or {}),
        *_against_itself(comparisons, primary),
        *(warning("note", "", "", NoteOnResult(note)) for note in notes),
    ]
    for series, test in zip(subject.tests, tests, strict=True):
        found += _warned(subject, series, test, primary, verdict_options)
        found += others_warnings(subject, series, verdict_options.thresholds)
    found = [each for each in found if each.kind not in verdict_options.silent]
    found += [
        each
        for each in explain_outliers(subject, found, every_one=verdict_options.every_outlier)
        if each.kind not in verdict_options.silent
    ]
    every = sorted(dict.fromkeys(found), key=lambda each: each.rank)
    told = ranked(found, len(tests))
    return Verdict(
        subject,
        primary,
        tests,
        tuple(comparisons),
        tuple(told),
        tuple(every),
        tuple(without),
        verdict_options,
    )


def _with_printed_mean(c: Comparison, printed: Mapping[tuple[str, str], MetricSummary]) -> Comparison:
    """The comparison with the baseline's mean as in its own row: over sessions if it has several, and including trials
    without a pair."""
    found = printed.get((c.base, c.metric))
    if found is None or found.summary is None:
        return c
    over = found.levels.over if found.levels else "trial"
    return replace(c, base_mean=found.summary.mean, which=found.summary.which, base_mean_over=over)


def judged_metrics(asked: StopRuleInfo, primary: str) -> tuple[str, ...]:
    """Metrics to compare: `primary` and, if it is the experiment's own, those that the stop rules name."""
    return tuple(dict.fromkeys((primary, *(asked.judged if primary == asked.primary else ()))))


def _read(results: Results, metrics: Sequence[str] | None, watched: Sequence[str]) -> Sequence[str] | None:
    """Columns to read: requested ones, those of the time breakdown, and those that warnings use; None: all."""
    watched = (*watched, *watched_in(results.experiment))
    needed = ("elapsed", "user", "system", *MEMORY, *DATA, *watched)
    return None if metrics is None else tuple(dict.fromkeys((*metrics, *needed)))


def _test_verdict(
    subject: Subject,
    series: Series,
    metrics: Sequence[str] | None,
    primary: str,
    verdict_options: VerdictOptions,
) -> TestVerdict:
    factor = subject.asked.factors[series.test]
    shell = shell_cost(subject)
    summaries = tuple(
        metric_summary(series, metric, factor, shell if metric == "elapsed" else (0.0, 0.0), verdict_options)
        for metric in (metrics or series.columns)
        if metric in series.columns
    )
    refused = any(each.within_shell for each in summaries if each.metric == primary)
    more = 0 if refused else _more_trials(subject.asked, series, primary, factor)
    excluded = np.flatnonzero(~series.kept).tolist()
    return TestVerdict(
        series.test,
        series.parameters,
        int(series.trials.size),
        Counter((series.why[place] if series.why else None) or NO_REASON for place in excluded),
        int(np.count_nonzero(series.kept)),
        series.inner,
        summaries,
        more,
        more * (seconds_per_trial([series]) or mean_trial_s(series)),
        time_spent(series),
        more > 0 or (not refused and _is_wider(subject.asked, summaries, primary)),
    )


def _is_wider(asked: StopRuleInfo, summaries: Sequence[MetricSummary], metric: str) -> bool:
    summary = next((each.summary for each in summaries if each.metric == metric), None)
    if asked.precision is None or asked.compares or summary is None or summary.mean_interval is None:
        return False
    return summary.mean_interval.half_width >= asked.precision * abs(summary.mean) > 0.0


def _more_trials(asked: StopRuleInfo, series: Series, metric: str, factor: float) -> int:
    """Further trials for the requested precision; 0 if none was requested, or if ratios are compared."""
    precision = asked.precision
    values = series.sample(metric)
    if precision is None or asked.compares or values.size < 2 or float(values.sum()) == 0:
        return 0
    return more_trials(values, target=precision, factor=factor)


def metric_summary(
    series: Series, metric: str, factor: float, shell: tuple[float, float], verdict_options: VerdictOptions
) -> MetricSummary:
    """One metric of one test. `shell`: time subtracted from each value, and its standard error."""
    column = column_of(series, metric)
    values = series.sample(metric)
    joined, workers = column.joined, column.workers
    if values.size == 0:
        return MetricSummary(
            metric, column.unit, None, column.reason, kind=column.kind, joined=joined, workers=workers
        )
    cost, error = shell
    kind = cast(Kind, column.kind)
    if cost and float(values.min()) <= cost:
        return MetricSummary(metric, column.unit, None, None, cost, column.kind)
    summary = describe(values - cost, kind, factor=factor, confidence=verdict_options.confidence)
    if error and summary.mean_interval:
        summary = _with_error(summary, error)
    levels = _levels(series, column, values - cost, kind, verdict_options.confidence)
    if levels is not None:
        levels = at_least_as_wide(levels, summary.mean, summary.mean_interval)
        summary = replace(summary, mean=levels.mean, mean_interval=levels.interval)
    return MetricSummary(metric, column.unit, summary, None, cost, column.kind, levels, joined, workers)


def _levels(series: Series, column: Column, values: Floats, kind: Kind, confidence: float) -> Split | None:
    """Split of the variance if the values are of more than one session, boot or machine; else None."""
    labels: dict[str, Sequence[Hashable]] = {
        level: names for level, names in series.labels.items() if len(names)
    }
    if series.sittings is not None:
        labels["sitting"] = series.sittings.tolist()
    if all(len(set(names)) <= 1 for names in labels.values()):
        return None
    there = (series.kept & np.isfinite(column.values)).tolist()
    labels = {level: list(compress(names, there)) for level, names in labels.items()}
    if all(len(set(names)) <= 1 for names in labels.values()):
        return None
    try:
        return split_by_kind(values, kind, labels, confidence=confidence)
    except ValueError:
        return None  # the mean of this kind cannot be formed; the summary has the reason


def _with_error(summary: Summary, error: float) -> Summary:
    """Widen the mean's interval by the standard error of what was subtracted (errors added in quadrature)."""
    interval = summary.mean_interval
    assert interval is not None
    half = math.hypot(interval.half_width, 1.96 * error)
    widened = type(interval)(summary.mean - half, summary.mean + half)
    return replace(summary, mean_interval=interval_above_zero(widened, summary.mean, summary.count))


def _warned(
    subject: Subject, series: Series, test: TestVerdict, primary: str, verdict_options: VerdictOptions
) -> list[DataWarning]:
    found = test.metric(primary)
    summary = found.summary if found else None
    several = found is not None and found.levels is not None and found.levels.over != "trial"
    refused = (found is not None and found.within_shell) or several  # `precision_line` has the remedy
    experiment = subject.experiment or {}
    told = limited(series.test, limited_in(experiment))
    told += several_matches(series.test, several_matches_in(experiment, series.test))
    if not series.trials.size:
        told += never_begun(series.test, failure_in(experiment, series.test))
    told += series_warnings(
        series,
        primary,
        thresholds=verdict_options.thresholds,
        factor=subject.asked.factors[series.test],
        precision=None if refused or subject.asked.compares else subject.asked.precision,
        memory_bytes=subject.memory_bytes,
        watched=(*verdict_options.watched, *watched_in(experiment, series.test)),
    )
    if found is None or not found.corrected_s:
        return told
    if summary is not None:
        interval = summary.mean_interval
        if summary.count < 2 or (interval is not None and interval.half_width < summary.mean):
            return told
    return [*told, warning("shell", series.test, primary, WithinShell())]


def _against_itself(comparisons: Sequence[Comparison], primary: str) -> list[DataWarning]:
    """Warning if the baseline differs from its twin, given five A/A pairs or more."""
    if not comparisons:
        return []
    c = comparisons[0]
    floor = c.floor_ratio
    if floor is None or c.floor_pairs < 5 or floor.low <= 1.0 <= floor.high:
        return []
    itself = AgainstItself(floor.ratio, floor.low, floor.high, c.floor_pairs)
    return [warning("against-itself", c.base, primary, itself)]


__all__ = ["Comparison", "MetricSummary", "TestVerdict", "Verdict", "metric_summary", "verdict"]


@dataclass(frozen=True)
class NotCompared:
    """Tests of one experiment that have the judged metric in one unit but are not compared by it; or single tests of a
    group that was to be compared."""

    tests: tuple[str, ...]
    why: Literal["one after the other", "too few pairs", "alone"]
    """`alone`: no other test of the group has a value."""
    script: bool
    """True if a script ran them."""
    results: str


def not_compared(verdict: Verdict) -> NotCompared | None:
    """Tests that could be compared with another one by the primary metric but are not; None if there are none."""
    experiment = verdict.subject.experiment
    kind = ((experiment or {}).get("plan") or {}).get("kind")
    if experiment is None or kind not in (None, "script", "res"):
        return None
    compared = {name for c in verdict.comparisons for name in (c.base, c.other)}
    units = {
        test.test: found.unit
        for test in verdict.tests
        if (found := test.metric(verdict.primary)) and found.summary
    }
    tests = tuple(name for name in units if name not in compared)
    if alone := tuple(
        name for name in tests if any(set(group) & set(units) == {name} for group in verdict.asked.groups)
    ):
        return NotCompared(alone, "alone", kind == "script", verdict.subject.label)
    if not tests or len(units) < 2 or len(set(units.values())) > 1:
        return None
    groups = [group for group in verdict.asked.groups if set(tests) & set(group)]
    if groups and len({name for group in groups for name in group} & set(tests)) == len(tests):
        few = _with_few_pairs(verdict, groups)
        tests = tuple(name for name in tests if name in few)  # a note has the reason for the others
        return NotCompared(tests, "too few pairs", kind == "script", verdict.subject.label) if tests else None
    return NotCompared(tests, "one after the other", kind == "script", verdict.subject.label)


def _with_few_pairs(verdict: Verdict, groups: Iterable[Sequence[str]]) -> set[str]:
    """Tests with fewer than two complete pairs with the baseline of their group, and these baselines."""
    found = set()
    for reference, *others in groups:
        for other in others:
            pairs = pairs_of(verdict.subject.test(reference), verdict.subject.test(other), verdict.primary)
            if pairs.base.size < 2:
                found |= {reference, other}
    return found
