"""A search that assumes only that responses grow with the load.

Each load passes or fails by Student's test on its trials (or on the windows of a single trial). Loads grow until one
fails, then the bracket is halved in log load until its ends are near enough, with at least two trials at either end.
The answer is the geometric middle. For the *region* target, halving continues until the whole confidence interval of a
load's mean is in the region.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from etude.peak import diagnostics
from etude.peak.diagnostics import not_bracketed
from etude.peak.policies.belief.evidence import (
    CAP,
    Evidence,
    between_trial_variance,
    evidence_of,
    trials_by_load,
    window_evidence,
)
from etude.peak.task import Answer, Finding, Task, Trial, TrialRequest
from etude.peak.window import Window

GROWTH = 2.0
LEAST_WINDOWS = 3
CLEAR = 0.98
"""Confidence with which a load passes or fails."""
GUESS = 6
"""Prior weight, in trials, of the windows' variance as the between-trial variance."""
MOST_TRIALS = 6
"""Trials at a load after which the mean decides even if its side is not clear."""
LEAST_TRIALS = 2
MOST_BLIND = 3
"""Number of trials at one load without information on the server that ends the search."""


class Bracket:
    """The policy (`policy.Policy`)."""

    name = "bracket"

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        known = evidence_of(task, trials)
        if not known:
            return _blind(task, trials)
        inside = _in_region(task, known)
        if inside is not None:
            return _answer(task, trials, known, inside, True, "")
        low, high = sides(task, known)
        if task.promise == "rate" and high / max(low, 1e-12) <= tolerance(task):
            for end in (low, high):
                if _count(known, end) < LEAST_TRIALS:
                    return task.request(end, "an end of the bracket, once more")
            return _answer(task, trials, known, math.sqrt(low * high), True, "")
        ended = _bounds(task, trials, known, low, high)
        return ended or task.request(_next(task, known, low, high), "halves the bracket")

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """True when its side is clear."""
        if len(windows) < LEAST_WINDOWS:
            return False
        now = window_evidence(task.goal, request.load, windows, len(trials))
        quantile = 1.1 * float(special.stdtrit(GUESS, CLEAR))
        return now is not None and abs(now.value) >= quantile * math.sqrt(now.within)

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        known = evidence_of(task, trials)
        low, high = sides(task, known)
        rate = math.sqrt(low * high) if low > 0 and high < math.inf else None
        return _answer(task, trials, known, rate, False, why)


def tolerance(task: Task) -> float:
    """Ratio of a bracket's ends at which its middle is within `within` of both, with a margin."""
    return math.exp(1.8 * math.log1p(task.within))


def side(task: Task, group: Sequence[Evidence]) -> int:
    """+1: fails; -1: passes; 0: not clear yet."""
    tau = between_trial_variance(group)
    mean = float(np.mean([each.value for each in group]))
    if len(group) >= MOST_TRIALS:
        return 1 if mean > 0 else -1
    weights = np.array([1 / (each.within + tau) for each in group])
    values = np.array([each.value for each in group])
    mean = float(weights @ values / weights.sum())
    # Student's test on the trials, with their windows' variance as a prior of `GUESS` trials.
    told = len(group) - 1
    excess = (float(weights @ (values - mean) ** 2) + GUESS) / (told + GUESS)
    quantile = float(special.stdtrit(told + GUESS, 1 - (1 - CLEAR) / 2))
    spread = math.sqrt(max(excess, 1.0) / float(weights.sum()))
    return 0 if abs(mean) < quantile * spread else int(math.copysign(1, mean))


def sides(task: Task, known: Sequence[Evidence]) -> tuple[float, float]:
    """The highest passing load below the lowest failing one, and that one; 0 and inf if there is none."""
    found = {load: side(task, group) for load, group in sorted(trials_by_load(known).items())}
    high = min((load for load, which in found.items() if which > 0), default=math.inf)
    low = max((load for load, which in found.items() if which < 0 and load < high), default=0.0)
    return low, high


