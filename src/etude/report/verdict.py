"""The verdict on an experiment: each test's numbers, each comparison, and whether the tests did the same work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from etude.errors import InputError, UsageError
from etude.report.asked import Asked, asked_of
from etude.report.samework import differences
from etude.results.reader import Results
from etude.results.samples import Trial, paired_samples, sample, trials_of
from etude.stats.compare import Ratio, more_pairs, more_trials, noise_floor, paired_ratio, unpaired_ratio
from etude.stats.describe import Summary, describe
from etude.stats.intervals import deviation

FINER = 2.0
"""A verdict says what it would take to see this many times smaller a difference."""


@dataclass(frozen=True)
class MetricSummary:
    """One metric of one test; `corrected_s` is what was subtracted from each value (a shell's start)."""

    metric: str
    unit: str
    summary: Summary | None
    reason: str | None = None
    corrected_s: float = 0.0


@dataclass(frozen=True)
class TestVerdict:
    """One test: how many trials, and each metric."""

    __test__ = False

    test: str
    parameters: Mapping[str, str]
    made: int
    set_aside: Mapping[str, int]
    """Number of trials that were not kept, by reason."""
    kept: int
    inner: int
    metrics: tuple[MetricSummary, ...]
    more: int
    """Further trials until the mean is known within the precision asked for (with the spread as it is),"""
    more_s: float
    """… which take about this long, seconds."""

    def metric(self, name: str) -> MetricSummary | None:
        """The summary of one metric."""
        return next((m for m in self.metrics if m.metric == name), None)


@dataclass(frozen=True)
class Comparison:
    """How one test's metric relates to the reference's."""

    base: str
    other: str
    metric: str
    unit: str
    base_mean: float
    ratio: Ratio
    floor: float | None
    """Relative half width that as many pairs of identical commands show; None below five A/A pairs."""
    floor_pairs: int
    floor_ratio: Ratio | None
    """The reference against itself."""
    asked: float | None
    """The relative half width that was asked for; None for a fixed number of trials."""
    finer: float
    """That half width if it was not reached, else one finer than what was, …"""
    more: int
    """… and the further pairs that would show it,"""
    more_s: float
    """… which take about this long, seconds."""
    contention: bool
    """Both ran at once: a ratio under contention."""

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1."""
        return self.ratio.low > 1.0 or self.ratio.high < 1.0


@dataclass(frozen=True)
class Verdict:
    """All that an experiment's results say."""

    results: Results
    asked: Asked
    primary: str
    """The metric that is judged."""
    tests: tuple[TestVerdict, ...]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...]
    """First what concerns whether the tests did the same work."""

    def __str__(self) -> str:
        from etude.report.text import verdict_lines

        return "\n".join(verdict_lines(self))


def verdict(results: Results, metrics: Sequence[str] | None = None) -> Verdict:
    """Judge the results of one experiment.

    `metrics` limits the summaries to those that exist; its first, which must, is compared instead of the primary.

    Raises:
        InputError: its plan cannot be read; UsageError: no such metric.
    """
    asked = asked_of(results)
    trials = {name: trials_of(rows) for name, rows in results.measurements.items()}
    shell = _shell_cost(results, trials)
    primary = metrics[0] if metrics else asked.primary
    tests = tuple(
        _test_verdict(results, asked, name, trials[name], metrics, primary, shell) for name in results.names()
    )
    comparisons: list[Comparison] = []
    without: list[str] = []
    for reference, *others in asked.groups:
        for other in others:
            try:
                comparisons += _compare(results, asked, trials, (reference, other), primary, shell)
            except ValueError as error:
                without.append(f"no {primary} of {other} against {reference}: {error}")
    same_work = [] if results.experiment["plan"].get("kind") else differences(results, trials)
    warnings = [*same_work, *_warnings(results, tests, comparisons, asked), *without]
    return Verdict(results, asked, primary, tests, tuple(comparisons), tuple(warnings))


def against(baseline: Results, current: Results, metric: str) -> list[tuple[str, Ratio, float, str]]:
    """Each test of `current` against the test of the same name in `baseline`: name, ratio, baseline mean, unit.

    Unpaired: drift between the two is not controlled.

    Raises:
        InputError: no test has the same name.
    """
    found = []
    for name in shared_names(baseline, current.names()):
        old, new = (sample(trials_of(r.measurements[name]), metric) for r in (baseline, current))
        if min(len(old), len(new)) >= 2:
            unit = unit_of(current, name, metric)
            found.append((name, unpaired_ratio(old, new), sum(old) / len(old), unit))
    return found


