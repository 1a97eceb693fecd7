"""Plans from a pilot: trials and time for a difference or the precision of a mean, and what fits a deadline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np

from etude.analysis.comparison import CANDIDATES, TIMES_NARROWER, paired_values, with_cpu_time
from etude.analysis.comparisons import shell_cost
from etude.analysis.subject import Subject, column_of
from etude.analysis.time_breakdown import mean_trial_s, seconds_per_trial
from etude.errors import InputError, UsageError
from etude.results.series import Floats, Series
from etude.stats.intervals import effective_count, t_quantile
from etude.stats.moments import deviation_of
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.planning import (
    MOST,
    Noise,
    likely_factors,
    noise_of_pairs,
    noise_of_trials,
    plan_for_deadline,
    plan_for_effect,
    trials_for_mean,
)

T = TypeVar("T")

USUAL = (0.05, 0.02, 0.01, 0.005)
"""Relative differences, or precisions, that are planned besides the requested one."""


@dataclass(frozen=True)
class PlanTargets:
    """Request for a plan. Shares are relative: 0.01 is 1 %."""

    effect: float | None = None
    precision: float | None = None
    """Relative margin of error of a mean; plans single tests instead of comparisons."""
    power: float = 0.8
    deadline_s: float | None = None
    metric: str | None = None
    tests: tuple[str, ...] = ()
    """Tests to plan; empty: all."""


@dataclass(frozen=True)
class Cost:
    """Cost of one trial of one test."""

    seconds: float | None
    lacking: Literal["", "starts", "times"] = ""
    """Unrecorded times: `starts`: of starts, so that the cost is the elapsed time alone; `times`: all."""


@dataclass(frozen=True)
class Row:
    """Trials and time for one difference or precision."""

    share: float
    trials: int | None
    """Trials of each test; None: more than ten million."""
    likely: tuple[int, int] | None
    """Range of `trials` over the 80 % interval of the pilot's spread."""
    seconds: float | None
    """Time for all tests of the experiment together (s); None if the cost of a trial is unknown."""


@dataclass(frozen=True)
class Fit:
    """Number of trials that fit a deadline."""

    seconds: float
    trials: int | None
    """Trials of each test; None if not even two fit."""
    share: float | None
    """Smallest difference that they detect, or relative margin of error that they reach."""


@dataclass(frozen=True)
class QuieterPlan:
    """A metric that varies far less than the planned one."""

    metric: str
    deviation: float
    """The same as `Noise.deviation`."""
    trials: int
    """Trials of each test that detect the requested difference in this metric."""


@dataclass(frozen=True)
class TrialPlan:
    """A plan for a comparison of two tests, or (`noise` None) for the mean of one."""

    tests: tuple[str, ...]
    """Baseline and other test; or one test."""
    of: int
    """Tests that run in the experiment, which share its time."""
    together: int
    """Number of comparisons judged at once, which share the 5 %."""
    metric: str
    pilot: int
    """Number of pairs, or of trials of the smallest test."""
    sittings: int
    cost: Cost
    noise: Noise | None
    asked: float
    """Requested difference or precision."""
    power: float
    rows: tuple[Row, ...]
    """Rows from the largest share to the smallest; one of them is `asked`."""
    fit: Fit | None = None
    spread: float | None = None
    """Relative standard deviation of the trials, where a mean is planned."""
    worth: float = 1.0
    """Number of independent trials that each trial is worth, where a mean is planned."""
    others: tuple[str, ...] = field(default=())
    """Further tests, which need fewer trials than these two."""
    quieter: QuieterPlan | None = None
    """Another metric of the same pilot that needs far fewer trials; of the elapsed time only."""

    @property
    def row(self) -> Row:
        """Row of the requested share."""
        return next(row for row in self.rows if row.share == self.asked)


def plan_from(subject: Subject, wanted: PlanTargets) -> tuple[TrialPlan, ...]:
    """One plan for a comparison; or, with a precision or for a single test, one for each test's mean.

    Raises:
        InputError: the pilot cannot carry a plan; UsageError: no such metric or test, or a question that does not fit.
    """
    _check(wanted)
    tests = tuple(map(subject.test, wanted.tests)) if wanted.tests else subject.tests
    metric = wanted.metric or subject.asked.primary
    if not tests:
        raise InputError(f"{subject.label}: holds no test; a plan needs a pilot")
    for series in tests:
        column_of(series, metric)
    if wanted.precision is not None:
        return tuple(_mean(subject, series, metric, wanted, wanted.precision) for series in tests)
    if len(tests) > 1:
        return (_comparison(subject, tests, metric, wanted),)
    if wanted.effect is not None:
        raise UsageError(
            f"{subject.label}: --effect is a difference between two tests, and there is only {tests[0].test!r}; "
            "run both in one experiment, or plan its mean with --precision"
        )
    return (_mean(subject, tests[0], metric, wanted, 0.01),)


