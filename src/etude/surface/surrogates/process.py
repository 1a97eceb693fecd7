"""Gaussian process over configurations: basis functions with normal coefficients, a smooth residual, and roughness.

Its mean is linear in its unknown coefficients. A surrogate by itself (`Gaussian`), it is also a part of another one.

The residual has an ARD kernel over coded levels (Matérn, ν = 5/2); all levels of a categorical factor are at distance
one. Roughness is specific to a configuration: it is part of the response and uncorrelated with neighbours.
Hyper-parameters maximise the posterior density, and standard deviations are widened by leave-one-out errors (Rasmussen
& Williams 2006, sections 2.7, 5.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, optimize, special

from etude.surface.factors import Configuration, Floats, Space
from etude.surface.samples import KnownResponses
from etude.surface.surrogates import Predicted

REFITTED = 16
"""Number of samples up to which each is left out by a refit; beyond, hyper-parameters stay."""
BELIEVED = 4.0
"""Prior weight (pseudo-count) of calibrated predictions."""
FARTHEST = 8.0
"""Cap of standardised errors."""

LEAST_VARIANCE = 1e-10
"""Lower bound of the variance of a log response."""

Alone = Callable[[Sequence[Configuration]], Predicted]
"""Predictions of a process fitted without one sample."""

SQRT5 = math.sqrt(5)


@dataclass(frozen=True, slots=True)
class Prior:
    """Medians of the hyper-parameters, and standard deviations of their logs."""

    signal: float = 0.4
    """Standard deviation of the smooth residual."""
    signal_spread: float = 0.8
    length: float = 1.5
    """Length scale in coded levels, of which a factor spans two."""
    length_spread: float = 0.7
    rough: float = 0.03
    rough_spread: float = 0.4

    def medians(self, factors: int) -> Floats:
        """Log medians: signal, lengths, roughness."""
        return np.asarray(np.log([self.signal, *[self.length] * factors, self.rough]), dtype=float)

    def spreads(self, factors: int) -> Floats:
        """Standard deviations in the order of `medians`."""
        return np.array([self.signal_spread, *[self.length_spread] * factors, self.rough_spread])


@dataclass(frozen=True, eq=False)
class Data:
    """Input of a fit: `rest` is the log response minus the mean function."""

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
        """Part of the samples' covariance that does not depend on hyper-parameters."""
        return self.basis @ self.basis.T + np.diag(self.known.variance)


@dataclass(frozen=True, eq=False)
class Process:
    """A fitted process. `logs`: hyper-parameters in the order of `Prior.medians`."""

    data: Data
    logs: Floats

    @property
    def rough(self) -> float:
        """Standard deviation of a configuration's log response around the smooth part."""
        return float(math.exp(self.logs[-1]))

    @property
    def typical(self) -> float:
        """Variance of one more measurement."""
        return float(np.median(self.data.known.variance))

    def predict(self, configurations: Sequence[Configuration], mean: Floats, basis: Floats) -> Predicted:
        """Predictions of configurations, given mean function and basis there."""
        found = mean + self.solved(configurations, basis).T @ self._whitened
        return Predicted(found, np.sqrt(self.variance(configurations, basis)))

    def variance(self, configurations: Sequence[Configuration], basis: Floats) -> Floats:
        """Posterior variances of the true log responses."""
        before = (basis**2).sum(axis=1) + math.exp(2 * self.logs[0]) + self.rough**2
        return np.asarray(
            np.maximum(before - (self.solved(configurations, basis) ** 2).sum(axis=0), LEAST_VARIANCE)
        )

    def covariance(
        self,
        configurations: Sequence[Configuration],
        basis: Floats,
        others: Sequence[Configuration],
        others_basis: Floats,
    ) -> Floats:
        """Posterior covariances of the responses of `configurations` with the smooth part of those of `others`."""
        before = self.smooth(configurations, basis, others, others_basis)
        left, right = self.solved(configurations, basis), self.solved(others, others_basis, 0.0)
        return np.asarray(before - left.T @ right)

    def smooth(
        self,
        configurations: Sequence[Configuration],
        basis: Floats,
        others: Sequence[Configuration],
        others_basis: Floats,
    ) -> Floats:
        """Prior covariance of the smooth part."""
        squared = squares(self.data.space, configurations, others)
        return np.asarray(basis @ others_basis.T + kernel(self.logs, squared))

    def solved(
        self, configurations: Sequence[Configuration], basis: Floats, rough: float | None = None
    ) -> Floats:
        """Whitened covariances of the samples with configurations, shape (samples, configurations). `rough`: roughness
        of these."""
        known, rough = self.data.known.cells, self.rough if rough is None else rough
        before = self.smooth(known, self.data.basis, configurations, basis) + rough**2 * _same(
            known, configurations
        )
        return np.asarray(linalg.solve_triangular(self._factor, before, lower=True))

    @cached_property
    def left_out(self) -> Predicted:
        """Leave-one-out prediction of each sample, including its measurement error (Sundararajan & Keerthi 2001)."""
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
    """Fit by maximum posterior density; fast if `start` is near."""
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
    """Covariance of the smooth residual, from squared distances by factor."""
    distance = np.sqrt(np.tensordot(np.exp(-2 * logs[1:-1]), squared, axes=1))
    signal = math.exp(2 * logs[0])
    return np.asarray(signal * (1 + SQRT5 * distance + 5 / 3 * distance**2) * np.exp(-SQRT5 * distance))


