"""Which cells to measure: all of them, one factor at a time, a design, or each time the one that teaches most.

Designs are made before anything is measured; `next_sample` sees what was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from etude.surface.distances import distance, farthest_cells
from etude.surface.factors import Cell, Floats, Space
from etude.surface.samples import KnownResponses
from etude.surface.surrogate import Fit
from etude.surface.surrogates.quadratic import terms

STARTS = 10
SWEEPS = 30
RIDGE = 1e-4
"""Of the information, so that designs with fewer cells than terms can be compared too."""


def d_optimal(space: Space, count: int, fixed: Sequence[Cell] = (), seed: int = 0) -> tuple[Cell, ...]:
    """`count` cells besides the `fixed` ones, that with these make the determinant of the information largest.

    Raises ValueError where there are not so many left.
    """
    cells = [cell for cell in space if cell not in set(fixed)]
    if not 0 <= count <= len(cells):
        raise ValueError(f"{count} cells beside {len(fixed)} fixed ones: the space has {space.size}")
    rows = terms(space, cells)
    base = _information(terms(space, fixed))
    generator = np.random.default_rng(seed)
    designs = (_exchanged(rows, base, _greedy(rows, base, count, generator)) for _ in range(STARTS))
    best = max(designs, key=lambda design: _log_determinant(base, rows[design]))
    return tuple(cells[at] for at in sorted(best))


def _greedy(rows: Floats, base: Floats, count: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """A start: half of it at random, then each time the candidate about which least is known."""
    chosen = list(generator.choice(len(rows), size=(count + 1) // 2, replace=False))
    while len(chosen) < count:
        inverse = np.linalg.inv(base + rows[chosen].T @ rows[chosen])
        spread = np.einsum("ij,ij->i", rows @ inverse, rows)
        spread[chosen] = -1
        chosen.append(int(spread.argmax()))
    return np.array(chosen, dtype=np.intp)


def _exchanged(rows: Floats, base: Floats, design: NDArray[np.intp]) -> NDArray[np.intp]:
    """Each cell replaced by the candidate that gains most, until none does."""
    for _ in range(SWEEPS):
        changed = False
        for place in range(len(design)):
            rest = np.delete(design, place)
            inverse = np.linalg.inv(base + rows[rest].T @ rows[rest])
            # det(M + xx') = det(M) (1 + x' M⁻¹ x)
            spread = np.einsum("ij,ij->i", rows @ inverse, rows)
            spread[rest] = -1
            better = int(spread.argmax())
            if spread[better] > spread[design[place]] * (1 + 1e-9):
                design[place], changed = better, True
        if not changed:
            break
    return design


def _information(rows: Floats) -> Floats:
    return np.asarray(rows.T @ rows + RIDGE * np.eye(rows.shape[1]))


def _log_determinant(base: Floats, rows: Floats) -> float:
    return float(np.linalg.slogdet(base + rows.T @ rows)[1])


__all__ = ["START", "Learning", "d_optimal", "full", "next_sample", "one_factor"]

START = 4
"""Samples before an adaptive plan asks a surrogate."""
AMONG = 400
"""Cells over which a sample's worth is summed, where there are more."""
CANDIDATES = 2000
"""Cells whose worth is found out: those least known, where there are more."""
DIGITS = 9
"""To which the worth of a cell is told from another's."""

Cost = Callable[[Cell], float]
"""Of measuring a cell, s; any unit does, for only ratios count."""


class Lessons(Protocol):
    """What each of some cells would teach, others being under way."""

    def follows(self, pending: Sequence[Cell]) -> bool:
        """Whether it can go on to these cells under way: all those taken are among them, and it knows them all."""
        ...

    def take(self, pending: Sequence[Cell]) -> None:
        """Count these as measured."""
        ...

    def worth(self) -> Floats:
        """Of each cell, by how much the sum of variances falls by measuring it, too."""
        ...