def _check(wanted: PlanTargets) -> None:
    for option, share in (("--effect", wanted.effect), ("--precision", wanted.precision)):
        if share is not None and not 0.0001 <= share <= 10.0:
            raise UsageError(f"{option} {share:g}: expected a share from 0.01% to 1000%, such as 1%")
    if wanted.effect is not None and wanted.precision is not None:
        raise UsageError("--effect plans a comparison, --precision a mean: give one of them")
    if not 0.05 < wanted.power < 1.0:
        raise UsageError(f"--power {wanted.power:g}: expected a probability above 0.05 and below 1")
    if wanted.deadline_s is not None and not wanted.deadline_s > 0.0:
        raise UsageError("--deadline: expected more than 0 s")


def _comparison(subject: Subject, tests: Sequence[Series], metric: str, wanted: PlanTargets) -> TrialPlan:
    """Plan for the noisiest pair: trials that detect the difference there detect it in the other pairs, too."""
    group = _in_blocks(subject, tests)
    base, other, noise, pilot = _noisiest(subject, group or tests, bool(group), metric)
    cost = _cost(group or (base, other), bool(group))
    if cost.seconds is not None:
        noise = replace(noise, seconds_per_trial=cost.seconds)
    count, asked = len(group or tests), wanted.effect or 0.01
    together = _together(subject, tests)
    rows = [_row(noise, effect, wanted.power, count, cost, together) for effect in _shares(asked)]
    left = tuple(s.test for s in (group or tests) if s not in (base, other))
    return TrialPlan(
        (base.test, other.test),
        count,
        together,
        metric,
        pilot,
        _sessions((base, other)),
        cost,
        noise,
        asked,
        wanted.power,
        tuple(rows),
        _fit(noise, wanted, count, cost, together),
        others=left,
        quieter=_quieter(subject, group or tests, bool(group), metric, noise, asked, wanted.power, together),
    )


def _noisiest(
    subject: Subject, tests: Sequence[Series], paired: bool, metric: str
) -> tuple[Series, Series, Noise, int]:
    """The pair that needs most trials, its noise and the size of its pilot.

    If tests took turns, it is the baseline and another test; else, of three or more, the two that vary most.
    """
    base, *rest = tests
    if paired:
        pairs = [(other, *_pair_noise(subject, base, other, metric)) for other in rest]
        return base, *max(pairs, key=lambda pair: _difficulty(pair[1]))
    if len(rest) == 1:
        return base, rest[0], *_trial_noise(subject, tests, metric)
    singles = [(series, *_trial_noise(subject, [series], metric)) for series in tests]
    (first, noise, pilot), (second, _, _), *_ = sorted(singles, key=lambda each: -_difficulty(each[1]))
    return first, second, noise, pilot


def _quieter(
    subject: Subject,
    tests: Sequence[Series],
    paired: bool,
    metric: str,
    noise: Noise,
    effect: float,
    power: float,
    together: int,
) -> QuieterPlan | None:
    """The metric whose noisiest pair varies least, if it varies far less than the elapsed time; else None. Its noisiest
    pair may be another one."""
    if metric != "elapsed" or subject.shell is not None:
        return None
    quiet = [with_cpu_time(series) for series in tests]
    found = []
    for name in CANDIDATES:
        if any(series.sample(name).size < 2 for series in quiet):
            continue
        try:
            *_, own, _ = _noisiest(subject, quiet, paired, name)
        except InputError:
            continue  # some values are at zero
        plan = plan_for_effect(own, effect, power=power, confidence=bonferroni_confidence(0.95, together))
        if plan is not None and 0.0 < TIMES_NARROWER * own.deviation <= noise.deviation:
            found.append(QuieterPlan(name, own.deviation, plan.trials))
    return min(found, key=lambda each: each.deviation, default=None)


def _in_blocks(subject: Subject, tests: Sequence[Series]) -> tuple[Series, ...]:
    """Tests that ran in common blocks, if two or more did; those of the first group, if several."""
    for names in subject.asked.groups:
        found = tuple(series for series in tests if series.test in names)
        if len(found) > 1:
            return found
    return ()


def _together(subject: Subject, tests: Sequence[Series]) -> int:
    """Comparisons that the verdict on these tests judges at once."""
    names = {series.test for series in tests}
    found = [len(names.intersection(group)) for group in subject.asked.groups]
    return sum(max(0, count - 1) for count in found) or len(tests) - 1


def _pair_noise(subject: Subject, base: Series, other: Series, metric: str) -> tuple[Noise, int]:
    taken = _shell(subject, metric)
    first, second = (values - taken for values in paired_values(base, other, metric))
    what = f"{metric} of {base.test} and {other.test}"
    return _told(subject, what, lambda: noise_of_pairs(first, second, seconds_per_trial=1.0)), first.size


def _trial_noise(subject: Subject, tests: Sequence[Series], metric: str) -> tuple[Noise, int]:
    samples = [series.sample(metric) - _shell(subject, metric) for series in tests]
    what = f"{metric} of {' and '.join(series.test for series in tests)}"
    noise = _told(subject, what, lambda: noise_of_trials(*samples, seconds_per_trial=1.0))
    return noise, min(sample.size for sample in samples)


