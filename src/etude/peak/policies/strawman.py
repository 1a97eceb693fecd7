"""Common practice: steps of one size, ten trials of five minutes each, until the server is saturated.

"Cutting Corners", section 3.1; run length and trials are those of its Figure 3. The last load before saturation is the
peak rate: an answer within a step of the truth, and its rule promises no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.answer import allowed_ends, found_answer, unfinished_answer
from etude.peak.policies.binsearch import middle
from etude.peak.policies.load_history import LoadHistory, allowed_load, sides_of
from etude.peak.policies.stopping import Stopping, first_load, is_uninformative, uninformative_reason
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, Finding, Task, Trial, TrialRequest
from etude.peak.window import Window


def linear() -> Stopping:
    """The policy. It begins at the seed, or else at the lowest load."""
    return Stopping("linear", pick_load)


def pick_load(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """One step up. Our reading of the paper: one step down while all fail, as a seed may."""
    fine, too_much = sides_of(task, visits)
    if math.isinf(too_much):
        return fine + step(task)
    return middle(task, visits) if fine > 0 else too_much - step(task)


def step(task: Task) -> float:
    """The paper's "small fixed increment", whose size it does not give: the task's `step`."""
    size = task.lowest if task.step is None else task.step
    return max(float(round(size)), 1.0) if task.whole else size


TRIALS = 10

RUNLENGTH_S = 300.0


class Strawman:
    """A load is saturated if the mean of ten trials is above the limit. Our reading of the paper: from a saturated seed
    it steps down, and the first load that is not saturated is the answer."""

    name = "strawman"

    def __init__(self) -> None:
        self._visits = LoadHistory()

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """Another of the ten trials, or another load, or the end."""
        if not trials:
            return TrialRequest(first_load(task), RUNLENGTH_S, "the first load")
        visits = self._visits.of(task.goal, trials)
        load = trials[-1].load
        if is_uninformative(self._visits.values(task.goal, trials)):
            return unfinished_answer(task, visits, *uninformative_reason(task, trials[-1]))
        here = next((visit for visit in visits if visit.load == load), None)
        if here is None or len(here.values) < TRIALS:
            made = 0 if here is None else len(here.values)
            return TrialRequest(load, RUNLENGTH_S, f"trial {made + 1} of {TRIALS} at {task.load_text(load)}")
        return self._stepped(task, visits, here)

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """False: trials are never ended early."""
        return False

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """The best load so far."""
        return unfinished_answer(task, self._visits.of(task.goal, trials), why)

    def _stepped(self, task: Task, visits: Sequence[Reading], here: Reading) -> TrialRequest | Answer:
        saturated = here.mean > 1
        fine = max((visit.load for visit in visits if visit.mean <= 1), default=None)
        too_much = min((visit.load for visit in visits if visit.mean > 1), default=None)
        said = f"{here.mean:.2f} of the limit at {task.load_text(here.load)}"
        if fine is not None and too_much is not None:
            return found_answer(
                task,
                visits,
                fine,
                f"the last load before saturation, at {task.load_text(too_much)}",
            )
        lowest, highest = allowed_ends(task)
        if here.load == (lowest if saturated else highest):
            which = "the lowest load" if saturated else "the highest load"
            finding = Finding("below-lowest" if saturated else "above-highest", f"{said}, {which}")
            return unfinished_answer(task, visits, f"{said}, {which}", (finding,))
        after = here.load + (-step(task) if saturated else step(task))
        return TrialRequest(allowed_load(task, after), RUNLENGTH_S, said)