@runtime_checkable
class Learning(Fit, Hashable, Protocol):
    """A Fit that knows how cells hang together."""

    def lessons(self, cells: Sequence[Cell], among: Sequence[Cell]) -> Lessons:
        """Of each of `cells`, for the variances `among` others."""
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
    space: Space,
    fit: Fit | None,
    known: KnownResponses,
    cost: Cost | None = None,
    pending: Sequence[Cell] = (),
    tried: Sequence[Cell] = (),
    left: Iterable[Cell] | None = None,
) -> Cell:
    """What to measure next: the cell of `left` (None: all) that teaches most for its cost, those `pending` being
    measured already, and those `tried` having given no value: their neighbours are not the first to be tried again.

    The first are far from each other: without a fit, or with fewer than START samples. Raises ValueError where all
    cells are measured or pending.
    """
    taken = {*known.cells, *pending, *tried}
    cells = [cell for cell in (space if left is None else left) if cell not in taken]
    if not cells:
        raise ValueError("all cells are measured")
    if fit is None or len(taken) < START:
        return farthest_cells(space, taken)
    if not isinstance(fit, Learning):
        worth = _plain(space, fit, cells, [*tried, *pending])
    else:
        cells, worth = _learnt(space, fit, cells, known, tried, pending)
    if cost is not None:
        worth = worth / np.array([cost(cell) for cell in cells])
    return cells[int(worth.argmax())]


def sd_after(fit: Fit, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
    """How far predictions of cells may be off once `pending` ones are measured; a fit that does not know how cells hang
    together says what it says without them."""
    return fit.sd_after(cells, pending) if pending and isinstance(fit, Learning) else fit.predict(cells).sd


def _plain(space: Space, fit: Fit, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
    """Unknown how cells hang together: the least known, far from those that are being measured."""
    variance = fit.predict(cells).sd ** 2
    near, places = np.ones(len(cells)), space.coded(cells)
    for place in space.coded(pending):
        near = np.minimum(near, distance(space, places, place))
    return np.asarray(np.where(np.isfinite(variance), variance, 1e6) * near)


def _learnt(
    space: Space,
    fit: Learning,
    cells: list[Cell],
    known: KnownResponses,
    tried: Sequence[Cell],
    pending: Sequence[Cell],
) -> tuple[list[Cell], Floats]:
    """Cells of those that are left, and the variance that each takes away."""
    there, taken = _candidates(fit, tuple(tried)), (*tried, *pending)
    if there.lessons is None or not there.lessons.follows(taken):
        there.begin(space, fit, known, tried, taken)
    assert there.lessons is not None
    there.lessons.take(taken)
    left, worth = set(cells), there.lessons.worth()
    if pending:
        # Rounding follows the order in which cells were taken; the choice among cells that teach alike shall not.
        worth = np.round(worth / worth.max(), DIGITS)
    which = [at for at, cell in enumerate(there.cells) if cell in left]
    if not which:
        return cells, fit.sd_after(cells, taken)
    return [there.cells[at] for at in which], worth[which]


@dataclass(eq=False)
class _Candidates:
    """Of one fit, and what was tried: they follow from samples alone, and go on while others are under way."""

    cells: list[Cell] = field(default_factory=list)
    lessons: Lessons | None = None

    def begin(
        self, space: Space, fit: Learning, known: KnownResponses, tried: Sequence[Cell], taken: Sequence[Cell]
    ) -> None:
        """Those least known, where there are many."""
        measured = {*known.cells, *tried}
        every = [cell for cell in space if cell not in measured]
        among = every[:: max(len(every) // AMONG, 1)]
        self.cells = every
        if len(every) > CANDIDATES:
            variance = fit.predict(every).sd ** 2
            self.cells = [every[at] for at in np.sort(np.argsort(-variance, kind="stable")[:CANDIDATES])]
        held = set(self.cells)
        outside = [cell for cell in dict.fromkeys(taken) if cell not in held]
        self.lessons = fit.lessons([*self.cells, *outside], among)


@lru_cache(maxsize=2)
def _candidates(fit: Learning, tried: tuple[Cell, ...]) -> _Candidates:
    return _Candidates()
