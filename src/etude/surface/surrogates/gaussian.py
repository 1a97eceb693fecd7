"""A Gaussian process of the log response: smooth, and nothing else is supposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude.surface.factors import Cell, Floats, Space
from etude.surface.samples import KnownResponses
from etude.surface.surrogates.gp_linear_mean import GpLinearMean
from etude.surface.surrogates.process import Alone, Data, Prior, fitted

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
