"""A mapped surface: samples, predictions and costs; and the text of its responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from etude.surface.factors import Configuration, Floats, Space
from etude.surface.samples import Sample, State
from etude.surface.surrogates import Predicted
from etude.units.formatting import digits, quantity


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one attempt at a configuration."""

    cell: Configuration
    cost_s: float
    """Benchmarking time."""
    trials: int
    state: State
    """State at its end."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Response at one configuration, measured or predicted."""

    cell: Configuration
    state: State
    value: float | None
    low: float
    high: float
    """Interval of the response, at the confidence of the sample or the surface; 0 and inf: no bound."""
    why: str = ""


@dataclass(frozen=True, eq=False)
class SurfaceResult:
    """All data of one surface."""

    space: Space
    response: str
    """Name of the response: `peak rate`."""
    unit: str
    """`1/s`, `s`, `B`, …, or empty."""
    better: Literal["higher", "lower"]
    samples: tuple[Sample, ...]
    """The last sample of a configuration counts."""
    predicted: Predicted
    """Predictions of `unmeasured`, in that order."""
    surrogate: str
    """Name of the surrogate; empty without predictions."""
    loo: tuple[float, ...] = ()
    """Leave-one-out relative errors of the measured configurations."""
    costs: tuple[Cost, ...] = ()
    findings: tuple[str, ...] = ()
    """Reasons to doubt the numbers, a line each."""
    confidence: float = 0.95
    """Confidence of intervals of predictions, and of all comparisons of configurations."""

    @cached_property
    def last(self) -> dict[Configuration, Sample]:
        """The sample of each configuration that counts."""
        return {sample.cell: sample for sample in self.samples}

    @cached_property
    def unmeasured(self) -> tuple[Configuration, ...]:
        """Configurations without a measured value, in the order of the space."""
        return tuple(configuration for configuration in self.space if not self._has_value(configuration))

    @cached_property
    def filled(self) -> Filled:
        """The response at every configuration, as an array."""
        shape = tuple(len(factor.levels) for factor in self.space.factors)
        log, sd, measured = np.full(shape, np.nan), np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        for configuration in self.space:
            if self._has_value(configuration):
                sample = self.last[configuration]
                log[configuration], measured[configuration] = math.log(sample.value or math.nan), True
                sd[configuration] = math.sqrt(sample.variance) if math.isfinite(sample.variance) else 0.1
            elif (found := self._guess(configuration)) is not None:
                log[configuration], sd[configuration] = found
        return Filled(self.space, self.confidence, log, sd, measured)

    def estimate(self, configuration: Configuration) -> Estimate:
        """Estimate of one configuration."""
        sample = self.last.get(configuration)
        if sample is not None and sample.state != "predicted":
            return Estimate(configuration, sample.state, sample.value, sample.low, sample.high, sample.why)
        found = self._guess(configuration)
        if found is None:
            return Estimate(configuration, "failed", None, 0.0, math.inf, "nothing is known of it")
        middle, half = found[0], z_of(self.confidence) * found[1]
        value = math.exp(middle)
        return Estimate(configuration, "predicted", value, math.exp(middle - half), math.exp(middle + half))

    def _has_value(self, configuration: Configuration) -> bool:
        sample = self.last.get(configuration)
        return sample is not None and sample.state == "measured" and (sample.value or 0.0) > 0

    def _guess(self, configuration: Configuration) -> tuple[float, float] | None:
        """Predicted log and its sd, within measured bounds; None for a failed configuration."""
        sample, place = self.last.get(configuration), self._places.get(configuration)
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
    def _places(self) -> dict[Configuration, int]:
        return {configuration: place for place, configuration in enumerate(self.unmeasured)}


@dataclass(frozen=True, eq=False)
class Filled:
    """Log responses in an array with one dimension per factor."""

    space: Space
    confidence: float
    log: Floats
    """NaN: unknown."""
    sd: Floats
    measured: NDArray[np.bool_]
    """True: measured; False: predicted."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """True for known configurations."""
        return np.asarray(np.isfinite(self.log))

    def apart(self, one: Configuration, other: Configuration) -> tuple[float, float]:
        """Difference of two configurations' logs, and its sd."""
        return float(self.log[one] - self.log[other]), math.hypot(float(self.sd[one]), float(self.sd[other]))

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """A weighted sum of logs and its sd.

        Errors of measured configurations are independent. Predictions come from one model: errors of the added ones are
        treated as fully correlated, and so are those of the subtracted ones, which is conservative.
        """
        used = weights != 0
        w, sd, own = weights[used], self.sd[used], self.measured[used]
        variance = float(((w * sd)[own] ** 2).sum())
        for side in (w > 0, w < 0):
            variance += float(np.abs((w * sd)[side & ~own]).sum()) ** 2
        return float((w * self.log[used]).sum()), math.sqrt(variance)


def z_of(confidence: float, count: int = 1) -> float:
    """Two-sided normal quantile for `count` simultaneous statements (Bonferroni)."""
    return float(special.ndtri(1 - (1 - confidence) / (2 * count)))


def value_text(value: float | None, unit: str) -> str:
    """`512.4/s`, `38.12 ms`; a dash if there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if unit == "1/s":
        return f"{digits(value)}/s"
    return quantity(value, unit) if unit in ("s", "B", "B/s") else f"{digits(value)} {unit}".rstrip()


def span_text(low: float, high: float, unit: str) -> str:
    """`493.0/s … 537.0/s`; a question mark for a missing bound."""
    ends = ["?" if not 0 < end < math.inf else value_text(end, unit) for end in (low, high)]
    return ends[0] if ends[0] == ends[1] == "?" else f"{ends[0]} … {ends[1]}"


def estimate_text(each: Estimate, unit: str) -> str:
    """Value of a configuration; `> 5,000/s` if it has only a bound."""
    if each.value is not None:
        return value_text(each.value, unit)
    if each.state == "bounded" and each.low > 0 and math.isinf(each.high):
        return f"> {value_text(each.low, unit)}"
    if each.state == "bounded" and math.isfinite(each.high):
        return f"< {value_text(each.high, unit)}" if each.low <= 0 else span_text(each.low, each.high, unit)
    return "failed"


def axis_label(name: str, unit: str) -> str:
    """`peak rate (1/s)`."""
    return f"{name} ({unit})" if unit else name


def joined(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