def squares(space: Space, configurations: Sequence[Configuration], others: Sequence[Configuration]) -> Floats:
    """Squared distances by factor, shape (factors, configurations, others)."""
    left, right = space.coded(configurations).T, space.coded(others).T
    apart = (left[:, :, None] - right[:, None, :]) ** 2
    for at, factor in enumerate(space.factors):
        if factor.scale == "categorical":
            apart[at] = apart[at] > 0
    return np.asarray(apart)


def left_out(whole: Process, without: Callable[[int], Alone]) -> Predicted:
    """Leave-one-out prediction of each sample, including its measurement error: by refits, or in closed form for many
    samples."""
    known = whole.data.known
    if len(known.cells) > REFITTED:
        return whole.left_out
    each = [without(at)([configuration]) for at, configuration in enumerate(known.cells)]
    variance = np.array([float(found.sd[0]) ** 2 for found in each]) + known.variance
    return Predicted(np.array([float(found.log[0]) for found in each]), np.sqrt(variance))


def widened(known: KnownResponses, left: Predicted) -> float:
    """Widening factor of standard deviations, from leave-one-out errors and Student's quantile for their number; at
    least 1."""
    squared = np.minimum(((left.log - known.log) / left.sd) ** 2, FARTHEST**2)
    freedom = BELIEVED + squared.size
    scale = math.sqrt(max((BELIEVED + float(squared.sum())) / freedom, 1.0))
    return scale * float(special.stdtrit(freedom, 0.975)) / float(special.ndtri(0.975))


def _regret(logs: Floats, data: Data, medians: Floats, spreads: Floats) -> tuple[float, Floats]:
    """Negative log posterior density, and its gradient."""
    factor = _cholesky(data, logs)
    weights = linalg.cho_solve((factor, True), data.rest)
    inverse = linalg.cho_solve((factor, True), np.eye(len(data.rest)))
    inner = inverse - np.outer(weights, weights)
    off = (logs - medians) / spreads
    value = 0.5 * float(data.rest @ weights) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(off @ off)
    gradient = off / spreads + 0.5 * np.array([float((inner * each).sum()) for each in _slopes(logs, data)])
    return value, gradient


def _slopes(logs: Floats, data: Data) -> list[Floats]:
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


def _same(configurations: Sequence[Configuration], others: Sequence[Configuration]) -> Floats:
    same = np.zeros((len(configurations), len(others)))
    places = {configuration: at for at, configuration in enumerate(others)}
    for at, configuration in enumerate(configurations):
        if configuration in places:
            same[at, places[configuration]] = 1.0
    return same


Basis = Callable[[Sequence[Configuration]], Floats]
"""Basis functions at configurations, as in `Process.predict`."""


