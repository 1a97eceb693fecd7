"""A Gaussian process around a mean that is straight in what is not known of it: what two surrogates share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etude.workbench.surfaces.factors import Cell, Floats
from etude.workbench.surfaces.surrogate import Predicted
from etude.workbench.surfaces.surrogates.lessons import Lessons
from etude.workbench.surfaces.surrogates.process import Alone, Process, left_out, widened


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

    def lessons(self, cells: Sequence[Cell], among: Sequence[Cell]) -> Lessons:
        """See plans.Learning."""
        return Lessons(self.process, self._basis, cells, among)

    def sd_after(self, cells: Sequence[Cell], pending: Sequence[Cell]) -> Floats:
        """See plans.Learning."""
        taking = self.lessons(tuple(dict.fromkeys((*cells, *pending))), ())
        taking.take(pending)
        return np.asarray(np.sqrt(taking.variance[: len(cells)]) * self._widened)

    def _basis(self, cells: Sequence[Cell]) -> Floats:
        return self.straight(cells)[1]

    @cached_property
    def left_out(self) -> Predicted:
        """Of each sample from the others."""
        return left_out(self.process, self.without)

    @cached_property
    def _widened(self) -> float:
        return widened(self.process.data.known, self.left_out)
