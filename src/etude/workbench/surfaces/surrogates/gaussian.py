"""A Gaussian process of the log response: smooth, and nothing else is supposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from etude.workbench.surfaces.factors import Cell, Floats, Space
from etude.workbench.surfaces.samples import Known
from etude.workbench.surfaces.surrogate import Predicted
from etude.workbench.surfaces.surrogates.process import (
    Alone,
    Data,
    Prior,
    Process,
    fitted,
    learned,
    left_out,
    widened,
)

LEVEL, SLOPE = 1.0, 0.6
"""Standard deviations before any sample: of the level around the samples' mean, and of a slope in coded levels."""
LEAST = 3
"""Samples."""
SMOOTH = Prior()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A Fit."""

    process: Process
    centre: float
    prior: Prior
    name: str

    def predict(self, cells: Sequence[Cell]) -> Predicted:
        found = self._alone(cells)
        return Predicted(found.log, found.sd * self._widened)

    def learned(self, cells: Sequence[Cell], among: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """See plans.Learning."""
        basis = partial(trend, self.process.data.space)
        return learned(self.process, basis, cells, among, pending)

    @cached_property
    def left_out(self) -> Predicted:
        """Of each sample from the others."""
        return left_out(self.process, self._without)

    def _alone(self, cells: Sequence[Cell]) -> Predicted:
        mean = np.full(len(cells), self.centre)
        return self.process.predict(cells, mean, trend(self.process.data.space, cells))

    def _without(self, at: int) -> Alone:
        data = self.process.data
        return _fitted(data.space, data.known.without(at), self.prior, self.name, self.process.logs)._alone

    @cached_property
    def _widened(self) -> float:
        return widened(self.process.data.known, self.left_out)


@dataclass(frozen=True)
class Gaussian:
    """A Surrogate."""

    prior: Prior = SMOOTH
    name: str = "gp"

    def fit(self, space: Space, known: Known) -> Fitted | None:
        return _fitted(space, known, self.prior, self.name) if len(known.cells) >= LEAST else None


def _fitted(space: Space, known: Known, prior: Prior, name: str, start: Floats | None = None) -> Fitted:
    centre = float(known.log.mean())
    data = Data(space, known, known.log - centre, trend(space, known.cells))
    return Fitted(fitted(data, prior, start), centre, prior, name)


def trend(space: Space, cells: Sequence[Cell]) -> Floats:
    """A constant and a slope in each factor whose levels have an order, scaled by what they may be."""
    coded = space.coded(cells)
    sloping = [at for at, factor in enumerate(space.factors) if factor.scale != "categorical"]
    return np.column_stack([np.full(len(cells), LEVEL), SLOPE * coded[:, sloping]])
