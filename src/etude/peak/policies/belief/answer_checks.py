"""Checks of the posterior against the target, and before an answer is trusted.

Each of the latter costs a trial and is made only if it can change the answer:

1. *Hysteresis*: a server may stay slow for a while after an overload (by a factor of at most `MAX_SLOWDOWN`), so that
   its peak looks too low. Unless the answer would hold anyway, the highest load that passed before the overload is
   offered again and has to be as fast as before; if it is not, it is offered once more: one slow trial may be chance.
2. *A lower load slower than a higher one*: both are repeated.
3. *No clearly failing load above the answer*: one well above it has to fail, or a hump may have brushed the limit.
   A load further above is no evidence: a hump may end before it.
4. *Below the lowest load*: a higher load may pass.
5. *Requests that failed in an overload*: a load well above may be answered even less.
6. *Too few windows* of passing loads (`MIN_CALM_WINDOWS`): one of these is repeated, to show stalls and hysteresis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude.peak.diagnostics import DOUBT, SURE, by_load, conflict, hysteresis_pair, overloads
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import Belief, posterior_of
from etude.peak.task import Task, Trial, TrialRequest

MAX_SLOWDOWN = math.log(3.0)
"""Log of the maximum slowdown that an overload may leave in a server."""
ROBUST_PROBABILITY = 0.8
"""Probability that the answer must keep under that slowdown to stand without a check."""
CLEAR_OVERLOAD = math.log(2.5)
"""Log SLO ratio that is clearly beyond the limit."""
NEAR_PASSING = math.log(0.5)
"""Log SLO ratio of a load that may pass by far, or nearly fail."""
ABOVE, FURTHER = 1.5, 1.9
"""Multiples of the answer that count as well above it, and as too far above."""
SHED = 0.02
"""Share of failing requests above which an overload sheds load instead of queueing it."""
CALM = math.log(1.1)
"""Log SLO ratio above which windows vary anyway, and stalls do not show."""
MIN_CALM_WINDOWS = 36
"""Minimum windows of trials without overload, in all, that show rare stalls and hysteresis."""
LOOK_WINDOWS = 6
"""Minimum windows of a check, so that two SLO ratios can be compared."""


def required_check(task: Task, known: Sequence[Evidence], rate: float, most: float) -> TrialRequest | None:
    """The trial needed before `rate` can be the answer, at a load of at most `most`; None if none is needed."""
    # A predicted peak is no hump that brushes the limit.
    above = None if task.seed_spread is not None else _above(task, known, rate, most)
    return above or _recovered(task, known, rate)


def shedding_check(task: Task, trials: Sequence[Trial], rate: float, most: float) -> TrialRequest | None:
    """A load well above the answer, if an overload failed requests: throughput may fall below that at the peak."""
    load = min(ABOVE * rate, most)
    fails = any(
        trial.limited == "server" and any(window.failed > SHED * window.offered for window in trial.windows)
        for trial in trials
    )
    if not fails or load <= 1.05 * rate or any(trial.load >= 0.9 * load for trial in trials):
        return None
    return task.request(task.rounded(load), "whether still fewer are answered well above")


def hysteresis_check(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """An immediate check for hysteresis, if a trial after an overload neither passes despite a slowdown nor fails
    without one."""
    bad = overloads(known)
    if not bad or not any(NEAR_PASSING < e.value < CLEAR_OVERLOAD and e.order > bad[0].order for e in known):
        return None
    return _as_before(task, known)


def slowdown_check(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """Another trial of a load that was slower in its only trial after an overload."""
    found = hysteresis_pair(known)
    if found is None or found[1].trials > 1:
        return None
    return task.request(found[1].load, "it was slower after the overload: once more")


def calm_windows(known: Sequence[Evidence]) -> int:
    """Number of windows in which a stall would have shown."""
    return sum(each.windows for each in known if each.value < CALM)


def rising_evidence(known: Sequence[Evidence]) -> list[Evidence]:
    """Evidence without loads below which a higher load was significantly faster: the peak is searched above them."""
    left = list(known)
    repeated = {each.load for each in by_load(known) if each.trials > 1}
    while (pair := conflict([e for e in left if e.load in repeated], SURE)) is not None:
        left = [each for each in left if each.load > pair[0].load]
    return left


def recheck_baseline(known: Sequence[Evidence], load: float) -> Evidence | None:
    """Evidence that a new trial of this load is compared with: its last trial before the first overload, if there is
    none after it."""
    bad = overloads(known)
    if not bad:
        return None
    before = [each for each in known if each.load == load and each.order < bad[0].order]
    after = [each for each in known if each.load == load and each.order > bad[0].order]
    return before[-1] if before and not after else None


def _recovered(task: Task, known: Sequence[Evidence], rate: float) -> TrialRequest | None:
    bad = overloads(known)
    if (
        task.promise == "rate"
        and bad
        and calm_windows(known) >= MIN_CALM_WINDOWS
        and _holds_even_so(task, known, rate, bad[0].order)
    ):
        return None
    return _as_before(task, known)


def _as_before(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    bad = overloads(known)
    if not bad or bad[0].order == known[-1].order:
        return None
    before = [each for each in known if each.order < bad[0].order and each.value < 0]
    if not before:
        return None
    target = max(before, key=lambda each: (each.load, each.order))
    if any(each.load == target.load and each.order > bad[0].order for each in known):
        return None
    return task.request(target.load, "whether the overload has left its mark")


def _holds_even_so(task: Task, known: Sequence[Evidence], rate: float, since: int) -> bool:
    slack = [replace(e, slack=MAX_SLOWDOWN if e.order > since else 0.0) for e in known]
    return float(posterior_of(task, slack).near(rate, task.within)) >= ROBUST_PROBABILITY


def non_monotone_check(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """The next trial of a pair of loads whose lower one was slower, while either has only one trial."""
    pair = conflict(known, DOUBT)
    if pair is None:
        return None
    low, high = pair
    for each in (high, low):
        if each.trials < 2:
            slower, quicker = task.load_text(low.load), task.load_text(high.load)
            return task.request(each.load, f"{slower} was slower than {quicker}: once more")
    return None


def _above(task: Task, known: Sequence[Evidence], rate: float, most: float) -> TrialRequest | None:
    higher = [each for each in known if rate < each.load <= FURTHER * rate]
    if any(each.value >= CLEAR_OVERLOAD for each in higher):
        return None
    well = [each for each in higher if each.load >= 0.9 * ABOVE * rate]
    load = min(ABOVE * rate, most)
    if (
        len(well) >= 2
        or any(each.value >= 2 * math.sqrt(each.within) for each in well)
        or load <= 1.05 * rate
    ):
        return None
    return task.request(task.rounded(load), "whether it is too much well above as well")


NEAR = 3.0
"""A trial is near the answer if its load is within this many times `within` of it."""
LEAST_TRIALS = 2
MISSED, MISSED_BY = 0.05, math.log(1.5)
"""Probability of undetected stalls, and their effect on the mean response, in logs."""
REGION_DOUBT = 0.3
"""Fraction of the error budget that the posterior may use for a region target: it is narrower than shapes agree on."""
NEAR_LIMIT = math.log(2.0)
"""Log SLO ratio up to which a trial counts as near the limit."""
OFFERED_RATIO = 0.8
"""Ratio of the highest offered to the lowest not offered load above which the generator's maximum is known well
enough."""


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """The best answer and its confidence."""

    rate: float
    confidence: float
    met: bool


def is_target_met(task: Task, belief: Belief, known: Sequence[Evidence]) -> TargetCheck:
    """Check of the task's target."""
    if task.promise == "rate":
        rate, confidence = belief.best_rate(task.within)
    else:
        rate, confidence = belief.best_region(task.width)
    if task.whole:
        rate, confidence = _whole(task, belief, rate, confidence)
    near = sum(abs(math.log(each.load / rate)) <= max(NEAR * task.within, 1.01 / rate) for each in known)
    wanted = task.confidence if task.promise == "rate" else 1 - REGION_DOUBT * (1 - task.confidence)
    return TargetCheck(rate, confidence, confidence >= wanted and near + task.seed_trials >= LEAST_TRIALS)