def shared_names(baseline: Results, names: Sequence[str]) -> list[str]:
    """Those of `names` that tests of `baseline` have, too.

    Raises:
        InputError: there is none.
    """
    shared = [name for name in names if name in baseline.names()]
    if not shared:
        raise InputError(
            f"{baseline.directory}: none of its tests ({', '.join(baseline.names())}) has the name of one "
            "measured now; name them alike with -n"
        )
    return shared


def unit_of(results: Results, test: str, metric: str) -> str:
    """The metric's unit as its measurements state it."""
    for m in results.measurements[test]:
        if metric in m.metrics:
            return str(m.metrics[metric][1])
    raise UsageError(
        f"metric {metric!r}: test {test!r} has none of that name; it has {_known(results, test)}"
    )


def _known(results: Results, test: str) -> str:
    return ", ".join(sorted({name for m in results.measurements[test] for name in m.metrics})) or "none"


def _shell_cost(results: Results, trials: Mapping[str, list[Trial]]) -> tuple[float, float] | None:
    """Mean start of the empty shell and its standard error, seconds; None where no shell is used."""
    names = results.names("shell")
    starts = sample(trials[names[0]], "elapsed") if names else []
    if len(starts) < 2:
        return None
    mean = sum(starts) / len(starts)
    return mean, deviation(np.asarray(starts)) / math.sqrt(len(starts))


def _test_verdict(
    results: Results,
    asked: Asked,
    name: str,
    trials: list[Trial],
    metrics: Sequence[str] | None,
    primary: str,
    shell: tuple[float, float] | None,
) -> TestVerdict:
    entry = next(t for t in results.experiment["tests"] if t["name"] == name)
    factor = asked.factors[name]
    looked_at = trials if metrics is None else trials[:1] + trials[-1:]
    measured = dict.fromkeys(m for trial in looked_at for m in trial.metrics())
    if trials:
        unit_of(results, name, primary)
    found = [metric for metric in metrics or measured if metric in measured]
    return TestVerdict(
        name,
        entry["parameters"],
        len(trials),
        Counter(trial.first.why or "?" for trial in trials if not trial.kept),
        sum(trial.kept for trial in trials),
        trials[-1].first.inner if trials else 1,
        tuple(
            _metric_summary(trials, metric, factor, metric == primary, shell if metric == "elapsed" else None)
            for metric in found
        ),
        more := _more_trials(asked, trials, primary, factor),
        more * _mean_elapsed(trials),
    )


def _more_trials(asked: Asked, trials: list[Trial], metric: str, factor: float) -> int:
    """Further trials that the precision asked for needs; 0 where none was asked or ratios are what matters."""
    precision = asked.precision
    values = sample(trials, metric)
    if precision is None or asked.compares or len(values) < 2 or sum(values) == 0:
        return 0
    return more_trials(values, target=precision, factor=factor)


def _metric_summary(
    trials: list[Trial], metric: str, factor: float, diagnose: bool, shell: tuple[float, float] | None
) -> MetricSummary:
    _, unit, *reasons = next(m.metrics[metric] for t in trials for m in t.measurements if metric in m.metrics)
    values = sample(trials, metric)
    if not values:
        return MetricSummary(metric, unit, None, reasons[0] if reasons else "no kept trial has a value")
    cost = shell[0] if shell else 0.0
    summary = describe([v - cost for v in values], factor=factor, diagnose=diagnose)
    if shell and summary.mean_interval:
        summary = _with_error(summary, shell[1])
    return MetricSummary(metric, unit, summary, None, cost)


def _with_error(summary: Summary, error: float) -> Summary:
    """Widen the mean's interval by the standard error of what was subtracted (errors added in quadrature)."""
    interval = summary.mean_interval
    assert interval is not None
    half = math.hypot(interval.half_width, 1.96 * error)
    return replace(summary, mean_interval=type(interval)(summary.mean - half, summary.mean + half))


