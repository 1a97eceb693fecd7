"""A Gaussian process over cells: known basis functions with normal coefficients, a smooth rest, and roughness.

The rest has an ARD kernel over coded levels (Matérn, ν = 5/2); between levels of a categorical factor the distance is
one, whichever they are. Roughness is what is peculiar to a cell: it is part of the response, and a neighbour knows
nothing of it. Hyper-parameters are those of highest posterior density, and what is said to be uncertain is widened by
how far left-out samples were off (Rasmussen & Williams 2006, sections 2.7, 5.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, optimize, special

from etude.surface.factors import Cell, Floats, Space
from etude.surface.samples import KnownResponses
from etude.surface.surrogate import Predicted

REFITTED = 16
"""Samples up to which each is left out in earnest; beyond, hyper-parameters stay."""
BELIEVED = 4.0
"""Samples that a process is believed to have predicted as well as it says, before any."""
FARTHEST = 8.0
"""Standard deviations: no single sample counts as further off."""

LEAST_VARIANCE = 1e-10
"""Of a log response: no cell is known better."""

Alone = Callable[[Sequence[Cell]], Predicted]
"""What a process says that was fitted without some sample."""

SQRT5 = math.sqrt(5)


@dataclass(frozen=True, slots=True)
class Prior:
    """Medians of the hyper-parameters, and standard deviations of their logs."""

    signal: float = 0.4
    """Standard deviation of the smooth rest."""
    signal_spread: float = 0.8
    length: float = 1.5
    """In coded levels, of which a factor spans two."""
    length_spread: float = 0.7
    rough: float = 0.03
    rough_spread: float = 0.4

    def medians(self, factors: int) -> Floats:
        """Logs: signal, lengths, roughness."""
        return np.asarray(np.log([self.signal, *[self.length] * factors, self.rough]), dtype=float)

    def spreads(self, factors: int) -> Floats:
        """As `medians`."""
        return np.array([self.signal_spread, *[self.length_spread] * factors, self.rough_spread])


@dataclass(frozen=True, eq=False)
class Data:
    """What a process is fitted to: `rest` is the log response less the mean function."""

    space: Space
    known: KnownResponses
    rest: Floats
    basis: Floats
    """Shape (samples, functions), each scaled to a coefficient of variance 1."""

    @cached_property
    def squares(self) -> Floats:
        """Squared distances by factor, shape (factors, samples, samples)."""
        return squares(self.space, self.known.cells, self.known.cells)

    @cached_property
    def given(self) -> Floats:
        """What does not depend on hyper-parameters, of the covariance of the samples."""
        return self.basis @ self.basis.T + np.diag(self.known.variance)


@dataclass(frozen=True, eq=False)
class Process:
    """Fitted. `logs` are hyper-parameters as `Prior.medians` has them."""

    data: Data
    logs: Floats

    @property
    def rough(self) -> float:
        """Standard deviation of the log response of a cell around what is smooth."""
        return float(math.exp(self.logs[-1]))

    @property
    def typical(self) -> float:
        """Variance of measuring one more."""
        return float(np.median(self.data.known.variance))

    def predict(self, cells: Sequence[Cell], mean: Floats, basis: Floats) -> Predicted:
        """Of cells, from the mean function and the basis there."""
        found = mean + self.solved(cells, basis).T @ self._whitened
        return Predicted(found, np.sqrt(self.variance(cells, basis)))

    def variance(self, cells: Sequence[Cell], basis: Floats) -> Floats:
        """Of the true responses' logs, after the samples."""
        before = (basis**2).sum(axis=1) + math.exp(2 * self.logs[0]) + self.rough**2
        return np.asarray(np.maximum(before - (self.solved(cells, basis) ** 2).sum(axis=0), LEAST_VARIANCE))

    def covariance(
        self, cells: Sequence[Cell], basis: Floats, others: Sequence[Cell], others_basis: Floats
    ) -> Floats:
        """Of the responses of cells with what is smooth in those of others, after the samples."""
        before = self.smooth(cells, basis, others, others_basis)
        left, right = self.solved(cells, basis), self.solved(others, others_basis, 0.0)
        return np.asarray(before - left.T @ right)

    def smooth(
        self, cells: Sequence[Cell], basis: Floats, others: Sequence[Cell], others_basis: Floats
    ) -> Floats:
        """Covariance of what is smooth, before the samples."""
        squared = squares(self.data.space, cells, others)
        return np.asarray(basis @ others_basis.T + kernel(self.logs, squared))

    def solved(self, cells: Sequence[Cell], basis: Floats, rough: float | None = None) -> Floats:
        """Covariances of the samples with cells, whitened; shape (samples, cells). `rough`: how rough the cells are."""
        known, rough = self.data.known.cells, self.rough if rough is None else rough
        before = self.smooth(known, self.data.basis, cells, basis) + rough**2 * _same(known, cells)
        return np.asarray(linalg.solve_triangular(self._factor, before, lower=True))

    @cached_property
    def left_out(self) -> Predicted:
        """Of each sample from all the others, measuring it included (Sundararajan & Keerthi 2001)."""
        inverse = linalg.cho_solve((self._factor, True), np.eye(len(self.data.rest)))
        each = np.diag(inverse)
        return Predicted(self.data.known.log - self._weights / each, 1 / np.sqrt(each))

    @cached_property
    def _factor(self) -> Floats:
        return _cholesky(self.data, self.logs)

    @cached_property
    def _whitened(self) -> Floats:
        return np.asarray(linalg.solve_triangular(self._factor, self.data.rest, lower=True))

    @cached_property
    def _weights(self) -> Floats:
        return np.asarray(linalg.cho_solve((self._factor, True), self.data.rest))


