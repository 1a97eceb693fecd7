"""A Gaussian process around a mean that is straight in what is not known of it: what two surrogates share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etude.workbench.surfaces.factors import Cell, Floats
from etude.workbench.surfaces.surrogate import Predicted
from etude.workbench.surfaces.surrogates.process import (
    Alone,
    Process,
    learned,
    left_out,
    variance_after,
    widened,
)


@dataclass(frozen=True, eq=False)
class Around:
    """A Fit."""

    name: str
    process: Process
    straight: Callable[[Sequence[Cell]], tuple[Floats, Floats]]
    """Of cells: the mean, and its basis (process.py)."""
    without: Callable[[int], Alone]
    """The same surrogate of all samples but one."""

    def predict(self, cells: Sequence[Cell]) -> Predicted:
        found = self.alone(cells)
        return Predicted(found.log, found.sd * self._widened)

    def alone(self, cells: Sequence[Cell]) -> Predicted:
        """As the process has it, whatever was seen of its errors."""
        return self.process.predict(cells, *self.straight(cells))

    def learned(self, cells: Sequence[Cell], among: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """See plans.Learning."""
        return learned(self.process, self._basis, cells, among, pending)

    def sd_after(self, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """See plans.Learning."""
        return np.sqrt(variance_after(self.process, self._basis, cells, pending)) * self._widened

    def _basis(self, cells: Sequence[Cell]) -> Floats:
        return self.straight(cells)[1]

    @cached_property
    def left_out(self) -> Predicted:
        """Of each sample from the others."""
        return left_out(self.process, self.without)

    @cached_property
    def _widened(self) -> float:
        return widened(self.process.data.known, self.left_out)
