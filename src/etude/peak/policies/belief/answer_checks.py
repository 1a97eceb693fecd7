"""Checks before an answer is trusted. Each check costs a trial and is made only if it can change the answer.

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
from dataclasses import replace

from etude.peak.diagnostics import DOUBT, SURE, by_load, conflict, hysteresis_pair, overloads
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import posterior_of
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
    load = float(round(load)) if task.whole else load
    return TrialRequest(load, task.runlength_s, "whether still fewer are answered well above")


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
    return TrialRequest(found[1].load, task.runlength_s, "it was slower after the overload: once more")


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
    return TrialRequest(target.load, task.runlength_s, "whether the overload has left its mark")


def _holds_even_so(task: Task, known: Sequence[Evidence], rate: float, since: int) -> bool:
    slack = [replace(e, slack=MAX_SLOWDOWN if e.order > since else 0.0) for e in known]
    belief = posterior_of(task, slack)
    held = belief.below(rate / (1 - task.within)) - belief.below(rate / (1 + task.within))
    return float(held) >= ROBUST_PROBABILITY


def non_monotone_check(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """The next trial of a pair of loads whose lower one was slower, while either has only one trial."""
    pair = conflict(known, DOUBT)
    if pair is None:
        return None
    low, high = pair
    for each in (high, low):
        if each.trials < 2:
            slower, quicker = task.load_text(low.load), task.load_text(high.load)
            return TrialRequest(
                each.load,
                task.runlength_s,
                f"{slower} was slower than {quicker}: once more",
            )
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
    return TrialRequest(
        float(round(load)) if task.whole else load,
        task.runlength_s,
        "whether it is too much well above as well",
    )
