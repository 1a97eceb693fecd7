"""Evidence for a bound: estimates from results on disk, and why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from etude.analysis import gate
from etude.analysis.comparison import Comparison
from etude.analysis.comparisons import compare_tests
from etude.analysis.load_subject import read_ours
from etude.analysis.subject import Subject, printed_by, subject_of_trials
from etude.analysis.verdict_options import VerdictOptions
from etude.claims.bound import Bound
from etude.claims.claims_file import FEW, Experiment
from etude.errors import UsageError
from etude.peak.search_store import SearchStore, stored_answer
from etude.results.series import Series
from etude.results.trials import read_trials
from etude.stats.intervals import effective_count
from etude.stats.moments import deviation_of, mean_of
from etude.stats.ratio import Ratio
from etude.stats.sequential import NOTHING_KNOWN, Estimate, Evidence, evidence_within
from etude.stats.trend import slope_interval
from etude.surface.map_store import MapStore, surface_result_of
from etude.surface.summary import optimum
from etude.surface.surface_result import z_of
from etude.units.formatting import counted

Lacking = Literal[
    "",
    "not measured",
    "few",
    "unit",
    "noise",
    "other work",
    "varying output",
    "no interval",
    "no rate",
    "words",
    "early",
]

Printed = Mapping[str, frozenset[str]]
"""Digests of what each test printed."""


@dataclass(frozen=True)
class Finding:
    """Evidence of results for or against one bound."""

    bound: Bound
    estimate: Estimate | None
    evidence: Evidence
    lacking: Lacking = ""
    """Reason why nothing is decided whatever the interval; empty: none."""
    detail: str = ""
    """Name, number or unit that belongs to `lacking`."""


def findings(
    place: Path, experiment: Experiment, bounds: tuple[Bound, ...], margin: float, *, last: bool = True
) -> tuple[Finding, ...]:
    """The finding on each bound from the results of its experiment. last: all planned trials are made: a trend over
    them is known only then.

    Raises:
        InputError: the results cannot be read.
    """
    if experiment.kind == "peak":
        return tuple(_of_peak(place, bound, margin) for bound in bounds)
    if experiment.kind == "surface":
        return tuple(_of_best(place, bound, margin) for bound in bounds)
    if not (place / "experiment.json").exists():  # in Auto-pilot's format
        subject, printed = read_ours(place), {}
    else:
        trials = read_trials(place)
        subject, printed = subject_of_trials(trials), printed_by(trials)
    bounds = tuple(each for bound in bounds for each in _written_out(subject, bound))
    found = [_of_trials(subject, printed, experiment, bound, margin) for bound in bounds]
    return tuple(
        replace(f, evidence=NOTHING_KNOWN, lacking="early") if _is_early(f, last) else f for f in found
    )


def _is_early(found: Finding, last: bool) -> bool:
    return found.bound.of == "trend" and not last and not found.lacking


def _written_out(subject: Subject, bound: Bound) -> Iterator[Bound]:
    """The bound; of `expect` one for each test of a script that has an EXPECT."""
    if bound.of != "expect":
        yield bound
        return
    entries = [e for e in (subject.experiment or {}).get("tests", ()) if e.get("expect")]
    chosen = [e for e in entries if not bound.tests or e.get("name") in bound.tests]
    yield from (bound_of_expect(subject, str(e["name"]), str(e["expect"])) for e in chosen)
    if not chosen:
        yield bound


def bound_of_expect(subject: Subject, test: str, expect: str) -> Bound:
    """The EXPECT of a test as a bound; one of no kind that is judged, if it is none, or is about a difference."""
    text = f"{test}: {expect}"
    try:
        told = gate.parse_bound(expect.strip().rstrip("."))
    except UsageError:
        return Bound(text, "expect", "", (test,))
    low, high = (told.limit, math.inf) if told.above else (-math.inf, told.limit)
    if told.of == "value":
        return Bound(text, "mean", told.metric, (test,), low, high, told.unit)
    base = next((group[0] for group in subject.asked.groups if test in group[1:]), None)
    if told.of == "difference" or base is None:
        return Bound(text, "expect", told.metric, (test,))
    return Bound(text, "ratio", told.metric, (base, test), max(low, 0.0), high)


def nothing(bound: Bound, lacking: Lacking, detail: str = "") -> Finding:
    """A bound of which nothing is known."""
    return Finding(bound, None, NOTHING_KNOWN, lacking, detail)


def _of_trials(
    subject: Subject, printed: Printed, experiment: Experiment, bound: Bound, margin: float
) -> Finding:
    if bound.of == "expect":
        return nothing(bound, "words" if bound.tests else "not measured", "EXPECT")
    metric = bound.metric or (experiment.primary if experiment.extends else subject.asked.primary)
    known = {series.test: series for series in subject.tests}
    names = bound.tests or tuple(known)[:1]
    for name in names:
        if name not in known:
            return nothing(bound, "not measured", name)
        if metric not in known[name].columns or known[name].sample(metric).size == 0:
            return nothing(bound, "not measured", metric)
    series = [known[name] for name in names]
    if bound.of == "mean":
        return _of_mean(series[0], metric, bound, margin)
    if bound.of == "trend":
        return _of_trend(series[0], metric, bound)
    if experiment.guards_output and (other := _other_work(subject, printed, series)) is not None:
        return Finding(
            bound, None, NOTHING_KNOWN if other == "varying output" else Evidence(1.0, 0.0), other, names[1]
        )
    return _of_ratio(subject, series, metric, bound, margin)


def _of_mean(series: Series, metric: str, bound: Bound, margin: float) -> Finding:
    values, unit = series.sample(metric), series.columns[metric].unit
    if (bound.unit or "1") != unit:
        return nothing(bound, "unit", unit)
    if values.size < FEW:
        return nothing(bound, "few", counted(int(values.size), "trial"))
    worth = effective_count(values)
    error = deviation_of(values) / math.sqrt(worth)
    degrees = max(1.0, worth - 1.0)
    found = Estimate(mean_of(values), error, error, degrees, False, int(values.size), unit)
    return Finding(bound, found, evidence_within(found, bound.low, bound.high, margin))


def _of_trend(series: Series, metric: str, bound: Bound) -> Finding:
    values = series.sample(metric)
    slope, centre = slope_interval(values), abs(float(np.median(values)))
    if values.size < FEW or slope is None:
        return nothing(bound, "few", counted(int(values.size), "trial"))
    if centre == 0.0:
        return nothing(bound, "no interval", metric)
    over, z = (values.size - 1) / centre, z_of(0.95)
    below, above = (slope.per_trial - slope.low) * over / z, (slope.high - slope.per_trial) * over / z
    found = Estimate(slope.per_trial * over, below, above, math.inf, False, int(values.size), "1")
    return Finding(bound, found, evidence_within(found, bound.low, bound.high))


def _of_ratio(subject: Subject, series: list[Series], metric: str, bound: Bound, margin: float) -> Finding:
    base, other = series
    made, without = compare_tests(subject, metric, VerdictOptions(reference=base.test))
    found = next((c for c in made if c.other == other.test), None)
    if found is None:
        reason = next((each.reason for each in without if other.test in each.tests), "")
        return nothing(bound, "no interval", reason or metric)
    trials = found.trials if found.trials is not None else found.ratio.count
    if trials < FEW:
        return nothing(bound, "few", counted(trials, "pair" if found.ratio.method == "paired" else "trial"))
    estimate = estimate_of_ratio(found.ratio)
    return _as_claimed(
        Finding(bound, estimate, evidence_within(estimate, bound.low, bound.high, margin)), found
    )


def estimate_of_ratio(ratio: Ratio) -> Estimate:
    """The estimate of a ratio, without the factor of its stop rule: looks are planned here."""
    error = ratio.standard_error / ratio.factor
    if not math.isfinite(error):  # of values that do not vary, whose interval is the ratio itself
        error = 0.0 if ratio.low == ratio.high else math.inf
    return Estimate(
        ratio.ratio, error, error, ratio.degrees if ratio.degrees >= 1.0 else 1.0, True, ratio.count
    )


def _as_claimed(finding: Finding, c: Comparison) -> Finding:
    """The finding, without a decision that only a difference within the A/A noise would carry."""
    needs_difference = not finding.bound.low <= 1.0 <= finding.bound.high
    if c.within_noise and needs_difference == finding.evidence.towards:
        return Finding(
            finding.bound, finding.estimate, NOTHING_KNOWN, "noise", f"{100 * (c.floor or 0.0):.2g} %"
        )
    return finding


def _other_work(subject: Subject, printed: Printed, series: Sequence[Series]) -> Lacking | None:
    """The reason why two tests did other work, by their endings and all outputs; None if there is none."""
    base, other = (each.test for each in series)
    if any(
        w.what == "ending" and w.test in (base, other) and w.base in (base, other, "") for w in subject.work
    ):
        return "other work"
    of_base, of_other = (printed.get(name, frozenset()) for name in (base, other))
    if of_base == of_other and len(of_base) <= 1:
        return None
    return "varying output" if len(of_base) > 1 else "other work"


def _of_peak(place: Path, bound: Bound, margin: float) -> Finding:
    """The answer of a search; its interval's tails are taken as normal on the logarithm."""
    kept = SearchStore(place)
    answer, confidence = stored_answer(kept), kept.task.confidence
    if answer.rate is None:
        return _of_limits(bound, answer.low, answer.high, confidence, answer.why)
    found = _from_interval(answer.rate, answer.low, answer.high, confidence, len(kept.trials()), "1/s")
    return Finding(bound, found, evidence_within(found, bound.low, bound.high, margin))


