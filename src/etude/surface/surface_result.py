"""A surface as it was mapped: what was measured, what was predicted between, and what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from etude.surface.factors import Cell, Floats, Space
from etude.surface.samples import Sample, State
from etude.surface.surrogate import Predicted


@dataclass(frozen=True, slots=True)
class Cost:
    """What one attempt at a cell took."""

    cell: Cell
    cost_s: float
    """Benchmarking time."""
    trials: int
    state: State
    """How it ended."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of the response at one cell."""

    cell: Cell
    state: State
    value: float | None
    low: float
    high: float
    """Between these it is, with the sample's confidence, or that of the surface; 0 and inf where there is no bound."""
    why: str = ""


@dataclass(frozen=True, eq=False)
class SurfaceResult:
    """All that is known of one surface."""

    space: Space
    response: str
    """Its name: `peak rate`."""
    unit: str
    """`1/s`, `s`, `B`, …, or empty."""
    better: Literal["higher", "lower"]
    samples: tuple[Sample, ...]
    """The last of a cell counts."""
    predicted: Predicted
    """Of `unmeasured`, in that order."""
    surrogate: str
    """By what; empty where nothing was predicted."""
    loo: tuple[float, ...] = ()
    """Relative errors of predicting each measured cell from all others."""
    costs: tuple[Cost, ...] = ()
    findings: tuple[str, ...] = ()
    """What makes numbers doubtful, a line each."""
    confidence: float = 0.95
    """Of intervals of predictions, and of all that is made of several cells."""

    @cached_property
    def last(self) -> dict[Cell, Sample]:
        """The sample that counts, of each cell that has one."""
        return {sample.cell: sample for sample in self.samples}

    @cached_property
    def unmeasured(self) -> tuple[Cell, ...]:
        """Cells without a measured value, in the order of the space."""
        return tuple(cell for cell in self.space if not self._has_value(cell))

    @cached_property
    def filled(self) -> Filled:
        """The response at every cell, as an array."""
        shape = tuple(len(factor.levels) for factor in self.space.factors)
        log, sd, measured = np.full(shape, np.nan), np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        for cell in self.space:
            if self._has_value(cell):
                sample = self.last[cell]
                log[cell], measured[cell] = math.log(sample.value or math.nan), True
                sd[cell] = math.sqrt(sample.variance) if math.isfinite(sample.variance) else 0.1
            elif (found := self._guess(cell)) is not None:
                log[cell], sd[cell] = found
        return Filled(self.space, self.confidence, log, sd, measured)

    def estimate(self, cell: Cell) -> Estimate:
        """What is known of one cell."""
        sample = self.last.get(cell)
        if sample is not None and sample.state != "predicted":
            return Estimate(cell, sample.state, sample.value, sample.low, sample.high, sample.why)
        found = self._guess(cell)
        if found is None:
            return Estimate(cell, "failed", None, 0.0, math.inf, "nothing is known of it")
        middle, half = found[0], z_of(self.confidence) * found[1]
        value = math.exp(middle)
        return Estimate(cell, "predicted", value, math.exp(middle - half), math.exp(middle + half))

    def _has_value(self, cell: Cell) -> bool:
        sample = self.last.get(cell)
        return sample is not None and sample.state == "measured" and (sample.value or 0.0) > 0

    def _guess(self, cell: Cell) -> tuple[float, float] | None:
        """Log and its sd as predicted, within the bounds that were measured; of a failed cell nothing."""
        sample, place = self.last.get(cell), self._places.get(cell)
        if place is None or (sample is not None and sample.state == "failed"):
            return None
        if place >= len(self.predicted.log) or not math.isfinite(self.predicted.sd[place]):
            return None
        middle = float(self.predicted.log[place])
        if sample is not None and sample.state == "bounded":
            low = math.log(sample.low) if sample.low > 0 else -math.inf
            middle = min(max(middle, low), math.log(sample.high))
        return middle, float(self.predicted.sd[place])

    @cached_property
    def _places(self) -> dict[Cell, int]:
        return {cell: place for place, cell in enumerate(self.unmeasured)}


@dataclass(frozen=True, eq=False)
class Filled:
    """Logs of the response in an array with a dimension for each factor."""

    space: Space
    confidence: float
    log: Floats
    """NaN where nothing is known."""
    sd: Floats
    measured: NDArray[np.bool_]
    """Predicted where not."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Cells of which something is known."""
        return np.asarray(np.isfinite(self.log))

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """A weighted sum of logs and its sd.

        Measured cells err each by itself. Predictions come from one model: those that are added are counted as if
        they all erred together, and so are those that are subtracted; this is never too narrow.
        """
        used = weights != 0
        w, sd, own = weights[used], self.sd[used], self.measured[used]
        variance = float(((w * sd)[own] ** 2).sum())
        for side in (w > 0, w < 0):
            variance += float(np.abs((w * sd)[side & ~own]).sum()) ** 2
        return float((w * self.log[used]).sum()), math.sqrt(variance)


def z_of(confidence: float, count: int = 1) -> float:
    """Of the normal distribution, two-sided; for `count` statements of which all shall hold (Bonferroni)."""
    return float(special.ndtri(1 - (1 - confidence) / (2 * count)))