def _mean(subject: Subject, series: Series, metric: str, wanted: PlanTargets, asked: float) -> TrialPlan:
    values = series.sample(metric) - _shell(subject, metric)
    what = f"{metric} of {series.test}"
    cost = _cost_alone(subject, series)
    if values.size and bool(np.any(values <= 0.0)):
        raise InputError(
            f"{subject.label}: {what}: has values at or below 0 (the smallest is {values.min():g})"
        )
    rows = []
    for share in _shares(asked):
        count = _told(subject, what, lambda share=share: trials_for_mean(values, share))  # type: ignore[misc]
        ends = [trials_for_mean(values, share, factor=end) for end in likely_factors(values.size - 1)]
        likely = (ends[0], ends[1] or MOST) if count is not None and ends[0] is not None else None
        rows.append(Row(share, count, likely, _times(count, cost)))
    mean = float(values.mean())
    fit = None
    if wanted.deadline_s is not None and cost.seconds:
        count = int(wanted.deadline_s / cost.seconds + 1e-9)
        reached = _half_width(values, count) / mean if count >= 2 else None
        fit = Fit(wanted.deadline_s, count if count >= 2 else None, reached)
    return TrialPlan(
        (series.test,),
        1,
        1,
        metric,
        int(values.size),
        _sessions((series,)),
        cost,
        None,
        asked,
        wanted.power,
        tuple(rows),
        fit,
        deviation_of(values) / mean,
        effective_count(values) / values.size,
    )


def _half_width(values: Floats, count: int) -> float:
    """Margin of error of a mean at 95 % after `count` trials like these."""
    spread = deviation_of(values) / math.sqrt(effective_count(values) / values.size)
    return t_quantile(0.95, count - 1) * spread / math.sqrt(count)


def _row(noise: Noise, effect: float, power: float, tests: int, cost: Cost, together: int) -> Row:
    plan = plan_for_effect(noise, effect, power=power, confidence=bonferroni_confidence(0.95, together))
    if plan is None:
        return Row(effect, None, None, None)
    return Row(effect, plan.trials, plan.likely_trials, _times(plan.trials * tests, cost))


def _fit(noise: Noise, wanted: PlanTargets, tests: int, cost: Cost, together: int) -> Fit | None:
    if wanted.deadline_s is None or cost.seconds is None:
        return None
    hours, confidence = wanted.deadline_s / 3600.0 * 2.0 / tests, bonferroni_confidence(0.95, together)
    plan = plan_for_deadline(noise, hours, power=wanted.power, confidence=confidence)
    if plan is None:
        return Fit(wanted.deadline_s, None, None)
    return Fit(wanted.deadline_s, plan.trials, plan.effect)


def _cost(tests: Sequence[Series], together: bool) -> Cost:
    """Mean cost of a trial. `together`: the tests took turns; else each ran on its own."""
    parts = [seconds_per_trial(part) for part in ([tests] if together else [[each] for each in tests])]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts):
        return Cost(sum(known) / len(known))
    seconds = [mean_trial_s(series) for series in tests]
    if min(seconds) > 0.0:
        return Cost(sum(seconds) / len(seconds), "starts")
    return Cost(None, "times")


def _cost_alone(subject: Subject, series: Series) -> Cost:
    """Cost of a trial of one test: its own time, plus the time around any trial if it took turns with others."""
    group = _in_blocks(subject, subject.tests)
    cost = _cost(group if series in group else (series,), series in group)
    if series not in group or cost.seconds is None or cost.lacking:
        return cost
    own = [mean_trial_s(each) for each in group]
    return Cost(max(0.0, cost.seconds - sum(own) / len(own)) + mean_trial_s(series))


def _times(count: int | None, cost: Cost) -> float | None:
    return None if count is None or cost.seconds is None else count * cost.seconds


def _shell(subject: Subject, metric: str) -> float:
    """Time that `--shell` subtracts from each value (s); 0 for other metrics than elapsed."""
    return shell_cost(subject)[0] if metric == "elapsed" else 0.0


def _sessions(tests: Sequence[Series]) -> int:
    found = [np.unique(series.sittings[series.kept]).size for series in tests if series.sittings is not None]
    return max(found, default=1)


def _difficulty(noise: Noise) -> float:
    return noise.deviation / math.sqrt(noise.worth)


def _shares(asked: float) -> list[float]:
    return sorted({*USUAL, asked}, reverse=True)


def _told(subject: Subject, what: str, function: Callable[[], T]) -> T:
    """Result of `function`; its ValueError becomes an InputError that names the values and the remedy."""
    try:
        return function()
    except ValueError as error:
        if "pilot of" not in str(error):
            raise InputError(f"{subject.label}: {what}: {error}") from None
        raise InputError(
            f"{subject.label}: {what}: {error}; run a pilot of 10 trials, as with --trials 10"
        ) from None
