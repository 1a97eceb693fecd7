"""Tests of one experiment compared: in pairs where they ran in blocks, else marked as unpaired."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import numpy as np

from etude.analysis.comparison import (
    CANDIDATES,
    LEAST_KNOWN,
    TIMES_NARROWER,
    Comparison,
    NoComparison,
    OnMachine,
    Pairs,
    QuieterMetric,
    Secondary,
    is_steady,
    machines_of,
    paired_values,
    pairs_of,
    samples,
    with_cpu_time,
)
from etude.analysis.subject import Subject, column_of
from etude.analysis.time_breakdown import mean_trial_s, seconds_per_trial, time_span_s
from etude.analysis.verdict_options import VerdictOptions
from etude.results.series import Floats, Series
from etude.stats.describe import describe
from etude.stats.equivalence import equivalence_of
from etude.stats.intervals import Interval
from etude.stats.machines import contrasts, ratio_over_machines, ratios_differ, unpaired_over_machines
from etude.stats.means import ADDING_UP, Kind, Mean
from etude.stats.moments import effective_moments, interval_of_mean, mean_of
from etude.stats.multiplicity import benjamini_hochberg, bonferroni_confidence
from etude.stats.ranks import mann_whitney, wilcoxon
from etude.stats.ratio import (
    Ratio,
    more_pairs,
    noise_floor,
    paired_mean_ratio,
    paired_ratio,
    ratio_of_fitting_means,
    unpaired_mean_ratio,
    unpaired_ratio,
)
from etude.stats.twosample import welch

T = TypeVar("T")

FEWEST_AGAIN = 5
"""Minimum number of A/A pairs for a difference of the baseline from itself to be believed."""

FINER = 2.0
"""Factor: a verdict states the trials needed to resolve a difference smaller by this."""


def compare_tests(
    subject: Subject, metric: str, verdict_options: VerdictOptions
) -> tuple[list[Comparison], list[NoComparison]]:
    """Comparisons requested by the experiment or by `verdict_options.reference`, and why some are missing."""
    found: list[Comparison] = []
    without: list[NoComparison] = []
    planned = list(_asked_for(subject, verdict_options))
    for base, other, paired in planned:
        try:
            found += map(
                _not_beyond, _compare(subject, base, other, metric, paired, verdict_options, len(planned))
            )
        except ValueError as error:
            difference = _or_none(
                partial(_difference, subject, base, other, metric, paired, verdict_options, len(planned))
            )
            unit = column_of(base, metric).unit if difference else ""
            without.append(
                NoComparison(
                    metric,
                    (other.test,),
                    base.test,
                    str(error),
                    difference,
                    unit,
                    verdict_options.confidence if difference else 0.0,
                )
            )
    without += _lacking(subject, metric, planned)
    if metric == "elapsed" and subject.shell is None:  # the CPU time of the shell cannot be subtracted
        found = [replace(c, quieter=_quieter(subject, c, verdict_options.confidence)) for c in found]
    if verdict_options.full:
        found = _with_secondary(subject, found, metric, verdict_options)
    return found, without


def _not_beyond(c: Comparison) -> Comparison:
    """The comparison, with the equivalence undecided if its tests differ but the verdict claims no difference."""
    e = c.equivalence
    if e is None or e.verdict != "different" or c.differs:
        return c
    return replace(c, equivalence=replace(e, verdict="undecided"))


def _lacking(
    subject: Subject, metric: str, planned: Sequence[tuple[Series, Series, bool]]
) -> list[NoComparison]:
    """The requested metric, if uncompared tests lack it though others have it; else empty."""
    compared = {series.test for base, other, _ in planned for series in (base, other)}
    made = [series for series in subject.tests if series.trials.size]
    lacking = [series.test for series in made if metric not in series.columns]
    if metric in (subject.asked.primary, *subject.asked.judged) or len(lacking) == len(made):
        return []
    alone = tuple(test for test in lacking if test not in compared)
    return [NoComparison(metric, alone, "", "")] if alone else []


def _asked_for(subject: Subject, verdict_options: VerdictOptions) -> Iterator[tuple[Series, Series, bool]]:
    """Baseline, other test, and whether they ran in common blocks, for each planned comparison."""
    if verdict_options.reference is not None:
        base = subject.test(verdict_options.reference)
        grouped = next((group for group in subject.asked.groups if base.test in group), ())
        for other in subject.tests:
            if other is not base:
                yield base, other, other.test in grouped
        return
    for reference, *others in subject.asked.groups:
        for name in others:
            yield subject.test(reference), subject.test(name), True
    if subject.experiment is None and len(subject.tests) == 2:
        yield subject.tests[0], subject.tests[1], False


def _compare(
    subject: Subject,
    base: Series,
    other: Series,
    metric: str,
    paired: bool,
    verdict_options: VerdictOptions,
    together: int,
) -> list[Comparison]:
    """The comparison, one of `together` judged at once; empty below two pairs, or two trials of either test.

    Raises ValueError where there is no ratio.
    """
    lacking = [series.test for series in (base, other) if metric not in series.columns]
    if lacking and base.trials.size and other.trials.size:
        raise ValueError(f"{' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} no such metric")
    if lacking:
        return []
    unit = column_of(base, metric).unit
    if column_of(other, metric).unit != unit:
        raise ValueError(f"it is in {column_of(other, metric).unit} there and in {unit} here")
    if paired:
        pairs = pairs_of(base, other, metric)
        if pairs.base.size < 2:
            return []
        return [_paired(subject, base, other, metric, unit, pairs, verdict_options, together)]
    values = samples(base, other, metric)
    if min(x.size for x in values) < 2:
        return []
    return [_unpaired(base, other, metric, unit, values, verdict_options, together)]


def _difference(
    subject: Subject,
    base: Series,
    other: Series,
    metric: str,
    paired: bool,
    verdict_options: VerdictOptions,
    together: int,
) -> Interval | None:
    """Interval of the difference of the means of two tests without a ratio; None where the metric has another unit, or
    is lacking, or the machines differ. Raises ValueError if nothing varies."""
    if any(metric not in series.columns for series in (base, other)):
        return None
    if column_of(base, metric).unit != column_of(other, metric).unit:
        return None
    machines = [set(machines_of(series, metric)) for series in (base, other)]
    if len(set.union(*machines)) > 1:
        return None
    level = bonferroni_confidence(verdict_options.confidence, together)
    if paired:
        pairs = pairs_of(base, other, metric)
        factor = max(subject.asked.ratio_factors[series.test] for series in (base, other))
        return interval_of_mean(pairs.other - pairs.base, factor=factor, confidence=level)
    first, second = samples(base, other, metric)
    found = welch(effective_moments(second), effective_moments(first), confidence=level)
    return Interval(found.low, found.high)


def _unpaired(
    base: Series,
    other: Series,
    metric: str,
    unit: str,
    values: tuple[Floats, Floats],
    verdict_options: VerdictOptions,
    together: int,
) -> Comparison:
    typical = _unpaired_ratio(base, other, metric, verdict_options.confidence).among(together)
    means = _unpaired_means(base, other, metric, verdict_options.confidence)
    headline = means and means.among(together)
    mean, which = _fitting(base, metric, values[0])
    level = bonferroni_confidence(verdict_options.confidence, together)
    difference = _or_none(lambda: welch(*map(effective_moments, reversed(values)), confidence=level))
    margin = verdict_options.same_within
    return Comparison(
        base.test,
        other.test,
        metric,
        unit,
        mean,
        headline or typical,
        floor=None,
        floor_pairs=0,
        floor_ratio=None,
        asked=None,
        finer=0.0,
        more=0,
        more_s=0.0,
        contention=False,
        which=which,
        sittings=_sessions(base, other),
        trials=min(x.size for x in values),
        most_trials=max(x.size for x in values),
        span_s=time_span_s((base, other)),
        difference=Interval(difference.low, difference.high)
        if difference and which == "arithmetic"
        else None,
        shift=mann_whitney(values[1], values[0], confidence=level, ratio=True, dependent=True),
        equivalence=_or_none(lambda: equivalence_of(headline or typical, margin=margin)) if margin else None,
        typical=typical if headline else None,
    )


def _paired(
    subject: Subject,
    base: Series,
    other: Series,
    metric: str,
    unit: str,
    pairs: Pairs,
    verdict_options: VerdictOptions,
    together: int,
) -> Comparison:
    values = pairs.base, pairs.other
    asked = subject.asked
    factor = max(asked.ratio_factors[series.test] for series in (base, other))
    subtract = shell_cost(subject) if metric == "elapsed" else (0.0, 0.0)
    typical = _paired_ratio(pairs, factor, verdict_options.confidence, subtract).among(together)
    headline = _paired_means(pairs, _kind(base, metric), factor, verdict_options.confidence, subtract)
    ratio = headline.among(together) if headline else typical
    level = bonferroni_confidence(verdict_options.confidence, together)
    again = _against_itself(subject, base, metric)
    itself = _of_itself(again, _kind(base, metric))
    mean, which = _fitting(base, metric, values[0] - subtract[0])
    wanted = asked.precision
    missed = wanted is not None and ratio.half_width >= wanted
    finer = wanted if missed and wanted is not None else _round_down(ratio.half_width / FINER)
    more = more_pairs(ratio, target=finer) if 0 < finer < math.inf else 0
    margin = verdict_options.same_within
    return Comparison(
        base.test,
        other.test,
        metric,
        unit,
        mean,
        ratio,
        _noise(again, values[0].size, factor, itself, _kind(base, metric), level),
        int(again[1].size),
        itself,
        wanted,
        finer,
        more,
        more * _pair_s(base, other),
        asked.duet,
        which=which,
        sittings=_sessions(base, other),
        trials=int(values[0].size),
        extended=_is_extended(subject),
        span_s=time_span_s((base, other)),
        difference=None
        if which != "arithmetic"
        else interval_of_mean(values[1] - values[0], factor=factor, confidence=level),
        shift=wilcoxon(values[1], values[0], confidence=level, ratio=True, dependent=True),
        equivalence=_or_none(lambda: equivalence_of(ratio, margin=margin)) if margin else None,
        machines=_on_machines(pairs, _kind(base, metric), factor, verdict_options.confidence, subtract),
        machines_p=ratios_differ(
            values[0] - subtract[0], values[1] - subtract[0], pairs.machines, kind=_kind(base, metric)
        )
        if pairs.several
        else None,
        typical=typical if headline else None,
        same_in_pairs=not ratio.low < ratio.high and bool(np.ptp(values[0]) or np.ptp(values[1])),
    )


def _is_extended(subject: Subject) -> bool:
    """True if a fixed number of trials was raised after all of them were complete."""
    experiment = subject.experiment or {}
    rule = (experiment.get("plan") or {}).get("rule") or {}
    earlier = (experiment.get("sittings") or [])[:-1]
    return rule.get("kind") == "fixed-count" and any(each.get("how_ended") == "complete" for each in earlier)


def _of_itself(again: tuple[Floats, Floats], kind: Kind) -> Ratio | None:
    if again[1].size < 2:
        return None
    return ratio_of_fitting_means(*again, kind, paired_mean_ratio) or paired_ratio(*again)


def _noise(
    again: tuple[Floats, Floats], pairs: int, factor: float, itself: Ratio | None, kind: Kind, level: float
) -> float | None:
    """A/A noise of `pairs` pairs, at least as large as a steady difference of the baseline from itself, which more
    pairs do not average out."""
    floor = noise_floor(*again, pairs=pairs, kind=kind, factor=factor, confidence=level)
    return floor if floor is None or not is_steady(itself) else max(floor, itself.off_one)


def noise_of(subject: Subject, base: Series, metric: str, pairs: int, confidence: float) -> float | None:
    """A/A noise of `pairs` pairs with this baseline, relative; None below five A/A pairs, or for values not above 0."""
    again, factor = _against_itself(subject, base, metric), subject.asked.ratio_factors.get(base.test, 1.0)
    if pairs < 1 or again[1].size < FEWEST_AGAIN or min(map(np.min, again)) <= 0:
        return None
    kind = _kind(base, metric)
    return _noise(again, pairs, factor, _of_itself(again, kind), kind, confidence)


def _kind(series: Series, metric: str) -> Kind:
    return cast(Kind, column_of(series, metric).kind)


def _paired_means(
    pairs: Pairs, kind: Kind, factor: float, confidence: float, subtract: tuple[float, float] = (0.0, 0.0)
) -> Ratio | None:
    """Ratio of the means that fit the metric's kind; None where the geometric mean fits."""
    if pairs.several and kind in ADDING_UP:
        return ratio_over_machines(*pairs, kind=kind, factor=factor, subtract=subtract, confidence=confidence)
    mean_ratio = partial(paired_mean_ratio, factor=factor, subtract=subtract, confidence=confidence)
    return ratio_of_fitting_means(pairs.base, pairs.other, kind, mean_ratio)


