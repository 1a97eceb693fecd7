"""What is measured next where several cells are under way: lost ones first, then what teaches most for its cost, as far
as time and budget allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from etude.workbench.surfaces.chart import LEAST_S, Means
from etude.workbench.surfaces.costs import LEAST, expected_cost
from etude.workbench.surfaces.factors import Cell
from etude.workbench.surfaces.kept import KeptSurface
from etude.workbench.surfaces.mapping import Visit, decide, visit

DEADLINE, BUDGET = "the deadline has come", "the budget of bench time is spent"


def over(kept: KeptSurface, means: Means, pending: Sequence[Cell]) -> str:
    """Why no further cell is begun; empty if one may be."""
    if means.left_s() < LEAST_S:
        return DEADLINE
    left_s = budget_left(kept, means, pending)
    return BUDGET if left_s is not None and left_s <= 0 else ""


def budget_left(kept: KeptSurface, means: Means, pending: Sequence[Cell]) -> float | None:
    """Bench time that is neither spent nor expected to be spent by cells under way, s; None where it is not bounded.

    While few have told what a cell takes, it is taken to be their mean; while none has, all that a cell may.
    """
    if means.budget_s is None:
        return None
    cost = _cost(kept)
    spent = sum(line.sample.cost_s for line in kept.attempts())
    paid = [sample.cost_s for sample in kept.samples() if sample.cost_s > 0]
    usual_s = fmean(paid) if paid else means.cell_s or math.inf
    return means.budget_s - spent - sum(usual_s if cost is None else cost(cell) for cell in pending)


def following(kept: KeptSurface, means: Means, pending: Sequence[Cell]) -> Visit | str:
    """A cell, or why none is begun now. What would not end before the deadline is not begun."""
    space, rules, samples = kept.charted.space, kept.charted.rules, kept.samples()
    if again := _lost(kept, pending):
        return visit(space, rules, again[0], samples)
    bounded = means.budget_s is not None or math.isfinite(means.left_s())
    cost = _cost(kept) if bounded else None
    late: list[Cell] = []
    while True:
        decision = decide(space, rules, samples, [*pending, *late], cost)
        if not isinstance(decision, Visit):
            return "no other cell would end before the deadline" if late else decision.why
        if cost is None or cost(decision.cell) <= means.left_s():
            return decision
        late.append(decision.cell)


def _cost(kept: KeptSurface) -> Callable[[Cell], float] | None:
    """Bench time that a cell is expected to take, s; None while too few have told."""
    samples = kept.samples()
    paid = sum(sample.cost_s > 0 for sample in samples)
    return expected_cost(kept.charted.space, samples) if paid >= LEAST else None


def _lost(kept: KeptSurface, pending: Sequence[Cell]) -> list[Cell]:
    """Cells of which the last attempt does not count, in the order of these attempts."""
    last = {line.sample.cell: line.lost for line in kept.attempts()}
    closed = {*pending, *(sample.cell for sample in kept.samples()), *kept.charted.space.without}
    return [cell for cell, lost in last.items() if lost and cell not in closed]
