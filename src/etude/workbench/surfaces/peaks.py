"""A peak rate as the response: the search of one cell, begun with what other cells taught, and the sample it gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from etude.workbench.policies.belief.evidence import gathered
from etude.workbench.policies.belief.grid import believed
from etude.workbench.search import spent
from etude.workbench.surfaces.factors import Cell
from etude.workbench.surfaces.mapping import Visit
from etude.workbench.surfaces.samples import Sample, State
from etude.workbench.task import Answer, Task, Trial

Shapes = tuple[tuple[str, float], ...]


def task_of(task: Task, visit: Visit, shapes: Shapes) -> Task:
    """The search of a cell: a seed within the loads that may be asked for, and how far it may be off."""
    if visit.expected is None:
        return replace(task, seed_shapes=shapes)
    load = min(max(visit.expected, task.lowest), task.highest)
    if task.whole:
        load = float(min(max(round(load), math.ceil(task.lowest)), math.floor(task.highest)))
    spread = visit.spread if load == visit.expected or task.whole else None
    return replace(task, seed_load=load, seed_spread=spread, seed_shapes=shapes)


def shapes_after(task: Task, trials: Sequence[Trial]) -> Shapes:
    """How likely each shape of the curve is after a search; what the next cell's is told."""
    evidence = gathered(task, trials)
    return believed(task, evidence).shapes() if evidence else task.seed_shapes


def sample_of(cell: Cell, task: Task, answer: Answer, trials: Sequence[Trial]) -> Sample:
    """What a search has found."""
    state: State = "measured"
    if answer.rate is None:
        state = "bounded" if answer.low > 0 or math.isfinite(answer.high) else "failed"
    found = answer.rate, answer.low, answer.high, task.confidence
    return Sample(cell, state, *found, spent(trials), len(trials), answer.kept, answer.why)