def _next(task: Task, known: Sequence[Evidence], low: float, high: float) -> float:
    unclear = sorted({e.load for e in known if low < e.load < high})
    if unclear:
        wanted = _around(task, known, unclear, low, high)
    elif high == math.inf:
        wanted = GROWTH * low
    else:
        wanted = math.sqrt(low * high) if low else high / GROWTH
    return task.rounded(min(max(wanted, task.lowest), task.highest))


def _around(
    task: Task, known: Sequence[Evidence], unclear: Sequence[float], low: float, high: float
) -> float:
    """Next load while some are unclear. Loads near the limit never get clear; those half a bracket's tolerance off do
    after some trials.

    The limit is estimated by a line through nearby SLO ratios: only the choice of the next load depends on it.
    """
    near = [
        each for each in known if each.load in unclear or (each.load in (low, high) and abs(each.value) < CAP)
    ]
    logs = np.log([each.load for each in near])
    middle = float(np.mean(np.log(unclear)))
    if len(set(logs)) > 1:
        weights = 1 / np.sqrt([each.within for each in near])
        slope, offset = np.polyfit(logs, [each.value for each in near], 1, w=weights)
        middle = float(np.clip(-offset / slope, logs.min(), logs.max())) if slope > 0 else middle
    half = math.log(tolerance(task)) / 2
    ends = [end for end in (math.exp(middle - half), math.exp(middle + half)) if low < end < high]
    ends = [next((load for load in unclear if abs(math.log(load / end)) < half / 4), end) for end in ends]
    return min(ends or unclear, key=lambda load: _count(known, load))


def _bounds(
    task: Task, trials: Sequence[Trial], known: Sequence[Evidence], low: float, high: float
) -> Answer | None:
    if high <= task.lowest and _count(known, high) >= LEAST_TRIALS:
        finding = Finding("below-lowest", f"{task.lowest:g}, the lowest load, is too much already")
        low = 0.0
    elif low >= task.highest and _count(known, low) >= LEAST_TRIALS:
        finding = Finding("above-highest", f"{task.highest:g}, the highest load, is fine still")
        high = math.inf
    else:
        return None
    every = (finding, *diagnostics.findings(task, trials))
    return Answer(None, low, high, task.confidence, False, finding.what, every)


def _in_region(task: Task, known: Sequence[Evidence]) -> float | None:
    if task.promise != "region":
        return None
    for load, trials in sorted(trials_by_load(known).items()):
        group = np.array([math.exp(each.value) for each in trials])
        if len(group) >= max(LEAST_TRIALS, 3):
            half = float(special.stdtrit(len(group) - 1, (1 + task.confidence) / 2) * group.std(ddof=1))
            half /= math.sqrt(len(group))
            if abs(group.mean() - 1) + half <= task.width:
                return load
    return None


def _count(known: Sequence[Evidence], load: float) -> int:
    return sum(each.load == load for each in known)


def _blind(task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
    """Lower loads while the generator cannot offer the current one, if there are any; else the end."""
    if not trials:
        return task.request(task.seed_load or task.lowest, "where it begins")
    last = trials[-1]
    if not last.offered and last.load > task.lowest:
        load = task.rounded(max(last.load / GROWTH**2, task.lowest))
        return task.request(load, f"{task.load_text(last.load)} was not offered")
    if sum(trial.load == last.load for trial in trials) < MOST_BLIND:
        return task.request(last.load, "once more")
    why = "no trial shows anything about the server"
    return Answer(None, 0.0, math.inf, 0.0, False, why, diagnostics.findings(task, trials))


def _answer(
    task: Task, trials: Sequence[Trial], known: Sequence[Evidence], rate: float | None, met: bool, why: str
) -> Answer:
    found = diagnostics.findings(task, trials)
    grave = [each for each in found if each.kind not in diagnostics.HARMLESS]
    low, high = sides(task, known)
    if rate is None and low > 0:
        found = (not_bracketed(task, low, high, trials), *found)
    if rate is not None:  # a lower load than that of the region may be too much
        low, high = min(low, rate), max(high, rate)
    told = task.confidence if met else 0.0
    return Answer(rate, low, high, told, met and not grave, why or (grave[0].what if grave else ""), found)
