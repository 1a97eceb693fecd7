"""Doubling until a load is too much, then halving ("Cutting Corners", section 3.4, Algorithm 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.answer import unfinished_answer
from etude.peak.policies.load_history import sides_of
from etude.peak.policies.stopping import Stopping
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, Task

COLLAPSED = 5e-4
"""An interval of loads so narrow, as a share of them, has none in it to try: the peak region of a sharp knee is ten
times as wide. It comes of a load that was judged wrongly, or of a response that jumps."""


def binsearch() -> Stopping:
    """Without a seed it begins at the lowest load, with one there."""
    return Stopping("binsearch", picked)


def picked(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """Twice the highest while all are fine, else the middle. Between the lines: where the first load is too much, the
    interval begins at 0, so loads are halved until one is fine."""
    fine, too_much = sides_of(task, visits)
    return 2 * fine if math.isinf(too_much) else middle(task, visits)


def middle(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """Of the interval in which the peak is. Between the lines: an interval that has collapsed is an answer whose
    promise was not kept."""
    fine, too_much = sides_of(task, visits)
    if too_much - fine < COLLAPSED * too_much:
        why = f"{task.load_text(fine)} is fine, {task.load_text(too_much)} is too much"
        why += ", and nothing between was found near the limit"
        return unfinished_answer(task, visits, why)
    return (fine + too_much) / 2
