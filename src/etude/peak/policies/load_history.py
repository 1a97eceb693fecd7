"""The loads that a policy went to, in the order of its first trial there, and on which side of the peak each is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import special

from etude.peak.goal import Goal
from etude.peak.slo_ratio import Reading, slo_ratio_of
from etude.peak.task import Task, Trial

MOST_FOR_STUDENT = 30
"""Up to so many trials the quantile is Student's, above it is the normal one ("Cutting Corners", section 2.3)."""

OVERLAP_CONFIDENCE = 0.95
"""With which a load is said not to be in the peak region, whatever is asked of the answer (section 3.3)."""

Side = Literal["fine", "too much", "near"]


class LoadHistory:
    """Says what trials tell of the server. It remembers those that it was shown before, and only so that it need not
    read them again: what it says depends on its arguments alone."""

    def __init__(self) -> None:
        self._goal: Goal | None = None
        self._trials: list[Trial] = []
        self._values: list[float] = []

    def values(self, goal: Goal, trials: Sequence[Trial]) -> list[float]:
        """Of each trial its reading; NaN for one that says nothing of the server."""
        same = 0
        if goal == self._goal:
            pairs = zip(self._trials, trials, strict=False)
            same = next(
                (i for i, (a, b) in enumerate(pairs) if a is not b), min(len(self._trials), len(trials))
            )
        self._goal = goal
        del self._trials[same:], self._values[same:]
        self._trials += trials[same:]
        self._values += [
            slo_ratio_of(goal, trial) if trial.of_server else math.nan for trial in trials[same:]
        ]
        return list(self._values)

    def of(self, goal: Goal, trials: Sequence[Trial]) -> list[Reading]:
        """Of each load all trials that say something of the server; the loads in the order of their first one."""
        found: dict[float, list[float]] = {}
        for trial, value in zip(trials, self.values(goal, trials), strict=True):
            if not math.isnan(value):
                found.setdefault(trial.load, []).append(value)
        return [Reading(load, tuple(values)) for load, values in found.items()]


def half_width(visit: Reading, confidence: float) -> float:
    """Of the interval of the mean reading; infinite for one trial. "Cutting Corners", section 2.3."""
    n = len(visit.values)
    if n <= MOST_FOR_STUDENT:
        return visit.half_width(confidence)
    quantile = float(special.ndtri((1 + confidence) / 2))
    return quantile * float(np.std(visit.values, ddof=1)) / math.sqrt(n)


def side_of(task: Task, visit: Reading) -> Side:
    """Of the peak region, 1 ± width of the limit; *near*: the interval of the mean at 95 % overlaps it, or touches."""
    half = half_width(visit, OVERLAP_CONFIDENCE)
    if visit.mean + half < 1 - task.width:
        return "fine"
    return "too much" if visit.mean - half > 1 + task.width else "near"


def sides_of(task: Task, visits: Sequence[Reading]) -> tuple[float, float]:
    """The lowest load that is too much, behind the highest fine one below it; 0 and inf where there is none.

    The paper's "most recent interval" where no two loads contradict each other; where they do, the lower part counts.
    """
    judged = [(visit.load, side_of(task, visit)) for visit in visits]
    too_much = min((load for load, where in judged if where == "too much"), default=math.inf)
    fine = max((load for load, where in judged if where == "fine" and load < too_much), default=0.0)
    return fine, too_much


def allowed_load(task: Task, load: float) -> float:
    """The nearest load that may be asked for."""
    within = min(max(load, task.lowest), task.highest)
    if not task.whole:
        return within
    whole = float(round(within))
    if whole > task.highest:
        return float(math.floor(task.highest))
    return whole if whole >= task.lowest else float(math.ceil(task.lowest))