def _compare(
    results: Results,
    asked: Asked,
    trials: Mapping[str, list[Trial]],
    pair: tuple[str, str],
    metric: str,
    shell: tuple[float, float] | None,
) -> list[Comparison]:
    """The comparison of a pair, the reference and another; none below two pairs of trials.

    Raises:
        ValueError: the values have no ratio.
    """
    reference, other = pair
    factor = max(asked.ratio_factors[name] for name in pair)
    base_values, other_values = paired_samples([trials[reference], trials[other]], metric)
    if len(base_values) < 2:
        return []
    subtract = shell if shell and metric == "elapsed" else (0.0, 0.0)
    ratio = paired_ratio(base_values, other_values, factor=factor, subtract=subtract)
    again_base, again = _against_itself(results, trials, reference, metric)
    pairs = len(base_values)
    wanted = asked.precision
    missed = wanted is not None and ratio.half_width >= wanted
    finer = wanted if missed and wanted is not None else _round_down(ratio.half_width / FINER)
    more = more_pairs(base_values, other_values, target=finer, factor=factor) if 0 < finer < math.inf else 0
    a_pair_s = _mean_elapsed(trials[reference]) + _mean_elapsed(trials[other])
    comparison = Comparison(
        reference,
        other,
        metric,
        unit_of(results, reference, metric),
        sum(base_values) / pairs - subtract[0],
        ratio,
        noise_floor(again_base, again, pairs=pairs, factor=factor),
        len(again),
        paired_ratio(again_base, again) if len(again) >= 2 else None,
        wanted,
        finer,
        more,
        more * a_pair_s,
        asked.duet,
    )
    return [comparison]


def _against_itself(
    results: Results, trials: Mapping[str, list[Trial]], reference: str, metric: str
) -> tuple[list[float], list[float]]:
    """The A/A pairs: the reference and its twin, or, in a duet, both twins."""
    twins = results.names("again")
    if not twins:
        return [], []
    sides = [trials[name] for name in twins] if len(twins) == 2 else [trials[reference], trials[twins[0]]]
    base, again = paired_samples(sides, metric)
    return base, again


def _mean_elapsed(trials: list[Trial]) -> float:
    values = [(t.value("elapsed") or 0.0) * t.first.inner for t in trials if t.kept]
    return sum(values) / len(values) if values else 0.0


def _round_down(x: float) -> float:
    """The next of 1, 2, 5 × 10^n below or at x: a precision somebody would ask for."""
    if not 0 < x < math.inf:
        return x
    power = 10.0 ** math.floor(math.log10(x))
    return next((m * power for m in (5, 2, 1) if m * power <= x * (1 + 1e-9)), power)


def _warnings(
    results: Results, tests: Sequence[TestVerdict], comparisons: Sequence[Comparison], asked: Asked
) -> list[str]:
    left_out = results.experiment.get("left_out") or []
    found = [f"{results.directory}, line {entry['line']}: left out: {entry['reason']}" for entry in left_out]
    if not left_out:
        found = [f"{path}: its last line was cut short and was left out" for path in results.torn]
    sittings: list[Any] = results.experiment["sittings"]
    found += [
        f"{name}: a line that was cut short before sitting {sitting['sitting']} was left out"
        for sitting in sittings
        for name in sitting.get("torn") or ()
    ]
    if len(sittings) > 1:
        found.append(f"resumed: these are {len(sittings)} sittings; pairs are formed within one only")
    for test in tests:
        found += _about_series(test, asked)
    for c in comparisons[:1]:
        if c.floor_ratio and c.floor_pairs >= 5 and not c.floor_ratio.low <= 1.0 <= c.floor_ratio.high:
            found.append(
                f"{c.base} against itself: {c.floor_ratio.ratio:.3f} (95 %: {c.floor_ratio.low:.3f}–"
                f"{c.floor_ratio.high:.3f}; {c.floor_pairs} pairs) excludes 1: distrust differences of this size here"
            )
    return found


def _about_series(test: TestVerdict, asked: Asked) -> list[str]:
    primary = test.metric(asked.primary)
    summary = primary.summary if primary else None
    if primary is None or summary is None:
        return []
    found = []
    interval = summary.mean_interval
    if primary.corrected_s and (summary.mean if interval is None else interval.low) <= 0.0:
        found.append(f"{test.test}: its time cannot be told from the shell's own start; leave out --shell")
    if summary.count < 10:
        return found
    if summary.outliers:
        found.append(f"{test.test}: {summary.outliers} of {summary.count} trials are outliers (kept)")
    if summary.trend_p is not None and summary.trend_p < 0.01 and abs(summary.trend_slope or 0.0) > 0.02:
        found.append(
            f"{test.test}: a trend of {100 * (summary.trend_slope or 0.0):+.1f} % over the series, or autocorrelation "
            f"(p = {summary.trend_p:.2g}): it had not settled"
        )
    if summary.effective_count < 0.7 * summary.count:
        found.append(
            f"{test.test}: neighbouring trials resemble each other: {summary.count} are worth "
            f"{summary.effective_count:.0f} independent ones, and the interval is as wide as that makes it"
        )
    return found


__all__ = [
    "Comparison",
    "MetricSummary",
    "TestVerdict",
    "Verdict",
    "against",
    "shared_names",
    "unit_of",
    "verdict",
]