def fitted(data: Data, prior: Prior, start: Floats | None = None) -> Process:
    """By the hyper-parameters of highest posterior density; soon found where `start` is near."""
    count = len(data.space.factors)
    medians, spreads = prior.medians(count), prior.spreads(count)
    found = optimize.minimize(
        _regret,
        medians if start is None else start,
        args=(data, medians, spreads),
        jac=True,
        method="L-BFGS-B",
        bounds=[
            (middle - 4 * spread, middle + 4 * spread)
            for middle, spread in zip(medians, spreads, strict=True)
        ],
        options={"maxiter": 60 if start is None else 12},
    )
    return Process(data, np.asarray(found.x))


def kernel(logs: Floats, squared: Floats) -> Floats:
    """Covariance of the smooth rest, from squared distances by factor."""
    distance = np.sqrt(np.tensordot(np.exp(-2 * logs[1:-1]), squared, axes=1))
    signal = math.exp(2 * logs[0])
    return np.asarray(signal * (1 + SQRT5 * distance + 5 / 3 * distance**2) * np.exp(-SQRT5 * distance))


def squares(space: Space, cells: Sequence[Cell], others: Sequence[Cell]) -> Floats:
    """Squared distances by factor, shape (factors, cells, others)."""
    left, right = space.coded(cells).T, space.coded(others).T
    apart = (left[:, :, None] - right[:, None, :]) ** 2
    for at, factor in enumerate(space.factors):
        if factor.scale == "categorical":
            apart[at] = apart[at] > 0
    return np.asarray(apart)


def left_out(whole: Process, without: Callable[[int], Alone]) -> Predicted:
    """Of each sample from all the others, its measuring included: by new fits, or at once where they are many."""
    known = whole.data.known
    if len(known.cells) > REFITTED:
        return whole.left_out
    each = [without(at)([cell]) for at, cell in enumerate(known.cells)]
    variance = np.array([float(found.sd[0]) ** 2 for found in each]) + known.variance
    return Predicted(np.array([float(found.log[0]) for found in each]), np.sqrt(variance))


def widened(known: KnownResponses, left: Predicted) -> float:
    """Factor of standard deviations, by errors of left-out samples and Student's for their number; 1 at least."""
    squared = np.minimum(((left.log - known.log) / left.sd) ** 2, FARTHEST**2)
    freedom = BELIEVED + squared.size
    scale = math.sqrt(max((BELIEVED + float(squared.sum())) / freedom, 1.0))
    return scale * float(special.stdtrit(freedom, 0.975)) / float(special.ndtri(0.975))


def _regret(logs: Floats, data: Data, medians: Floats, spreads: Floats) -> tuple[float, Floats]:
    """Less the log posterior density, and its gradient."""
    factor = _cholesky(data, logs)
    weights = linalg.cho_solve((factor, True), data.rest)
    inverse = linalg.cho_solve((factor, True), np.eye(len(data.rest)))
    inner = inverse - np.outer(weights, weights)
    off = (logs - medians) / spreads
    value = 0.5 * float(data.rest @ weights) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(off @ off)
    gradient = off / spreads + 0.5 * np.array([float((inner * each).sum()) for each in _slopes(logs, data)])
    return value, gradient


def _slopes(logs: Floats, data: Data) -> list[Floats]:
    """Derivatives of the samples' covariance by each of `logs`."""
    squared = data.squares
    weighted = squared * np.exp(-2 * logs[1:-1])[:, None, None]
    distance = np.sqrt(weighted.sum(axis=0))
    signal = math.exp(2 * logs[0])
    shape = signal * 5 / 3 * (1 + SQRT5 * distance) * np.exp(-SQRT5 * distance)
    return [
        2 * kernel(logs, squared),
        *(shape * each for each in weighted),
        2 * math.exp(2 * logs[-1]) * np.eye(len(data.rest)),
    ]


def _cholesky(data: Data, logs: Floats) -> Floats:
    covariance = data.given + kernel(logs, data.squares)
    covariance[np.diag_indices_from(covariance)] += math.exp(2 * logs[-1])
    return np.asarray(linalg.cholesky(covariance, lower=True))


def _same(cells: Sequence[Cell], others: Sequence[Cell]) -> Floats:
    same = np.zeros((len(cells), len(others)))
    places = {cell: at for at, cell in enumerate(others)}
    for at, cell in enumerate(cells):
        if cell in places:
            same[at, places[cell]] = 1.0
    return same
