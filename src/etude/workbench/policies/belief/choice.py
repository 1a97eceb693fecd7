"""Which load to offer next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.workbench.policies.belief.evidence import Evidence
from etude.workbench.policies.belief.grid import Belief
from etude.workbench.task import Task

GROWTH = 2.5
"""No load is offered that is so many times the highest that was fine: deep overloads may leave marks."""
SAME = 0.1
"""Loads closer than this share of `within` are made the same: repeated trials tell how far trials differ."""


def next_load(task: Task, belief: Belief, known: Sequence[Evidence], most: float) -> tuple[float, str]:
    """A load, at most `most`, and why: the median of the belief, where half of it is told apart."""
    if not known:
        return task.seed_load or task.lowest, "where it begins"
    fine = max((each.load for each in known if each.value < 0), default=0.0)
    too_much = min((each.load for each in known if each.value > 0), default=math.inf)
    # For the region it is the response at the answer that has to be known, not the rate.
    wanted = (
        belief.best_region(task.width)[0]
        if task.promise == "region" and fine and too_much < math.inf
        else 0.0
    )
    wanted = wanted or belief.quantile(0.5)
    cap = GROWTH * fine if fine else too_much / GROWTH
    why = "the middle of what is believed" if wanted <= cap else "nothing was too much yet"
    load = min(max(min(wanted, cap), task.lowest), most)
    return _settled(task, load, known, fine, too_much), why


def _settled(task: Task, load: float, known: Sequence[Evidence], fine: float, too_much: float) -> float:
    if task.whole:
        return float(min(max(round(load), 1, math.ceil(task.lowest)), math.floor(task.highest)))
    near = [each.load for each in known if abs(math.log(each.load / load)) < SAME * task.within]
    close = min(near, key=lambda each: abs(math.log(each / load)), default=load)
    return close if task.promise == "rate" else load