def _of_limits(bound: Bound, low: float, high: float, confidence: float, why: str) -> Finding:
    """Evidence of an answer without a rate: the peak lies above `low`, or below `high`."""
    p = 1.0 - confidence
    inside = bound.low <= low and (math.isinf(bound.high) or high <= bound.high)
    outside = low > bound.high or high < bound.low
    return Finding(bound, None, Evidence(p if inside else 1.0, p if outside else 1.0), "no rate", why)


def _of_best(place: Path, bound: Bound, margin: float) -> Finding:
    """The best response of a surface; its interval is widened for the choice among all known configurations."""
    mapped = surface_result_of(MapStore(place))
    best = optimum(mapped)
    if best is None or best.best.value is None:
        return nothing(bound, "no rate", str(place))
    if bound.unit is not None and bound.unit != mapped.unit:
        return nothing(bound, "unit", mapped.unit)
    known = int(mapped.filled.known.sum())
    confidence = mapped.confidence
    found = _from_interval(best.best.value, best.best.low, best.best.high, confidence, known, mapped.unit)
    wider = z_of(confidence, known) / z_of(confidence)
    found = replace(found, low_error=found.low_error * wider, high_error=found.high_error * wider)
    return Finding(bound, found, evidence_within(found, bound.low, bound.high, margin))


def _from_interval(
    value: float, low: float, high: float, confidence: float, count: int, unit: str
) -> Estimate:
    z = z_of(confidence)
    below = math.log(value / low) / z if low > 0.0 else math.inf
    above = math.log(high / value) / z if math.isfinite(high) else math.inf
    return Estimate(value, below, above, math.inf, True, count, unit)