def _unpaired_means(base: Series, other: Series, metric: str, confidence: float) -> Ratio | None:
    """Ratio of the means that fit the metric's kind; None if the geometric mean fits, or machines do not match."""
    machines, kind = (machines_of(base, metric), machines_of(other, metric)), _kind(base, metric)
    if len({*machines[0], *machines[1]}) > 1 and kind in ADDING_UP:
        if set(machines[0]) != set(machines[1]):  # the machines differ, or one side does not record them
            return None
        return unpaired_over_machines(
            base.sample(metric), other.sample(metric), *machines, kind=kind, confidence=confidence
        )
    mean_ratio = partial(unpaired_mean_ratio, confidence=confidence)
    return ratio_of_fitting_means(*samples(base, other, metric), kind, mean_ratio)


def _paired_ratio(
    pairs: Pairs, factor: float, confidence: float, subtract: tuple[float, float] = (0.0, 0.0)
) -> Ratio:
    if not pairs.several:
        return paired_ratio(pairs.base, pairs.other, factor=factor, subtract=subtract, confidence=confidence)
    return ratio_over_machines(*pairs, factor=factor, subtract=subtract, confidence=confidence)


def _on_machines(
    pairs: Pairs, kind: Kind, factor: float, confidence: float, subtract: tuple[float, float]
) -> tuple[OnMachine, ...]:
    if not pairs.several:
        return ()
    found = []
    for name in dict.fromkeys(pairs.machines):
        there = np.array([machine == name for machine in pairs.machines])
        own = Pairs(pairs.base[there], pairs.other[there], (name,) * int(there.sum()))
        ratio = None
        if own.base.size >= 2:
            means = _paired_means(own, kind, factor, confidence, subtract)
            ratio = means or _paired_ratio(own, factor, confidence, subtract)
        found.append(OnMachine(name, int(own.base.size), ratio))
    return tuple(found)


