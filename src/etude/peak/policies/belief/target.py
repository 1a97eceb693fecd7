"""Check of the posterior against the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude.peak.policies.belief.answer_checks import CALM
from etude.peak.policies.belief.curves import Floats
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import Belief, posterior_of
from etude.peak.task import Task, Trial

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
    usual, stalled = (_within(task, each, rates) for each in (belief, posterior_of(task, with_stalls)))
    meets = (usual >= task.confidence) & (rates <= now.rate)
    if not meets.any():
        return now
    best = int(np.argmax(np.where(meets, (1 - MISSED) * usual + MISSED * stalled, 0.0)))
    return replace(now, rate=float(rates[best]), confidence=float(usual[best]))


def _within(task: Task, belief: Belief, rates: Floats) -> Floats:
    """P(|rate/λ* - 1| <= within) of each rate."""
    return belief.below(rates / (1 - task.within)) - belief.below(rates / (1 + task.within))


def _whole(task: Task, belief: Belief, rate: float, confidence: float) -> tuple[float, float]:
    """Whole-number loads: the target is also met by the highest passing load, if the next one fails."""
    rates = [float(max(math.floor(rate) + off, 1)) for off in (0, 1)]
    one = {each: float(belief.below(each + 1) - belief.below(each)) for each in rates}
    if task.promise == "rate":
        spread = {
            r: float(belief.below(r / (1 - task.within)) - belief.below(r / (1 + task.within))) for r in rates
        }
        one = {each: max(one[each], spread[each]) for each in rates}
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