def answer_of(task: Task, belief: Belief, known: Sequence[Evidence]) -> TargetCheck:
    """Same as `is_target_met`, but of all rates that meet the target, the one that is also best if stalls were missed.

    Rare windows dominate the mean of a server that stalls. Most samples miss them, so that answers are more often too
    high than too low. If the posterior is narrower than the target, a lower rate is as good without stalls.
    """
    now = is_target_met(task, belief, known)
    if not now.met or task.promise != "rate" or task.whole:
        return now
    with_stalls = [replace(e, value=e.value + MISSED_BY) if e.value < CALM else e for e in known]
    rates = np.exp(belief.log_peak)
    usual, stalled = (each.near(rates, task.within) for each in (belief, posterior_of(task, with_stalls)))
    meets = (usual >= task.confidence) & (rates <= now.rate)
    if not meets.any():
        return now
    best = int(np.argmax(np.where(meets, (1 - MISSED) * usual + MISSED * stalled, 0.0)))
    return replace(now, rate=float(rates[best]), confidence=float(usual[best]))


def _whole(task: Task, belief: Belief, rate: float, confidence: float) -> tuple[float, float]:
    """Whole-number loads: the target is also met by the highest passing load, if the next one fails."""
    rates = [float(max(math.floor(rate) + off, 1)) for off in (0, 1)]
    one = {each: float(belief.below(each + 1) - belief.below(each)) for each in rates}
    if task.promise == "rate":
        one = {each: max(one[each], float(belief.near(each, task.within))) for each in rates}
    best = max(one, key=lambda each: one[each])
    return best, one[best]


def unbracketed(task: Task, known: Sequence[Evidence], rate: float) -> tuple[float, float] | None:
    """The bound given by the trials if `rate` comes from the prior: the highest passing load and inf, or 0 and the
    lowest failing one. None if loads on both sides of it, or near it, were measured."""
    highest, lowest = max(each.load for each in known), min(each.load for each in known)
    more = max(1 + task.within, 1 + 1 / highest if task.whole else 0.0)
    near = bool(task.seed_trials)  # a prediction that counts as a trial is one near the limit
    if rate > more * highest or (not near and all(each.value < -NEAR_LIMIT for each in known)):
        fine = max((each.load for each in known if each.value <= 0), default=0.0)
        return fine, min((e.load for e in known if e.load > fine and e.value > 0), default=math.inf)
    if rate < lowest / more or (not near and all(each.value > NEAR_LIMIT for each in known)):
        return 0.0, min((each.load for each in known if each.value > 0), default=math.inf)
    return None


def highest_offerable_load(task: Task, trials: Sequence[Trial]) -> float:
    """Highest load that can be offered: the task's, or less if a requested load was not offered."""
    short = min((trial.load for trial in trials if not trial.offered), default=math.inf)
    able = max(
        (trial.load for trial in trials if trial.of_server and trial.load < short), default=task.lowest
    )
    if short == math.inf:
        return task.highest
    return able if able >= OFFERED_RATIO * short else math.sqrt(able * short)
