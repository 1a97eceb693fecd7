"""What one trial says of its load: the log of its reading, and how far that may be off.

The variance of a log reading has three parts.

- *within*: what is left of the windows' own scatter in their mean, v/n, with v learned from the windows themselves and,
  while they are few, from a prior: v = (ν₀v₀ + Σd²)/(ν₀ + n - 1), d the relative deviations of batches of windows.
  Where neighbouring batches go together (lag-1 correlation r), n counts as n(1 - r)/(1 + r).
- *start*: the first windows of a trial may be off, together by about `START` windows: (START/n)².
  One window has no scatter, and both are a guess (ν₀ = 1): repeated loads tell what share of it is true.
- *between*: trials of the same load differ by more than their windows tell; τ² is learned over all trials
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
"""The start-up transient: by how many windows' worth the first ones may be off."""
SETTLING, LEFT = 2, 0.4
"""After so many windows so much of the transient is left: without them, where that tells more."""
PRIOR_SCATTER, PRIOR_FREEDOM = 0.15, 3.0
"""v₀ and ν₀: the relative variance of one window, and how many windows that guess is worth."""
PRIOR_BETWEEN, BETWEEN_FREEDOM = 0.03**2, 4.0
GUESS_FREEDOM = 1.0
DIED_VARIANCE = 0.3**2
"""Of the log reading of a trial that ended in the server's failure: it may be a mishap."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one trial of the server."""

    load: float
    value: float
    """Log of the reading, between `FLOOR` and log `WORST`: 0 is the limit."""
    within: float
    """Variance of `value` by the windows' scatter and the start-up transient."""
    windows: int
    order: int
    """Which of all trials it was."""
    slack: float = 0.0
    """The server may have been quicker than `value`, by so much in logs: an overload before may have slowed it."""
    suspect: bool = False
    """While it ran, the machine had much more steal time than in the other trials, or the generator was late."""
    slow_share: float = 0.0
    """The probability that the server was slower than usual in this trial (`modes.slow_share`)."""

    @property
    def overload(self) -> bool:
        """Whether the load was far too much."""
        return self.value >= CAP


def evidence_of(task: Task, trials: Sequence[Trial]) -> list[Evidence]:
    """Of all trials that tell something of the server, in the order in which they were made."""
    flags = steal_share([trial.machine for trial in trials])
    found = [
        replace(found, suspect=True) if flags[order] or sent_late(task, trial) else found
        for order, trial in enumerate(trials)
        if trial.of_server and (found := of_trial(task.goal, trial, order)) is not None
    ]
    share = _of_the_guess(found)
    return [replace(each, within=share * each.within) if each.windows == 1 else each for each in found]


def _of_the_guess(known: Sequence[Evidence]) -> float:
    """The variance of trials of one window, as a share of what is guessed while no load is repeated."""
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


def of_trial(goal: Goal, trial: Trial, order: int) -> Evidence | None:
    """None where its windows do not tell the goal's quantity."""
    if trial.ended == "died" or trial.limited == "server":
        return Evidence(trial.load, math.log(WORST), DIED_VARIANCE, len(trial.windows), order)
    return of_windows(goal, trial.load, trial.windows, order)


def of_windows(goal: Goal, load: float, windows: Sequence[Window], order: int) -> Evidence | None:
    """Of a trial that may be running still."""
    whole = goal.reading(windows)
    if math.isnan(whole):
        return None
    skip = _skipped(len(windows), min(whole, 1.0))
    value, within = _read(goal, windows[skip:], _start(skip))
    if math.isnan(value):
        value, within = _read(goal, windows, START)
    return Evidence(load, value, within, len(windows), order)


def _skipped(count: int, reading: float) -> int:
    """How many windows of the start are left out: what is expected to tell most; what they show decides nothing."""
    skips = range(0, min(2 * SETTLING, count // 3) + 1, SETTLING)
    return min(skips, key=lambda n: reading * PRIOR_SCATTER / (count - n) + (_start(n) / (count - n)) ** 2)


def _start(skipped: int) -> float:
    """What is left of the transient."""
    return START * float(LEFT ** (skipped / SETTLING))


def _read(goal: Goal, windows: Sequence[Window], start: float) -> tuple[float, float]:
    """The log reading and its variance."""
    whole = goal.reading(windows)
    value = min(max(math.log(max(whole, 1e-9)), FLOOR), math.log(WORST))
    return value, _scatter(batch_readings(goal, windows), min(whole, 1.0)) + (
        start / max(len(windows), 1)
    ) ** 2


def batch_readings(goal: Goal, windows: Sequence[Window]) -> NDArray[np.float64]:
    """Readings of at most `MOST_BATCHES` runs of windows that stand together, all of the same length but the last."""
    size = max(1, math.ceil(len(windows) / MOST_BATCHES))
    found = (goal.reading(windows[at : at + size]) for at in range(0, len(windows), size))
    return np.array([value for value in found if not math.isnan(value)])


def _scatter(batches: NDArray[np.float64], reading: float) -> float:
    """Relative variance of the mean of batches. The guess grows with the reading: the longer requests wait for each
    other, the fewer independent ones there are in a window."""
    n = len(batches)
    mean = float(batches.mean()) if n else 0.0
    if mean <= 0:
        return reading * PRIOR_SCATTER / max(n, 1)
    off = batches / mean - 1
    one = (PRIOR_FREEDOM * reading * PRIOR_SCATTER + float(off @ off)) / (PRIOR_FREEDOM + max(n - 1, 0))
    return one / n * _lengthening(off)


def _lengthening(off: NDArray[np.float64]) -> float:
    """(1 + r)/(1 - r) where neighbours are significantly alike, else 1."""
    n = len(off)
    square = float(off @ off)
    if n < 8 or square <= 0:
        return 1.0
    r = min(float(off[1:] @ off[:-1]) / square + 1 / n, 0.8)
    return (1 + r) / (1 - r) if r > 1.645 / math.sqrt(n) else 1.0


def between_trial_variance(known: Iterable[Evidence]) -> float:
    """τ²: the variance of the effect that a whole trial has, from trials repeated at one load."""
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
