"""Soft minimum of limits, with a Gaussian process of its residuals.

A system's speed is set by its tightest limit: one grows with the number of disks, one with the number of workers, one
is a lock that no factor widens. Each numeric factor limits the response to c·level^b, each level of a categorical one
to a constant, and there is one overall constant; the response is the minimum of all, with the corner rounded by a
sharpness. Coefficients have weak priors, so that four samples are enough. The fitted soft minimum, linearised in its
coefficients, is a basis of a process (process.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import optimize

from etude.surface.factors import Configuration, Factor, Floats, Space
from etude.surface.samples import KnownResponses
from etude.surface.surrogates.process import Alone, Data, GpLinearMean, Prior, fitted

LEAST = 4
"""Minimum number of samples."""
RESIDUE = Prior(signal=0.06, signal_spread=0.5, length=1.0, rough=0.04, rough_spread=0.3)
ROUGH = 0.03
"""Standard deviation of the log response around the limits, in the first fit."""
POWER, POWER_SPREAD = 0.8, 0.4
"""Prior of the power b of a level, without its sign."""
HEIGHT_SPREAD = 1.2
"""Standard deviation of the log of a limit."""
SHARPNESS, SHARPNESS_SPREAD = np.log(3.0), 0.5
ABOVE = 0.3
"""Expected distance of limits above the median response, in logs."""


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Normal priors of the coefficients."""

    means: Floats
    spreads: Floats


@dataclass(frozen=True, eq=False)
class Limits:
    """The form of the soft minimum on a space. Coefficients: log height of the constant, then by factor log heights
    (and the power of an ordered one), and last the log of the sharpness."""

    space: Space

    @cached_property
    def size(self) -> int:
        """Number of coefficients."""
        return 2 + sum(_width(factor) for factor in self.space.factors)

    def value(self, coefficients: Floats, configurations: Sequence[Configuration]) -> tuple[Floats, Floats]:
        """The log response, shape (configurations,), and its gradients, shape (configurations, coefficients)."""
        design, which = self._design
        rows = np.asarray(configurations, dtype=np.intp).reshape(len(configurations), -1)
        heights = np.full((len(configurations), 1 + len(which)), coefficients[0])
        parts: list[tuple[slice, Floats]] = []
        for at, (codes, place) in enumerate(zip(design, which, strict=True)):
            inputs = codes[rows[:, at]]
            heights[:, at + 1] = inputs @ coefficients[place]
            parts.append((place, inputs))
        sharp = float(np.exp(coefficients[-1]))
        lowest = heights.min(axis=1, keepdims=True)
        terms = np.exp(-sharp * (heights - lowest))
        total = terms.sum(axis=1, keepdims=True)
        shares = terms / total
        logs = lowest[:, 0] - np.log(total[:, 0]) / sharp
        slopes = np.empty((len(configurations), self.size))
        slopes[:, 0] = shares[:, 0]
        for at, (place, inputs) in enumerate(parts):
            slopes[:, place] = shares[:, at + 1, None] * inputs
        slopes[:, -1] = (shares * heights).sum(axis=1) - logs  # derivative by the log of the sharpness
        return logs, slopes

    def prior(self, median: float, signs: Floats) -> CoefficientPrior:
        """Prior of the coefficients; `signs` of the powers, by factor."""
        means, spreads = [median + 2 * ABOVE], [HEIGHT_SPREAD]
        for factor, sign in zip(self.space.factors, signs, strict=True):
            if factor.scale == "categorical":
                means += [median + ABOVE] * len(factor.levels)
                spreads += [HEIGHT_SPREAD] * len(factor.levels)
            else:
                means += [median + ABOVE, float(sign) * POWER]
                spreads += [HEIGHT_SPREAD, POWER_SPREAD]
        return CoefficientPrior(np.array([*means, SHARPNESS]), np.array([*spreads, SHARPNESS_SPREAD]))

    @cached_property
    def _design(self) -> tuple[list[Floats], list[slice]]:
        """Design by factor: multipliers of the coefficients at each level, and the slice of these coefficients."""
        design, which, at = [], [], 1
        for factor in self.space.factors:
            count = len(factor.levels)
            design.append(
                np.eye(count)
                if factor.scale == "categorical"
                else np.column_stack([np.ones(count), _places(factor)])
            )
            which.append(slice(at, at + _width(factor)))
            at += _width(factor)
        return design, which


