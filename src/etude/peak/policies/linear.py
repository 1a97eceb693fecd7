"""Steps of one size until a load is too much, then halving ("Cutting Corners", section 3.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.binsearch import middle
from etude.peak.policies.load_history import sides_of
from etude.peak.policies.stopping import Stopping
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, Task


def linear() -> Stopping:
    """Without a seed it begins at the lowest load, with one there."""
    return Stopping("linear", picked)


def picked(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """A step on. Between the lines: a step back while all are too much, as a seed may be."""
    fine, too_much = sides_of(task, visits)
    if math.isinf(too_much):
        return fine + step(task)
    return middle(task, visits) if fine > 0 else too_much - step(task)


def step(task: Task) -> float:
    """The paper's "small fixed increment", of which it names no size: the task's."""
    size = task.lowest if task.step is None else task.step
    return max(float(round(size)), 1.0) if task.whole else size
