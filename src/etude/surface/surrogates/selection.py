"""Which surrogate to believe, by what it predicts of samples that it has not seen; samples, where too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from etude.surface.distances import distance
from etude.surface.factors import Cell, Floats, Space
from etude.surface.plans import Learning, Lessons
from etude.surface.samples import KnownResponses
from etude.surface.surrogate import Fit, Predicted
from etude.surface.surrogates.gp_linear_mean import GpLinearMean
from etude.surface.surrogates.process import Alone, Data, Prior, fitted
from etude.surface.surrogates.quadratic import Quadratic
from etude.surface.surrogates.softmin import SoftMinimum

LEVEL, SLOPE = 1.0, 0.6
"""Standard deviations before any sample: of the level around the samples' mean, and of a slope in coded levels."""
LEAST = 3
"""Samples."""
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

    def straight(cells: Sequence[Cell]) -> tuple[Floats, Floats]:
        return np.full(len(cells), centre), trend(space, cells)

    def without(at: int) -> Alone:
        return _fitted(space, known.without(at), prior, name, process.logs).alone

    return GpLinearMean(name, process, straight, without)


def trend(space: Space, cells: Sequence[Cell]) -> Floats:
    """A constant and a slope in each factor whose levels have an order, scaled by what they may be."""
    coded = space.coded(cells)
    sloping = [at for at, factor in enumerate(space.factors) if factor.scale != "categorical"]
    return np.column_stack([np.full(len(cells), LEVEL), SLOPE * coded[:, sloping]])


class Judging(Fit, Protocol):
    """A Fit that can be judged."""

    @property
    def left_out(self) -> Predicted:
        """What would have been said of each sample without it."""
        ...


class Candidate(Protocol):
    """A Surrogate of such."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...

    def fit(self, space: Space, known: KnownResponses) -> Judging | None:
        """As a Surrogate's."""
        ...


FALLBACK = Gaussian()
SURROGATES: tuple[Candidate, ...] = (FALLBACK, SoftMinimum(), Quadratic(logs=True), Quadratic())
"""All that are tried. The first stands where none can be judged."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How one surrogate did on left-out samples."""

    name: str
    error: float
    """Mean absolute error, relative to the response; inf where it cannot be told."""
    spread: float
    """Standard error of that mean, over samples."""
    why: str = ""
    """Why there is none."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A Fit: the one that was chosen, and how all did."""

    fit: Judging
    judged: tuple[Judged, ...]
    """In the order of the surrogates."""
    known: KnownResponses
    """What all were fitted to."""

    @property
    def name(self) -> str:
        """Of the surrogate that was chosen."""
        return self.fit.name

    @property
    def left_out(self) -> Predicted:
        """Of the one that was chosen."""
        return self.fit.left_out

    def predict(self, cells: Sequence[Cell]) -> Predicted:
        return self.fit.predict(cells)


@dataclass(frozen=True, eq=False)
class LearningChoice(Choice):
    """One that knows how cells hang together (plans.Learning)."""

    learning: Learning

    def lessons(self, cells: Sequence[Cell], among: Sequence[Cell]) -> Lessons:
        """See plans.Learning."""
        return self.learning.lessons(cells, among)

    def sd_after(self, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """See plans.Learning."""
        return self.learning.sd_after(cells, pending)


@dataclass(frozen=True)
class SelectedSurrogate:
    """A Surrogate: of several, by leave-one-out error."""

    surrogates: tuple[Candidate, ...] = SURROGATES
    name: str = "auto"

    def fit(self, space: Space, known: KnownResponses) -> Choice | None:
        known = subsample(space, known)
        fits = [surrogate.fit(space, known) for surrogate in self.surrogates]
        judged = tuple(
            judge(surrogate.name, fit, known) for surrogate, fit in zip(self.surrogates, fits, strict=True)
        )
        there = [(each.error, at) for at, each in enumerate(judged) if fits[at] is not None]
        best = fits[min(there)[1]] if there else None
        if best is None:
            return None
        if isinstance(best, Learning):
            return LearningChoice(best, judged, known, best)
        return Choice(best, judged, known)


def judge(name: str, fit: Judging | None, known: KnownResponses) -> Judged:
    """By its left-out samples."""
    if fit is None:
        return Judged(name, math.inf, math.inf, f"{len(known.cells)} samples are too few")
    left = fit.left_out
    if not np.all(np.isfinite(left.sd)):
        return Judged(name, math.inf, math.inf, f"{len(known.cells)} samples are too few to leave one out")
    off = np.abs(np.expm1(np.minimum(left.log - known.log, 10.0)))
    return Judged(name, float(off.mean()), float(off.std(ddof=1)) / math.sqrt(off.size))


MOST = 500
"""Samples that a surrogate is fitted to."""
NEWEST = 100
"""Of them, those that came last."""


def subsample(space: Space, known: KnownResponses, most: int = MOST, newest: int = NEWEST) -> KnownResponses:
    """At most so many samples, in their order; all where they are no more."""
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
