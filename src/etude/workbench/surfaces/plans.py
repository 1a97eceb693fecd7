"""Which cells to measure: all of them, one factor at a time, a design, or each time the one that teaches most.

Designs are made before anything is measured; `next_sample` sees what was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from etude.workbench.surfaces.doptimal import d_optimal
from etude.workbench.surfaces.factors import Cell, Floats, Space
from etude.workbench.surfaces.samples import Known
from etude.workbench.surfaces.surrogate import Fit

__all__ = ["START", "Learning", "d_optimal", "full", "next_sample", "one_factor"]

START = 4
"""Samples before an adaptive plan asks a surrogate."""
AMONG = 400
"""Cells over which a sample's worth is summed, where there are more."""
CANDIDATES = 2000
"""Cells whose worth is found out: those least known, where there are more."""

KINDS_APART = 9.0
"""Squared distance of two levels of a categorical factor: each is to be seen before the ends of any other, at 4."""

Cost = Callable[[Cell], float]
"""Of measuring a cell, s; any unit does, for only ratios count."""


@runtime_checkable
class Learning(Protocol):
    """A Fit that knows how cells hang together."""

    def learned(self, cells: Sequence[Cell], among: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """By how much the sum of variances `among` cells falls by measuring each of `cells`, `pending` ones before."""
        ...

    def sd_after(self, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """As `predict` says how far cells may be off, `pending` ones being measured before."""
        ...


def full(space: Space, seed: int) -> tuple[Cell, ...]:
    """All cells in random order, so that a drift does not look like a factor."""
    cells = list(space)
    order = np.random.default_rng(seed).permutation(len(cells))
    return tuple(cells[at] for at in order)


def one_factor(space: Space, base: Cell) -> tuple[Cell, ...]:
    """The base, and every cell that differs from it in one factor. Raises ValueError for a base outside the space."""
    cells = set(space)
    if base not in cells:
        raise ValueError(f"{base} is no cell of the space")
    varied = [
        (*base[:at], level, *base[at + 1 :])
        for at, factor in enumerate(space.factors)
        for level in range(len(factor.levels))
        if level != base[at]
    ]
    return (base, *(cell for cell in varied if cell in cells))


def next_sample(
    space: Space, fit: Fit | None, known: Known, cost: Cost | None = None, pending: Sequence[Cell] = ()
) -> Cell:
    """What to measure next: the cell that teaches most for its cost, those `pending` being measured already.

    The first are far from each other: without a fit, or with fewer than START samples. Raises ValueError where all
    cells are measured or pending.
    """
    taken = {*known.cells, *pending}
    cells = [cell for cell in space if cell not in taken]
    if not cells:
        raise ValueError("all cells are measured")
    if fit is None or len(taken) < START:
        return cells[int(_apart(space, cells, sorted(taken)).argmax())]
    worth = _worth(space, fit, cells, list(pending))
    if cost is not None:
        worth = worth / np.array([cost(cell) for cell in cells])
    return cells[int(worth.argmax())]


def sd_after(fit: Fit, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
    """How far predictions of cells may be off once `pending` ones are measured; a fit that does not know how cells hang
    together says what it says without them."""
    return fit.sd_after(cells, pending) if pending and isinstance(fit, Learning) else fit.predict(cells).sd


def _worth(space: Space, fit: Fit, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
    """Of measuring each cell: the variance that it takes away."""
    variance = fit.predict(cells).sd ** 2
    if not isinstance(fit, Learning):
        # Unknown how cells hang together: the least known, far from those that are being measured.
        near = np.minimum(_apart(space, cells, pending), 1.0) if pending else 1.0
        return np.asarray(np.where(np.isfinite(variance), variance, 1e6) * near)
    every = list(cells)
    among = every[:: max(len(every) // AMONG, 1)]
    at = np.argsort(-variance, kind="stable")[:CANDIDATES]
    worth = np.full(len(every), -1.0)
    worth[at] = fit.learned([every[place] for place in at], among, pending)
    return worth


def _apart(space: Space, cells: Sequence[Cell], others: Sequence[Cell]) -> Floats:
    """Squared coded distance to the nearest other one; to the middle where there are none."""
    places = space.coded(cells)
    if not others:
        return np.asarray((places**2).sum(axis=1))
    left, right = places[:, None, :], space.coded(others)[None, :, :]
    apart = (left - right) ** 2
    for at, factor in enumerate(space.factors):
        if factor.scale == "categorical":
            apart[:, :, at] = KINDS_APART * (apart[:, :, at] > 0)
    return np.asarray(apart.sum(axis=2).min(axis=1))
