"""What measuring one more cell would teach: by how much variances fall, others being under way.

Variances of a Gaussian process follow from where samples are, whatever they are. So a cell that is under way counts as
measured, and of many that are chosen one after the other each costs one row of a factor that is kept (bordering a
Cholesky factor: Golub & Van Loan 2013, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg

from etude.workbench.surfaces.factors import Cell, Floats
from etude.workbench.surfaces.surrogates.process import LEAST_VARIANCE, Process

Basis = Callable[[Sequence[Cell]], Floats]
"""Of cells, as `Process.predict` takes it."""


class Lessons:
    """Of each of `cells`, for the sum of variances `among` others."""

    def __init__(self, process: Process, basis: Basis, cells: Sequence[Cell], among: Sequence[Cell]) -> None:
        own, others = basis(cells), basis(among)
        self._process = process
        self._every = (*cells, *among)
        self._basis = np.vstack([own, others])
        self._solved = process.solved(self._every, self._basis, 0.0)
        self._places = {cell: at for at, cell in enumerate(cells)}
        self._cross = process.covariance(cells, own, among, others)
        self.variance = process.variance(cells, own)
        """Of the true responses' logs of `cells`, once all that was taken is measured."""
        self._taken: set[Cell] = set()
        self._rows = np.empty((0, len(self._every)))  # of the bordered factor's inverse times the covariances

    def follows(self, pending: Sequence[Cell]) -> bool:
        """Whether these cells can be taken: they are among the cells, and none that was taken is missing."""
        return self._taken.issubset(pending) and all(cell in self._places for cell in pending)

    def worth(self) -> Floats:
        """Of each cell, by how much the sum falls by measuring it, too."""
        return np.asarray((self._cross**2).sum(axis=1) / (self.variance + self._process.typical))

    def take(self, pending: Sequence[Cell]) -> None:
        """Count these cells as measured, those that are not yet."""
        new = [cell for cell in dict.fromkeys(pending) if cell not in self._taken]
        if not new:
            return
        at = [self._places[cell] for cell in new]
        solved, before = self._solved[:, at], self._rows[: len(self._taken), at]
        covariances = self._process.smooth(new, self._basis[at], self._every, self._basis)
        covariances -= solved.T @ self._solved + before.T @ self._rows[: len(self._taken)]
        own = self._process.typical + self._process.rough**2
        corner = linalg.cholesky(covariances[:, at] + own * np.eye(len(new)), lower=True)
        fresh = linalg.solve_triangular(corner, covariances, lower=True)
        ours, others = fresh[:, : len(self._places)], fresh[:, len(self._places) :]
        self._cross -= ours.T @ others
        self.variance = np.maximum(self.variance - (ours**2).sum(axis=0), LEAST_VARIANCE)
        self._append(fresh)
        self._taken.update(new)

    def _append(self, fresh: Floats) -> None:
        count = len(self._taken)
        if count + len(fresh) > len(self._rows):
            roomy = np.empty((2 * (count + len(fresh)), self._rows.shape[1]))
            roomy[:count] = self._rows[:count]
            self._rows = roomy
        self._rows[count : count + len(fresh)] = fresh
