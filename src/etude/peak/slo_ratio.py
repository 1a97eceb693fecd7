"""SLO ratios of loads: measured response over its limit, without a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from etude.peak.goal import WORST, Goal
from etude.peak.task import Task, Trial


@dataclass(frozen=True, slots=True)
class Reading:
    """SLO ratios of all trials of the server at one load."""

    load: float
    values: tuple[float, ...]
    """SLO ratio of each trial."""

    @property
    def mean(self) -> float:
        """Mean over its trials."""
        return float(np.mean(self.values))

    def half_width(self, confidence: float) -> float:
        """Student's margin of error of the mean ("Cutting Corners", section 2.1); infinite for one trial."""
        n = len(self.values)
        if n < 2:
            return math.inf
        quantile = float(special.stdtrit(n - 1, (1 + confidence) / 2))
        return quantile * float(np.std(self.values, ddof=1)) / math.sqrt(n)


def slo_ratio_of(goal: Goal, trial: Trial) -> float:
    """SLO ratio of one trial; the maximum if the server died or fell far behind."""
    if trial.ended == "died" or trial.limited == "server":
        return WORST
    return goal.reading(trial.windows)


def slo_ratios(task: Task, trials: Sequence[Trial]) -> list[Reading]:
    """SLO ratios by rising load, from trials with information on the server."""
    found: dict[float, list[float]] = {}
    for trial in trials:
        if trial.of_server and not math.isnan(value := slo_ratio_of(task.goal, trial)):
            found.setdefault(trial.load, []).append(value)
    return [Reading(load, tuple(values)) for load, values in sorted(found.items())]


def bracket(known: Sequence[Reading]) -> tuple[float, float]:
    """The highest passing load below the lowest failing one, and that one; 0 and inf if there is none."""
    too_much = min((r.load for r in known if r.mean > 1), default=math.inf)
    fine = max((r.load for r in known if r.mean <= 1 and r.load < too_much), default=0.0)
    return fine, too_much