def _unpaired_ratio(base: Series, other: Series, metric: str, confidence: float) -> Ratio:
    """Ratio of two unpaired tests. Raises ValueError if they were measured on different machines."""
    machines = machines_of(base, metric), machines_of(other, metric)
    names = [set(each) for each in machines]
    if names[0] != names[1] and "" not in names[0] | names[1]:
        raise ValueError(contrasts(*names))
    if len(names[0]) < 2 or names[0] != names[1]:
        return unpaired_ratio(*samples(base, other, metric), confidence=confidence)
    return unpaired_over_machines(base.sample(metric), other.sample(metric), *machines, confidence=confidence)


def _fitting(series: Series, metric: str, values: Floats) -> tuple[float, Mean]:
    """The mean that fits the metric's kind (NaN if there is none), and which mean it is."""
    found = describe(values, _kind(series, metric))
    return found.mean, found.which


def _sessions(*tests: Series) -> int:
    numbers = [series.sittings[series.kept] for series in tests if series.sittings is not None]
    return len(np.unique(np.concatenate(numbers))) if numbers else 1


def _pair_s(base: Series, other: Series) -> float:
    """Wall-clock time of a further pair (s), with everything around it; the trials alone if starts are unknown."""
    trial_s = seconds_per_trial([base, other])
    return mean_trial_s(base) + mean_trial_s(other) if trial_s is None else 2.0 * trial_s


