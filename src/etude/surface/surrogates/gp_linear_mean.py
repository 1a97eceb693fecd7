"""A Gaussian process with a mean linear in its unknown coefficients: the common part of two surrogates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from etude.surface.factors import Configuration, Floats
from etude.surface.surrogate import Predicted
from etude.surface.surrogates.process import LEAST_VARIANCE, Alone, Process, left_out, widened

Basis = Callable[[Sequence[Configuration]], Floats]
"""Basis functions at configurations, as in `Process.predict`."""


class InformationGains:
    """Information gains of each of `cells`, for the sum of variances of `among`."""

    def __init__(
        self, process: Process, basis: Basis, cells: Sequence[Configuration], among: Sequence[Configuration]
    ) -> None:
        own, others = basis(cells), basis(among)
        self._process = process
        self._every = (*cells, *among)
        self._basis = np.vstack([own, others])
        self._solved = process.solved(self._every, self._basis, 0.0)
        self._places = {cell: at for at, cell in enumerate(cells)}
        self._cross = process.covariance(cells, own, among, others)
        self.variance = process.variance(cells, own)
        """Variance of the true log responses of `cells`, once all taken ones are measured."""
        self._taken: set[Configuration] = set()
        self._rows = np.empty(
            (0, len(self._every))
        )  # rows of the inverse of the bordered factor times the covariances

    def follows(self, pending: Sequence[Configuration]) -> bool:
        """True if these can be taken: they are among the configurations, and include all taken ones."""
        return self._taken.issubset(pending) and all(cell in self._places for cell in pending)

    def worth(self) -> Floats:
        """Reduction of the sum by also measuring each configuration."""
        return np.asarray((self._cross**2).sum(axis=1) / (self.variance + self._process.typical))

    def take(self, pending: Sequence[Configuration]) -> None:
        """Count these as measured, those that are not yet."""
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


@dataclass(frozen=True, eq=False)
class GpLinearMean:
    """A Fit."""

    name: str
    process: Process
    straight: Callable[[Sequence[Configuration]], tuple[Floats, Floats]]
    """Mean and basis at configurations (process.py)."""
    without: Callable[[int], Alone]
    """The same surrogate of all samples but one."""

    def predict(self, cells: Sequence[Configuration]) -> Predicted:
        found = self.alone(cells)
        return Predicted(found.log, found.sd * self._widened)

    def alone(self, cells: Sequence[Configuration]) -> Predicted:
        """Predictions of the process, without widening by its errors."""
        return self.process.predict(cells, *self.straight(cells))

    def information_gains(
        self, cells: Sequence[Configuration], among: Sequence[Configuration]
    ) -> InformationGains:
        """Information gains; see plans.CovarianceFit."""
        return InformationGains(self.process, self._basis, cells, among)

    def sd_after(self, cells: Sequence[Configuration], pending: Sequence[Configuration]) -> Floats:
        """Standard deviations after `pending`; see plans.CovarianceFit."""
        taking = self.information_gains(tuple(dict.fromkeys((*cells, *pending))), ())
        taking.take(pending)
        return np.asarray(np.sqrt(taking.variance[: len(cells)]) * self._widened)

    def _basis(self, cells: Sequence[Configuration]) -> Floats:
        return self.straight(cells)[1]

    @cached_property
    def left_out(self) -> Predicted:
        """Leave-one-out prediction of each sample."""
        return left_out(self.process, self.without)

    @cached_property
    def _widened(self) -> float:
        return widened(self.process.data.known, self.left_out)