@dataclass(frozen=True)
class SoftMinimum:
    """A Surrogate."""

    name: str = "softmin"

    def fit(self, space: Space, known: KnownResponses) -> GpLinearMean | None:
        if len(known.cells) < LEAST:
            return None
        limits = Limits(space)
        believed = limits.prior(float(np.median(known.log)), _signs(space, known))
        return _fitted(limits, known, believed, self.name)


def _fitted(
    limits: Limits,
    known: KnownResponses,
    believed: CoefficientPrior,
    name: str,
    near: tuple[Floats, Floats] | None = None,
) -> GpLinearMean:
    """Fit; `near`: coefficients and the process's logs of a fit to nearly the same samples."""
    higher = believed.means + 1.0 * (np.arange(limits.size) == 0)
    starts = [believed.means, higher] if near is None else [near[0]]
    coefficients = _coefficients(limits, known, believed, starts)
    straight = partial(_straight, limits, believed, coefficients)
    mean, basis = straight(known.cells)
    data = Data(limits.space, known, known.log - mean, basis)
    process = fitted(data, RESIDUE, None if near is None else near[1])

    def without(at: int) -> Alone:
        return _fitted(limits, known.without(at), believed, name, (coefficients, process.logs)).alone

    return GpLinearMean(name, process, straight, without)


def _straight(
    limits: Limits, believed: CoefficientPrior, coefficients: Floats, configurations: Sequence[Configuration]
) -> tuple[Floats, Floats]:
    """Linearised soft minimum with normal prior: its mean, and its basis."""
    logs, slopes = limits.value(coefficients, configurations)
    return logs - slopes @ (coefficients - believed.means), slopes * believed.spreads


def _coefficients(
    limits: Limits, known: KnownResponses, believed: CoefficientPrior, starts: Sequence[Floats]
) -> Floats:
    """Coefficients of maximum posterior density, robust against outliers (soft L1)."""
    scale = np.sqrt(known.variance + ROUGH**2)

    def off(coefficients: Floats) -> Floats:
        logs, _ = limits.value(coefficients, known.cells)
        beside = (coefficients - believed.means) / believed.spreads
        return np.concatenate([(logs - known.log) / scale, beside])

    def slopes(coefficients: Floats) -> Floats:
        _, each = limits.value(coefficients, known.cells)
        return np.vstack([each / scale[:, None], np.diag(1 / believed.spreads)])

    found = [
        optimize.least_squares(off, start, slopes, loss="soft_l1", f_scale=2.0, max_nfev=80)
        for start in starts
    ]
    return np.asarray(min(found, key=lambda each: float(each.cost)).x)


def _signs(space: Space, known: KnownResponses) -> Floats:
    """Sign of the slope of the response for each factor, from a linear fit; +1 if unclear."""
    coded = space.coded(known.cells)
    centred = np.column_stack([coded - coded.mean(axis=0)])
    ridge = 0.1 * np.eye(coded.shape[1])
    slopes = np.linalg.solve(centred.T @ centred + ridge, centred.T @ (known.log - known.log.mean()))
    return np.where(slopes < -0.05, -1.0, 1.0)


def _places(factor: Factor) -> Floats:
    """Logs of positive levels, else coded levels; centred at 0."""
    places = factor.coded()
    if factor.numeric and float(factor.levels[0]) > 0:
        places = np.log(np.array([float(level) for level in factor.levels]))
    return np.asarray(places - (places[0] + places[-1]) / 2)


def _width(factor: Factor) -> int:
    return len(factor.levels) if factor.scale == "categorical" else 2
