"""Samples: the information on single configurations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from etude import codec
from etude.peak.policies.belief.grid import weight_of_seed
from etude.surface.factors import Configuration, Floats

State = Literal["measured", "predicted", "bounded", "failed"]
"""*bounded*: the response is beyond the tried loads, on one side. *failed*: nothing is known."""

UNKNOWN = 0.1**2
"""Variance of a log response with an unbounded interval."""
LEAST_OWN = 0.1
"""Minimum share of the information in a sample that is attributed to its measurement."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One configuration of a surface."""

    cell: Configuration
    state: State
    value: codec.Number | None
    """The response; None if there is only a bound, or nothing."""
    low: codec.Number
    high: codec.Number
    """Interval of the response at `confidence`; 0 and inf: no bound."""
    confidence: codec.Share
    cost_s: codec.Number = 0.0
    """Benchmarking time."""
    trials: int = 0
    kept: bool = True
    """True if its target is met."""
    why: str = ""
    """Reason for a missed target, or source of a prediction."""
    expected: codec.Positive | None = None
    """Response expected before the measurement; None if there was none."""
    spread: codec.Positive | None = None
    """Standard deviation of its log; None if it was another configuration's response."""
    counted: bool = False
    """True if the expectation is part of `value`, `low` and `high`."""

    @property
    def variance(self) -> float:
        """Variance of the log response, from its interval; inf without a value."""
        if self.value is None or not (self.low > 0 and math.isfinite(self.high)):
            return math.inf
        quantile = float(special.ndtri((1 + self.confidence) / 2))
        return max((math.log(self.high / self.low) / (2 * quantile)) ** 2, 1e-8)

    @property
    def alone(self) -> tuple[float, float]:
        """Log response and its variance from the measurements alone, without the expectation."""
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
    """Responses of measured configurations in logs, the input of surrogates."""

    cells: tuple[Configuration, ...]
    log: Floats
    """Log responses, shape (n,)."""
    variance: Floats
    """Measurement variances, shape (n,)."""

    def without(self, at: int) -> KnownResponses:
        """All but one."""
        return self.only([number for number in range(len(self.cells)) if number != at])

    def only(self, which: Sequence[int]) -> KnownResponses:
        """Responses with these indices."""
        return KnownResponses(tuple(self.cells[at] for at in which), self.log[which], self.variance[which])


def known_samples(samples: Sequence[Sample]) -> KnownResponses:
    """Measured values above 0, the last of each configuration, in the order of the samples."""
    last = {
        each.cell: each
        for each in samples
        if each.state == "measured" and each.value is not None and each.value > 0
    }
    alone = np.array([each.alone for each in last.values()], dtype=float).reshape(-1, 2)
    return KnownResponses(tuple(last), alone[:, 0], alone[:, 1])