class InformationGains:
    """Information gains of each of `configurations`, for the sum of variances of `among`."""

    def __init__(
        self,
        process: Process,
        basis: Basis,
        configurations: Sequence[Configuration],
        among: Sequence[Configuration],
    ) -> None:
        own, others = basis(configurations), basis(among)
        self._process = process
        self._every = (*configurations, *among)
        self._basis = np.vstack([own, others])
        self._solved = process.solved(self._every, self._basis, 0.0)
        self._places = {configuration: at for at, configuration in enumerate(configurations)}
        self._cross = process.covariance(configurations, own, among, others)
        self.variance = process.variance(configurations, own)
        """Variance of the true log responses of `configurations`, once all taken ones are measured."""
        self._taken: set[Configuration] = set()
        self._rows = np.empty(
            (0, len(self._every))
        )  # rows of the inverse of the bordered factor times the covariances

    def follows(self, pending: Sequence[Configuration]) -> bool:
        """True if these can be taken: they are among the configurations, and include all taken ones."""
        return self._taken.issubset(pending) and all(
            configuration in self._places for configuration in pending
        )

    def worth(self) -> Floats:
        return np.asarray((self._cross**2).sum(axis=1) / (self.variance + self._process.typical))

    def take(self, pending: Sequence[Configuration]) -> None:
        """Count these as measured, those that are not yet."""
        new = [configuration for configuration in dict.fromkeys(pending) if configuration not in self._taken]
        if not new:
            return
        at = [self._places[configuration] for configuration in new]
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

    def predict(self, configurations: Sequence[Configuration]) -> Predicted:
        found = self.alone(configurations)
        return Predicted(found.log, found.sd * self._widened)

    def alone(self, configurations: Sequence[Configuration]) -> Predicted:
        """Predictions of the process, without widening by its errors."""
        return self.process.predict(configurations, *self.straight(configurations))

    def information_gains(
        self, configurations: Sequence[Configuration], among: Sequence[Configuration]
    ) -> InformationGains:
        return InformationGains(self.process, self._basis, configurations, among)

    def sd_after(self, configurations: Sequence[Configuration], pending: Sequence[Configuration]) -> Floats:
        taking = self.information_gains(tuple(dict.fromkeys((*configurations, *pending))), ())
        taking.take(pending)
        return np.asarray(np.sqrt(taking.variance[: len(configurations)]) * self._widened)

    def _basis(self, configurations: Sequence[Configuration]) -> Floats:
        return self.straight(configurations)[1]

    @cached_property
    def left_out(self) -> Predicted:
        """Leave-one-out prediction of each sample."""
        return left_out(self.process, self.without)

    @cached_property
    def _widened(self) -> float:
        return widened(self.process.data.known, self.left_out)


LEVEL, SLOPE = 1.0, 0.6
"""Prior standard deviations: of the level around the samples' mean, and of a slope in coded levels."""
LEAST = 3
"""Minimum number of samples."""
SMOOTH = Prior()


@dataclass(frozen=True)
class Gaussian:
    """A Surrogate."""

    prior: Prior = SMOOTH
    name: str = "gp"

    def fit(self, space: Space, known: KnownResponses) -> GpLinearMean | None:
        return _fitted(space, known, self.prior, self.name) if len(known.cells) >= LEAST else None


def _fitted(
    space: Space, known: KnownResponses, prior: Prior, name: str, start: Floats | None = None
) -> GpLinearMean:
    centre = float(known.log.mean())
    process = fitted(Data(space, known, known.log - centre, trend(space, known.cells)), prior, start)

    def straight(configurations: Sequence[Configuration]) -> tuple[Floats, Floats]:
        return np.full(len(configurations), centre), trend(space, configurations)

    def without(at: int) -> Alone:
        return _fitted(space, known.without(at), prior, name, process.logs).alone

    return GpLinearMean(name, process, straight, without)


def trend(space: Space, configurations: Sequence[Configuration]) -> Floats:
    """A constant and a slope for each ordered factor, scaled by their prior standard deviations."""
    coded = space.coded(configurations)
    sloping = [at for at, factor in enumerate(space.factors) if factor.scale != "categorical"]
    return np.column_stack([np.full(len(configurations), LEVEL), SLOPE * coded[:, sloping]])
