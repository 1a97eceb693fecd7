"""What is known of a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from etude import codec
from etude.peak.policies.belief.seed import weight_of_seed
from etude.surface.factors import Cell, Floats

State = Literal["measured", "predicted", "bounded", "failed"]
"""*bounded*: the response is beyond what was tried, on one side. *failed*: nothing is known of it."""

UNKNOWN = 0.1**2
"""Variance of a log response whose interval has no end."""
LEAST_OWN = 0.1
"""The share of what is known of a cell that is taken to come from measuring it, at least."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One cell of a surface."""

    cell: Cell
    state: State
    value: codec.Number | None
    """The response; None where there is but a bound, or nothing."""
    low: codec.Number
    high: codec.Number
    """Between these it is, with the confidence of `confidence`; 0 and inf where there is no bound."""
    confidence: codec.Share
    cost_s: codec.Number = 0.0
    """Benchmarking time that it took."""
    trials: int = 0
    kept: bool = True
    """Whether what was promised of it is met."""
    why: str = ""
    """What stood in the way, or what it was predicted from."""
    expected: codec.Positive | None = None
    """What was expected before it was measured; None where nothing was."""
    spread: codec.Positive | None = None
    """Standard deviation of its log; None where it was but another cell's response."""
    counted: bool = False
    """Whether what was expected is part of `value`, `low` and `high`."""

    @property
    def variance(self) -> float:
        """Of the log of the response, by its interval; inf where it has no value."""
        if self.value is None or not (self.low > 0 and math.isfinite(self.high)):
            return math.inf
        quantile = float(special.ndtri((1 + self.confidence) / 2))
        return max((math.log(self.high / self.low) / (2 * quantile)) ** 2, 1e-8)

    @property
    def alone(self) -> tuple[float, float]:
        """Log of the response and its variance by the measurements alone: without what was expected."""
        assert self.value
        log, variance = math.log(self.value), min(self.variance, UNKNOWN)
        if not self.counted or self.expected is None or self.spread is None:
            return log, variance
        off = log - math.log(self.expected)
        weight = weight_of_seed(off, self.spread)
        left = 1 / max(1 / variance - weight, LEAST_OWN / variance)
        return log + off * weight * left, left


@dataclass(frozen=True, eq=False)
class KnownResponses:
    """Responses as surrogates take them: of measured cells, in logs."""

    cells: tuple[Cell, ...]
    log: Floats
    """Of the responses, shape (n,)."""
    variance: Floats
    """By measuring, shape (n,)."""

    def without(self, at: int) -> KnownResponses:
        """All but one."""
        return self.only([number for number in range(len(self.cells)) if number != at])

    def only(self, which: Sequence[int]) -> KnownResponses:
        """These, by their numbers."""
        return KnownResponses(tuple(self.cells[at] for at in which), self.log[which], self.variance[which])


def known_samples(samples: Sequence[Sample]) -> KnownResponses:
    """Those that were measured and have a value above 0, the last of each cell, in the order of the samples."""
    last = {
        each.cell: each
        for each in samples
        if each.state == "measured" and each.value is not None and each.value > 0
    }
    alone = np.array([each.alone for each in last.values()], dtype=float).reshape(-1, 2)
    return KnownResponses(tuple(last), alone[:, 0], alone[:, 1])