def shell_cost(subject: Subject) -> tuple[float, float]:
    """Mean start time of the empty shell and its standard error (s); zeros if no shell is used."""
    starts = subject.shell.sample("elapsed") if subject.shell is not None else np.empty(0)
    if starts.size < 2:
        return 0.0, 0.0
    return mean_of(starts), float(starts.std(ddof=1)) / math.sqrt(starts.size)


def _with_secondary(
    subject: Subject, found: Sequence[Comparison], primary: str, verdict_options: VerdictOptions
) -> list[Comparison]:
    """The comparisons with the ratios of the other common metrics, adjusted over all of them at once."""
    each = [list(_secondary(subject, c, primary, verdict_options)) for c in found]
    uncompared = [
        _uncompared(subject, c, primary, known, verdict_options) for c, known in zip(found, each, strict=True)
    ]
    adjusted = iter(benjamini_hochberg([s.ratio.p for secondary in each for s in secondary]))
    return [
        replace(
            c,
            secondary=tuple(replace(s, adjusted_p=next(adjusted).adjusted) for s in secondary),
            uncompared=tuple(names),
        )
        for c, secondary, names in zip(found, each, uncompared, strict=True)
    ]


def _secondary(
    subject: Subject, c: Comparison, primary: str, verdict_options: VerdictOptions
) -> Iterator[Secondary]:
    base, other = subject.test(c.base), subject.test(c.other)
    for metric in base.columns if verdict_options.secondary is None else verdict_options.secondary:
        if metric == primary or metric not in base.columns or metric not in other.columns:
            continue
        ratio = _or_none(partial(_ratio_as, c, base, other, metric, verdict_options.confidence))
        if ratio is not None:  # None: too few values, or some at zero
            again = _against_itself(subject, base, metric)
            itself = _or_none(partial(_of_itself, again, _kind(base, metric)))
            unsteady = c.floor_pairs >= FEWEST_AGAIN and is_steady(itself)
            yield Secondary(metric, ratio, None, unsteady=unsteady)


