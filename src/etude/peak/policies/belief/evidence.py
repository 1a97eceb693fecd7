"""Evidence of one trial: the log of its SLO ratio, and its variance.

The variance of a log SLO ratio has three parts.

- *within*: the windows' own variance in their mean, v/n, with v estimated from the windows themselves and,
  while they are few, from a prior: v = (ν₀v₀ + Σd²)/(ν₀ + n - 1), d the relative deviations of batches of windows.
  With autocorrelated batches (lag-1 correlation r), the effective n is n(1 - r)/(1 + r).
- *start*: the first windows of a trial may be off, together by about `START` windows: (START/n)².
  One window has no variance, and both are a guess (ν₀ = 1), scaled by repeated loads.
- *between*: trials of the same load differ by more than their windows; τ² is estimated over all trials
  (`between_trial_variance`), from a prior of 3 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from etude.peak.generator_diagnostics import sent_late
from etude.peak.goal import WORST, Goal
from etude.peak.machine_state import steal_share
from etude.peak.policies.belief.curves import CAP, FLOOR
from etude.peak.task import Task, Trial
from etude.peak.window import Window

MOST_BATCHES = 20
START = 0.8
"""Start-up transient: error of the first windows, in windows' worth."""
SETTLING, LEFT = 2, 0.4
"""Initial windows that may be skipped, and the share of the transient that remains after them."""
PRIOR_SCATTER, PRIOR_FREEDOM = 0.15, 3.0
"""v₀ and ν₀: prior relative variance of one window, and its weight in windows."""
PRIOR_BETWEEN, BETWEEN_FREEDOM = 0.03**2, 4.0
GUESS_FREEDOM = 1.0
DIED_VARIANCE = 0.3**2
"""Variance of the log SLO ratio of a trial that ended in the server's failure, which may be a mishap."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of one trial of the server."""

    load: float
    value: float
    """Log SLO ratio, between `FLOOR` and log `WORST`: 0 is the limit."""
    within: float
    """Variance of `value` from the windows' scatter and the start-up transient."""
    windows: int
    order: int
    """Index among all trials."""
    slack: float = 0.0
    """Log factor by which the server may be faster than `value`, if an earlier overload slowed it."""
    suspect: bool = False
    """The trial had much more steal time than the others, or the generator was late."""
    slow_share: float = 0.0
    """Probability that the server was in its slow mode in this trial (`grid.slow_share`)."""

    @property
    def overload(self) -> bool:
        """True if the load was far too high."""
        return self.value >= CAP


def evidence_of(task: Task, trials: Sequence[Trial]) -> list[Evidence]:
    """Evidence of all trials with information on the server, in order."""
    flags = steal_share([trial.machine for trial in trials])
    found = [
        replace(found, suspect=True) if flags[order] or sent_late(task, trial) else found
        for order, trial in enumerate(trials)
        if trial.of_server and (found := trial_evidence(task.goal, trial, order)) is not None
    ]
    share = _of_the_guess(found)
    return [replace(each, within=share * each.within) if each.windows == 1 else each for each in found]


def _of_the_guess(known: Sequence[Evidence]) -> float:
    """Variance of one-window trials as a share of the guess that is used while no load is repeated."""
    groups: dict[float, list[Evidence]] = {}
    for each in known:
        if each.windows == 1 and FLOOR < each.value < CAP:
            groups.setdefault(each.load, []).append(each)
    square, freedom = GUESS_FREEDOM, GUESS_FREEDOM
    for group in groups.values():
        values = np.array([each.value for each in group])
        square += float(((values - values.mean()) ** 2 / [each.within for each in group]).sum())
        freedom += len(group) - 1
    return square / freedom


def trial_evidence(goal: Goal, trial: Trial, order: int) -> Evidence | None:
    """Evidence of a trial; None if its windows lack the goal's quantity."""
    if trial.ended == "died" or trial.limited == "server":
        return Evidence(trial.load, math.log(WORST), DIED_VARIANCE, len(trial.windows), order)
    return window_evidence(goal, trial.load, trial.windows, order)


def window_evidence(goal: Goal, load: float, windows: Sequence[Window], order: int) -> Evidence | None:
    """Evidence of a trial that may still be running."""
    whole = goal.reading(windows)
    if math.isnan(whole):
        return None
    skip = _skipped(len(windows), min(whole, 1.0))
    value, within = _read(goal, windows[skip:], _start(skip))
    if math.isnan(value):
        value, within = _read(goal, windows, START)
    return Evidence(load, value, within, len(windows), order)


def _skipped(count: int, reading: float) -> int:
    """Number of initial windows to skip, by the expected variance and not by the data."""
    skips = range(0, min(2 * SETTLING, count // 3) + 1, SETTLING)
    return min(skips, key=lambda n: reading * PRIOR_SCATTER / (count - n) + (_start(n) / (count - n)) ** 2)


def _start(skipped: int) -> float:
    """Remaining part of the transient, in windows' worth."""
    return START * float(LEFT ** (skipped / SETTLING))


def _read(goal: Goal, windows: Sequence[Window], start: float) -> tuple[float, float]:
    """The log SLO ratio and its variance."""
    whole = goal.reading(windows)
    value = min(max(math.log(max(whole, 1e-9)), FLOOR), math.log(WORST))
    return value, _scatter(batch_readings(goal, windows), min(whole, 1.0)) + (
        start / max(len(windows), 1)
    ) ** 2


def batch_readings(goal: Goal, windows: Sequence[Window]) -> NDArray[np.float64]:
    """SLO ratios of at most `MOST_BATCHES` batches of consecutive windows, all of the same length except the last."""
    size = max(1, math.ceil(len(windows) / MOST_BATCHES))
    found = (goal.reading(windows[at : at + size]) for at in range(0, len(windows), size))
    return np.array([value for value in found if not math.isnan(value)])


def _scatter(batches: NDArray[np.float64], reading: float) -> float:
    """Relative variance of the mean of batches. The prior grows with the SLO ratio: the longer requests queue, the
    fewer independent ones are in a window."""
    n = len(batches)
    mean = float(batches.mean()) if n else 0.0
    if mean <= 0:
        return reading * PRIOR_SCATTER / max(n, 1)
    off = batches / mean - 1
    one = (PRIOR_FREEDOM * reading * PRIOR_SCATTER + float(off @ off)) / (PRIOR_FREEDOM + max(n - 1, 0))
    return one / n * _lengthening(off)


def _lengthening(off: NDArray[np.float64]) -> float:
    """Variance inflation (1 + r)/(1 - r) of significantly autocorrelated batches, else 1."""
    n = len(off)
    square = float(off @ off)
    if n < 8 or square <= 0:
        return 1.0
    r = min(float(off[1:] @ off[:-1]) / square + 1 / n, 0.8)
    return (1 + r) / (1 - r) if r > 1.645 / math.sqrt(n) else 1.0


def between_trial_variance(known: Iterable[Evidence]) -> float:
    """τ²: variance of the whole-trial effect, from trials repeated at one load."""
    groups: dict[float, list[Evidence]] = {}
    for each in known:
        if FLOOR < each.value < CAP:
            groups.setdefault(each.load, []).append(each)
    square, freedom = BETWEEN_FREEDOM * PRIOR_BETWEEN, BETWEEN_FREEDOM
    for group in groups.values():
        if len(group) > 1:
            values = np.array([each.value for each in group])
            expected = float(np.mean([each.within for each in group])) * (len(group) - 1)
            square += max(float(((values - values.mean()) ** 2).sum()) - expected, 0.0)
            freedom += len(group) - 1
    return square / freedom
