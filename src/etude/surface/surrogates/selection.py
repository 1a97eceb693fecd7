"""Selection of a surrogate by leave-one-out error, and of a subsample for large maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude.surface.factors import Configuration, Floats, Space, distance
from etude.surface.plans import CovarianceFit
from etude.surface.samples import KnownResponses
from etude.surface.surrogates import CrossValidatedFit, Predicted, Surrogate
from etude.surface.surrogates.process import Gaussian, InformationGains
from etude.surface.surrogates.quadratic import Quadratic
from etude.surface.surrogates.softmin import SoftMinimum

FALLBACK = Gaussian()
SURROGATES: tuple[Surrogate, ...] = (FALLBACK, SoftMinimum(), Quadratic(logs=True), Quadratic())
"""Candidates. The first is the default if none can be evaluated."""


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Leave-one-out result of one surrogate."""

    name: str
    error: float
    """Mean absolute error, relative to the response; inf if unknown."""
    spread: float
    """Standard error of that mean over samples."""
    why: str = ""
    """Reason if unknown."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A Fit: the selected one, and the results of all."""

    fit: CrossValidatedFit
    judged: tuple[CrossValidation, ...]
    """Results in the order of the surrogates."""
    known: KnownResponses
    """Samples that all were fitted to."""

    @property
    def name(self) -> str:
        return self.fit.name

    @property
    def left_out(self) -> Predicted:
        return self.fit.left_out

    def predict(self, configurations: Sequence[Configuration]) -> Predicted:
        return self.fit.predict(configurations)


@dataclass(frozen=True, eq=False)
class CovarianceChoice(Choice):
    """A choice with the covariance of configurations (plans.CovarianceFit)."""

    covariance_fit: CovarianceFit

    def information_gains(
        self, configurations: Sequence[Configuration], among: Sequence[Configuration]
    ) -> InformationGains:
        return self.covariance_fit.information_gains(configurations, among)

    def sd_after(self, configurations: Sequence[Configuration], pending: Sequence[Configuration]) -> Floats:
        return self.covariance_fit.sd_after(configurations, pending)


@dataclass(frozen=True)
class SelectedSurrogate:
    """A Surrogate that selects one of several by leave-one-out error."""

    surrogates: tuple[Surrogate, ...] = SURROGATES
    name: str = "auto"

    def fit(self, space: Space, known: KnownResponses) -> Choice | None:
        known = subsample(space, known)
        fits = [surrogate.fit(space, known) for surrogate in self.surrogates]
        judged = tuple(
            cross_validate(surrogate.name, fit, known)
            for surrogate, fit in zip(self.surrogates, fits, strict=True)
        )
        there = [(each.error, at) for at, each in enumerate(judged) if fits[at] is not None]
        best = fits[min(there)[1]] if there else None
        if best is None:
            return None
        if isinstance(best, CovarianceFit):
            return CovarianceChoice(best, judged, known, best)
        return Choice(best, judged, known)


def cross_validate(name: str, fit: CrossValidatedFit | None, known: KnownResponses) -> CrossValidation:
    """Leave-one-out result of a fit."""
    if fit is None:
        return CrossValidation(name, math.inf, math.inf, f"{len(known.cells)} samples are too few")
    left = fit.left_out
    if not np.all(np.isfinite(left.sd)):
        return CrossValidation(
            name, math.inf, math.inf, f"{len(known.cells)} samples are too few to leave one out"
        )
    off = np.abs(np.expm1(np.minimum(left.log - known.log, 10.0)))
    return CrossValidation(name, float(off.mean()), float(off.std(ddof=1)) / math.sqrt(off.size))


MOST = 500
"""Maximum number of samples that a surrogate is fitted to."""
NEWEST = 100
"""Number of last samples that are always included."""


def subsample(space: Space, known: KnownResponses, most: int = MOST, newest: int = NEWEST) -> KnownResponses:
    """Subsample of at most `most` samples, in order: the newest, and others far from each other."""
    count = len(known.cells)
    if count <= most:
        return known
    chosen = list(range(count - newest, count))
    places = space.coded(known.cells)
    nearest = np.full(count, np.inf)
    for at in chosen:
        nearest = np.minimum(nearest, distance(space, places, places[at]))
    while len(chosen) < most:
        at = int(nearest.argmax())
        chosen.append(at)
        nearest = np.minimum(nearest, distance(space, places, places[at]))
    return known.only(sorted(chosen))