def _uncompared(
    subject: Subject, c: Comparison, primary: str, known: Sequence[Secondary], verdict_options: VerdictOptions
) -> Iterator[str]:
    """Metrics without a ratio because a value is 0 or below, though both tests have values above 0."""
    base, other = subject.test(c.base), subject.test(c.other)
    without = {primary, *(s.metric for s in known)}
    for metric in base.columns if verdict_options.secondary is None else verdict_options.secondary:
        if metric not in without and metric in base.columns and metric in other.columns:
            values = [series.sample(metric) for series in (base, other)]
            if all(x.size > 1 and float(x.max()) > 0.0 for x in values) and min(map(np.min, values)) <= 0.0:
                yield metric


def _quieter(subject: Subject, c: Comparison, confidence: float) -> QuieterMetric | None:
    """The candidate metric with the most precise ratio, if much more precise than the compared one; else None."""
    base, other = (with_cpu_time(subject.test(name)) for name in (c.base, c.other))
    found = []
    for metric in CANDIDATES:
        if metric in base.columns and metric in other.columns:
            alone = _or_none(partial(_ratio_as, c, base, other, metric, confidence))
            ratio = alone and alone.among(c.ratio.together)
            if ratio and 0.0 < ratio.half_width <= min(LEAST_KNOWN, c.ratio.half_width / TIMES_NARROWER):
                found.append(QuieterMetric(metric, ratio, _own_noise(subject, c, base, metric, confidence)))
    return min(found, key=lambda each: each.ratio.half_width, default=None)


def _own_noise(subject: Subject, c: Comparison, base: Series, metric: str, confidence: float) -> float | None:
    if c.ratio.method == "unpaired":
        return None
    twins = tuple(map(with_cpu_time, subject.twins))
    again = _against_itself(replace(subject, twins=twins), base, metric)
    level, kind = bonferroni_confidence(confidence, c.ratio.together), _kind(base, metric)
    return _noise(again, c.ratio.count, c.ratio.factor, _of_itself(again, kind), kind, level)


def _ratio_as(c: Comparison, base: Series, other: Series, metric: str, confidence: float) -> Ratio:
    """Ratio of another metric, formed as that of the comparison. Raises ValueError if there is none."""
    if c.ratio.method == "unpaired":
        found = _unpaired_means(base, other, metric, confidence)
        return found or _unpaired_ratio(base, other, metric, confidence)
    pairs = pairs_of(base, other, metric)
    found = _paired_means(pairs, _kind(base, metric), c.ratio.factor, confidence)
    return found or _paired_ratio(pairs, c.ratio.factor, confidence)


def _against_itself(subject: Subject, base: Series, metric: str) -> tuple[Floats, Floats]:
    """A/A pairs: values of the baseline and its twin or, in a duet, of both twins; empty without a twin."""
    twins = [twin for twin in subject.twins if twin.test.startswith(f"{base.test} (again")]
    if not twins:
        return np.empty(0), np.empty(0)
    first, second = twins if len(twins) == 2 else (base, twins[0])
    return paired_values(first, second, metric)


def _round_down(x: float) -> float:
    """The largest of 1, 2, 5 × 10^n at or below x: a round precision."""
    if not 0 < x < math.inf:
        return x
    power = 10.0 ** math.floor(math.log10(x))
    return next((m * power for m in (5, 2, 1) if m * power <= x * (1 + 1e-9)), power)


def _or_none(function: Callable[[], T]) -> T | None:
    try:
        return function()
    except ValueError:
        return None
