"""Whether what is believed is enough for what was promised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude.peak.policies.belief.curves import Floats
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import Belief, posterior_of
from etude.peak.policies.belief.second_looks import CALM
from etude.peak.task import Task, Trial

NEAR = 3.0
"""A trial tells of the answer's neighbourhood when its load is within so many times `within` of it."""
LEAST_TRIALS = 2
MISSED, MISSED_BY = 0.05, math.log(1.5)
"""The probability that stalls have not shown, and how much slower answers are on average with them, in logs."""
REGION_DOUBT = 0.3
"""Of the doubt that is allowed, what the belief may have of a region: it is narrower than shapes agree on."""
ABOUT = math.log(2.0)
"""Log by which a reading may be off the limit and still be near it."""
ABLE = 0.8
"""What a generator could offer is known well enough from this share of what it could not on."""


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """The best answer, and how far it may be trusted."""

    rate: float
    confidence: float
    met: bool


def is_target_met(task: Task, belief: Belief, known: Sequence[Evidence]) -> TargetCheck:
    """Of the task's promise."""
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
    """As `is_target_met`, but of all rates that meet the target the one that is best where stalls were missed, too.

    Rare windows carry much of the mean of a server that stalls. Most samples miss them, so that the answer is too high
    more often than too low. Where the belief is narrower than the target, a lower rate is as good without stalls.
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
    """Of whole loads: the promise is also met by the highest that is fine, when the next one is too much."""
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
    """The bound that trials give where `rate` is not theirs but the prior's: the highest load that was fine and inf, or
    0 and the lowest that was too much. None where loads on both sides of it, or near it, were measured."""
    highest, lowest = max(each.load for each in known), min(each.load for each in known)
    more = max(1 + task.within, 1 + 1 / highest if task.whole else 0.0)
    near = bool(task.seed_trials)  # a prediction that counts as a trial is one near the limit
    if rate > more * highest or (not near and all(each.value < -ABOUT for each in known)):
        fine = max((each.load for each in known if each.value <= 0), default=0.0)
        return fine, min((e.load for e in known if e.load > fine and e.value > 0), default=math.inf)
    if rate < lowest / more or (not near and all(each.value > ABOUT for each in known)):
        return 0.0, min((each.load for each in known if each.value > 0), default=math.inf)
    return None


def reach(task: Task, trials: Sequence[Trial]) -> float:
    """The highest load that can be offered: the task's, or less where what was asked for was not offered."""
    short = min((trial.load for trial in trials if not trial.offered), default=math.inf)
    able = max(
        (trial.load for trial in trials if trial.of_server and trial.load < short), default=task.lowest
    )
    if short == math.inf:
        return task.highest
    return able if able >= ABLE * short else math.sqrt(able * short)
