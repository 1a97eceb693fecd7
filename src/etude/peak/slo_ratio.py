"""Figures of loads, without a model: SLO ratios (measured response over its limit), sides of the peak, rates, times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from etude.peak.bottleneck import headroom
from etude.peak.task import Goal, Task, Trial, slo_ratio_of
from etude.peak.window import joined_windows, percentile_of_all_s


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


GROSS = 2.0
"""SLO ratio from which a trial contradicts a higher peak, whatever its noise."""


def contradicting(rate: float, known: Sequence[Reading]) -> Reading | None:
    """The lowest load below `rate` at which each of several trials is grossly too much; None if there is none."""
    failed = [r for r in known if r.load < rate and len(r.values) > 1 and min(r.values) >= GROSS]
    return min(failed, key=lambda each: each.load, default=None)


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


QUANTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
"""Percent, by name."""


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Figures of all trials at one load; rates in requests/s, times in s. None: unknown."""

    load: float
    offered: float
    completed: float
    errors: float
    """Failed requests as a share of those that ended."""
    mean_s: float | None
    """Mean of the trials' mean responses, each weighted equally."""
    quantiles_s: dict[str, float | None]
    """Quantiles of the completed and stuck requests by the names of `QUANTILES`; None also if they are too few (it
    would be the maximum)."""
    lateness_p99_s: float | None
    """Maximum over the trials."""
    headroom: float | None
    """Share of the generator's capacity that was left, in the trial in which it was busiest."""


def load_figures(trials: Sequence[Trial]) -> LoadFigures:
    """The figures of trials at the same load; at least one has a window."""
    whole = joined_windows([window for trial in trials for window in trial.windows])
    each = [joined_windows(trial.windows) for trial in trials if trial.windows]
    means = [one.mean_so_far_s for one in each if one.mean_so_far_s is not None]
    busy = [trial.generator_busy for trial in trials if trial.generator_busy is not None]
    ended = whole.completed + sum(one.stuck for one in each)
    late = [trial.lateness_p99_s for trial in trials if trial.lateness_p99_s is not None]
    return LoadFigures(
        trials[0].load,
        whole.offered / whole.duration_s,
        whole.completed / whole.duration_s,
        whole.failed_share,
        sum(means) / len(means) if means else None,
        {
            name: percentile_of_all_s(each, percent) if ended * (100 - percent) >= 99.9 else None
            for name, percent in QUANTILES.items()
        },
        max(late, default=None),
        headroom(max(busy)) if busy else None,
    )
