"""Doubling until a load fails, then halving ("Cutting Corners", section 3.4, Algorithm 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.answer import unfinished_answer
from etude.peak.policies.load_history import sides_of
from etude.peak.policies.stopping import Stopping
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, Task

COLLAPSED = 5e-4
"""Relative width of an interval of loads that is too narrow to continue: the peak region of a sharp knee is ten times
as wide. It results from a misjudged load, or from a response that jumps."""


def binsearch() -> Stopping:
    """The policy. It begins at the seed, or else at the lowest load."""
    return Stopping("binsearch", pick_load)


def pick_load(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """Twice the highest load while all pass, else the middle. Our reading of the paper: if the first load fails, the
    interval begins at 0, so loads are halved until one passes."""
    fine, too_much = sides_of(task, visits)
    return 2 * fine if math.isinf(too_much) else middle(task, visits)


def middle(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """Middle of the interval that contains the peak. Our reading of the paper: a collapsed interval is an answer whose
    target is not met."""
    fine, too_much = sides_of(task, visits)
    if too_much - fine < COLLAPSED * too_much:
        why = f"{task.load_text(fine)} is fine, {task.load_text(too_much)} is too much"
        why += ", and nothing between was found near the limit"
        return unfinished_answer(task, visits, why)
    return (fine + too_much) / 2
