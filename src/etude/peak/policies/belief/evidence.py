"""Evidence of one trial: the log of its SLO ratio, and its variance; and what evidence an answer may depend on.

The variance of a log SLO ratio has three parts.

- *within*: the windows' own variance in their mean, v/n, with v estimated from the windows themselves and,
  while they are few, from a prior: v = (ν₀v₀ + Σd²)/(ν₀ + n - 1), d the relative deviations of batches of windows.
  With autocorrelated batches (lag-1 correlation r), the effective n is n(1 - r)/(1 + r).
- *start*: the first windows of a trial may be off, together by about `START` windows: (START/n)².
  One window has no variance, and both are a guess (ν₀ = 1), scaled by repeated loads.
- *between*: trials of the same load differ by more than their windows; τ² is estimated over all trials
  (`between_trial_variance`), from a prior of 3 %.

No answer depends on a single slow trial; the loads on either side have a second one. A trial may be disturbed by
another program, a slow mode, or hysteresis. This makes it slower, never faster, so a clearly passing load needs no
second trial. A trial far off the others of its load, which agree, is excluded; two that disagree get a third. If a
disturbance is visible (steal time, late requests), one trial without it is enough to exclude a slower one, and no
answer depends on a disturbed one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from etude.peak.bottleneck import sent_late
from etude.peak.machine_state import steal_share
from etude.peak.task import WORST, Goal, Task, Trial
from etude.peak.window import Window

CAP = math.log(2.0)
"""Log SLO ratio at which evidence and curves are censored above ("at least this much")."""
FLOOR = math.log(0.02)
"""Log SLO ratio at which they are censored below."""
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
    lone = [each for each in known if each.windows == 1 and FLOOR < each.value < CAP]
    square, freedom = GUESS_FREEDOM, GUESS_FREEDOM
    for group in trials_by_load(lone).values():
        values = np.array([each.value for each in group])
        square += float(((values - values.mean()) ** 2 / [each.within for each in group]).sum())
        freedom += len(group) - 1
    return square / freedom


def trials_by_load(known: Iterable[Evidence]) -> dict[float, list[Evidence]]:
    """Trials of each load, in order; loads in the order of their first trial."""
    found: dict[float, list[Evidence]] = {}
    for each in known:
        found.setdefault(each.load, []).append(each)
    return found


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
    return START * float(LEFT ** (skipped / SETTLING))


def _read(goal: Goal, windows: Sequence[Window], start: float) -> tuple[float, float]:
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
    square, freedom = BETWEEN_FREEDOM * PRIOR_BETWEEN, BETWEEN_FREEDOM
    for group in trials_by_load(each for each in known if FLOOR < each.value < CAP).values():
        if len(group) > 1:
            values = np.array([each.value for each in group])
            expected = float(np.mean([each.within for each in group])) * (len(group) - 1)
            square += max(float(((values - values.mean()) ** 2).sum()) - expected, 0.0)
            freedom += len(group) - 1
    return square / freedom


TRIALS_IF_SURPRISING, TRIALS_IF_DISAGREEING = 3, 4
"""Trials that a failing load needs if the curve contradicts it, or if its trials disagree."""
APART = 3.0
"""Standard deviations by which two trials of a load disagree."""
CLEARLY = math.log(1.5)
"""Log SLO ratio above which two trials agree whatever they read: the load fails. As far below the limit, a load clearly
passes."""


def disagree(one: Evidence, other: Evidence) -> bool:
    """True if two trials of one load differ by more than their windows explain."""
    if min(one.value, other.value) >= CLEARLY:
        return False
    spread = math.sqrt(one.within + other.within + 2 * PRIOR_BETWEEN)
    return abs(one.value - other.value) >= APART * spread


MOST_SUSPECT = 4
"""Maximum trials of a load that are repeated because of disturbances."""


def disturbed_trials(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials slower than all others of their load, of which at least two agree, or one is undisturbed while these are
    suspect."""
    found = []
    for _, group in sorted(trials_by_load(known).items()):
        group.sort(key=lambda each: each.value)
        quiet = [each for each in group if not each.suspect]
        slow = [each for each in group if quiet and each.suspect and each.value > quiet[-1].value]
        off = [each for each in slow if disagree(each, quiet[-1])]
        found += off
        *others, slowest = without_trials(group, off)
        if len(others) >= 2 and not disagree(others[0], others[-1]) and disagree(others[-1], slowest):
            found.append(slowest)
    return found


def without_trials(known: Sequence[Evidence], dropped: Sequence[Evidence]) -> list[Evidence]:
    """Trials without the dropped ones."""
    orders = {each.order for each in dropped}
    return [each for each in known if each.order not in orders]


def ends(known: Sequence[Evidence]) -> tuple[float | None, float | None]:
    """The highest passing load below the lowest failing one, and that one; None if there is none."""
    means = {
        load: sum(e.value / e.within for e in of) / sum(1 / e.within for e in of)
        for load, of in trials_by_load(known).items()
    }
    too_much = min((load for load, mean in means.items() if mean > 0), default=None)
    below = [load for load, mean in means.items() if mean <= 0 and (too_much is None or load < too_much)]
    return max(below, default=None), too_much


def unconfirmed_loads(known: Sequence[Evidence]) -> list[tuple[float, str]]:
    """Loads that need another trial before an answer may depend on them, and the reason. The failing load comes first:
    the other one then shows hysteresis."""
    kept = without_trials(known, disturbed_trials(known))
    fine, too_much = ends(kept)
    found = []
    for load in (too_much, fine):
        group = [each for each in kept if each.load == load]
        if load is not None and len(group) == 1 and (load == too_much or group[0].value > -CLEARLY):
            found.append((load, "no answer rests on one trial"))
        elif load is not None and len(group) == 2 and disagree(*group):
            found.append((load, "two trials disagree"))
        elif load is not None and len(group) < MOST_SUSPECT and half_suspect(group):
            found.append((load, "half of its trials or more were disturbed"))
    return found


def half_suspect(group: Sequence[Evidence]) -> bool:
    """True if half or more of the trials of a load are suspect, counting only failing ones if there are any."""
    told = [each for each in group if each.value > 0] or group
    return 2 * sum(each.suspect for each in told) >= len(told)
