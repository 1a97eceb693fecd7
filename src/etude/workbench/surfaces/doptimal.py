"""D-optimal designs: the cells from which a quadratic is known best (Fedorov's exchange on a set of candidates).

Ours, because cells that were measured already have to stay: packages design from nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from etude.workbench.surfaces.factors import Cell, Floats, Space
from etude.workbench.surfaces.surrogates.quadratic import terms

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
