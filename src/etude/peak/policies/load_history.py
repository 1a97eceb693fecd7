"""The loads that a policy has measured, in order of the first trial, and the side of the peak of each."""

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
"""Number of trials up to which Student's quantile is used, above it the normal one ("Cutting Corners", section 2.3)."""

OVERLAP_CONFIDENCE = 0.95
"""Confidence at which a load is excluded from the peak region, independent of the task's confidence (section 3.3)."""

Side = Literal["fine", "too much", "near"]


class LoadHistory:
    """SLO ratios of trials. It caches those of trials passed before; results depend only on the arguments."""

    def __init__(self) -> None:
        self._goal: Goal | None = None
        self._trials: list[Trial] = []
        self._values: list[float] = []

    def values(self, goal: Goal, trials: Sequence[Trial]) -> list[float]:
        """SLO ratio of each trial; NaN if it has no information on the server."""
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
        """SLO ratios of each load's informative trials; loads in order of the first one."""
        found: dict[float, list[float]] = {}
        for trial, value in zip(trials, self.values(goal, trials), strict=True):
            if not math.isnan(value):
                found.setdefault(trial.load, []).append(value)
        return [Reading(load, tuple(values)) for load, values in found.items()]


def half_width(visit: Reading, confidence: float) -> float:
    """Margin of error of the mean SLO ratio; infinite for one trial. "Cutting Corners", section 2.3."""
    n = len(visit.values)
    if n <= MOST_FOR_STUDENT:
        return visit.half_width(confidence)
    quantile = float(special.ndtri((1 + confidence) / 2))
    return quantile * float(np.std(visit.values, ddof=1)) / math.sqrt(n)


def side_of(task: Task, visit: Reading) -> Side:
    """Side of the peak region, 1 ± width of the limit; *near*: the 95 % interval of the mean overlaps or touches it."""
    half = half_width(visit, OVERLAP_CONFIDENCE)
    if visit.mean + half < 1 - task.width:
        return "fine"
    return "too much" if visit.mean - half > 1 + task.width else "near"


def sides_of(task: Task, visits: Sequence[Reading]) -> tuple[float, float]:
    """The highest passing load below the lowest failing one, and that one; 0 and inf if there is none.

    The paper's "most recent interval" if no two loads contradict each other; otherwise the lower part counts.
    """
    judged = [(visit.load, side_of(task, visit)) for visit in visits]
    too_much = min((load for load, where in judged if where == "too much"), default=math.inf)
    fine = max((load for load, where in judged if where == "fine" and load < too_much), default=0.0)
    return fine, too_much


def allowed_load(task: Task, load: float) -> float:
    """The nearest permitted load."""
    within = min(max(load, task.lowest), task.highest)
    if not task.whole:
        return within
    whole = float(round(within))
    if whole > task.highest:
        return float(math.floor(task.highest))
    return whole if whole >= task.lowest else float(math.ceil(task.lowest))
