"""The paper's search: trials at a load until it is known not to be the peak, or known accurately enough to be it.

"Cutting Corners", section 3.3, Algorithm 2. Our copy lacks the algorithm's own lines; its prose says: two trials; the
interval of the mean response at 95 %; no overlap with the peak region: the next load, by one of several policies;
overlap: more trials, until the accuracy a is reached at confidence c, which ends the search, or there is no overlap any
more. Our reading:

- an interval that touches the region overlaps it;
- "after verifying that the t runs come from a normal distribution" (section 2.3): where Shapiro and Wilk refute that at
  5 %, the accuracy of up to 30 trials is not used, and one more is made. Only the end is checked, since later loads
  correct a search that continues;
- loads outside the permitted range are clamped; a load that is picked a second time, or a hundred trials at one load,
end the search with its target not met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from etude.peak.policies.answer import adjacent_loads, end_of_range_answer, found_answer, unfinished_answer
from etude.peak.policies.load_history import MOST_FOR_STUDENT, LoadHistory, allowed_load, half_width, side_of
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, Finding, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.stats.shape import normality

Pick = Callable[[Task, Sequence[Reading]], float | Answer]
"""The next load after the measured ones, none of which is near the peak; or the answer if there is none."""

MOST_AT_A_LOAD = 100
"""Maximum trials at one load: if they have not decided, more are not worth their time."""

NORMALITY_LEVEL = 0.05

FEWEST = 2
"""Minimum trials at a load."""


class Stopping:
    """Algorithm 2 around a load-picking policy. Trials always run whole, as in the paper."""

    def __init__(self, name: str, pick: Pick) -> None:
        self.name = name
        self._pick = pick
        self._visits = LoadHistory()

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """More trials at the last load, or another load, or the end."""
        if not trials:
            return TrialRequest(first_load(task), task.runlength_s, "the first load")
        visits = self._visits.of(task.goal, trials)
        load = trials[-1].load
        if is_uninformative(self._visits.values(task.goal, trials)):
            return unfinished_answer(task, visits, *uninformative_reason(task, trials[-1]))
        here = next((visit for visit in visits if visit.load == load), None)
        if here is None or len(here.values) < FEWEST:
            return TrialRequest(
                load, task.runlength_s, f"{task.load_text(load)} takes {FEWEST} trials at least"
            )
        if side_of(task, here) == "near":
            return self._at_peak(task, visits, here)
        return self._elsewhere(task, visits)

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """False: trials are never ended early."""
        return False

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """The best load so far."""
        return unfinished_answer(task, self._visits.of(task.goal, trials), why)

    def _at_peak(self, task: Task, visits: Sequence[Reading], here: Reading) -> TrialRequest | Answer:
        reached = accuracy(task, here)
        n = len(here.values)
        said = f"{here.mean:.2f} of the limit at {task.load_text(here.load)}"
        said += f", accuracy {100 * reached:.0f} % by {n} trials"
        if reached >= task.accuracy and (n > MOST_FOR_STUDENT or looks_normal(here)):
            return found_answer(task, visits, here.load, said)
        if n >= MOST_AT_A_LOAD:
            return unfinished_answer(task, visits, f"{said}: no more are made at one load")
        return TrialRequest(here.load, task.runlength_s, said)

    def _elsewhere(self, task: Task, visits: Sequence[Reading]) -> TrialRequest | Answer:
        ended = end_of_range_answer(task, visits) or adjacent_loads(task, visits)
        if ended is not None:
            return ended
        picked = self._pick(task, visits)
        if isinstance(picked, Answer):
            return picked
        load, last = allowed_load(task, picked), visits[-1]
        if any(visit.load == load for visit in visits):
            return unfinished_answer(
                task, visits, f"{task.load_text(load)} was to be tried again: the policy does not get on"
            )
        return TrialRequest(
            load,
            task.runlength_s,
            f"{last.mean:.2f} of the limit at {task.load_text(last.load)}: {side_of(task, last)}",
        )


def first_load(task: Task) -> float:
    """The seed, else the lowest load ("Cutting Corners", section 3.7)."""
    return allowed_load(task, task.lowest if task.seed_load is None else task.seed_load)


def accuracy(task: Task, visit: Reading) -> float:
    """1 - (high - low) / (high + low) of the interval of the mean at confidence c (section 2.3, equation 2)."""
    return 1 - half_width(visit, task.confidence) / visit.mean if visit.mean > 0 else -math.inf


def looks_normal(visit: Reading) -> bool:
    """True unless the test rejects normality; two trials cannot."""
    tested = normality(visit.values)
    return tested is None or tested.p >= NORMALITY_LEVEL


def is_uninformative(values: Sequence[float]) -> bool:
    """True if neither of the last two trials has information on the server, so that a third is pointless. (The second
    is at the load of the first, which it was to replace.)"""
    return len(values) > 1 and all(map(math.isnan, values[-2:]))


def uninformative_reason(task: Task, trial: Trial) -> tuple[str, tuple[Finding, ...]]:
    """The reason as text and as findings."""
    at = f"two trials at {task.load_text(trial.load)} show nothing about the server"
    if trial.ended == "not-made":
        why = f"{at}: {trial.note}"
        return why, (Finding("load-not-made", why),)
    if trial.limited == "generator":
        why = f"{at}: the load generator did not offer so much"
        return why, (Finding("generator-limited", why),)
    why = f"{at}: they have no window with what the goal is about"
    return why, (Finding("no-windows", why),)
