"""The knobs of a workload, as `etude-engine load --preset NAME --show` prints them, and the laws that they name.

The laws are written here anew, after what docs/reference/workloads.md says of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from support.distributions import Numbers


@dataclass(frozen=True)
class Knobs:
    """By name, as TOML has them."""

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def number(self, name: str) -> float:
        return float(self.values[name])

    @property
    def mix(self) -> dict[str, float]:
        """Weights of kinds that are drawn."""
        return {str(kind): float(weight) for kind, weight in self.values["mix"].items() if weight}

    def zipf(self, name: str) -> float | None:
        """The exponent, if a popularity is Zipf's."""
        law, _, rest = str(self.values[name]).partition(":")
        return float(rest) if law == "zipf" else None

    def share(self, name: str) -> float | None:
        """The working set, if a popularity has one."""
        law, _, rest = str(self.values[name]).partition(":")
        return float(rest) if law == "share" else None


def read_knobs(text: str) -> Knobs:
    """Of what `--show` prints. Knobs may stand in tables of their own; their names are what counts."""
    found: dict[str, Any] = {}
    for name, value in tomllib.loads(text).items():
        if isinstance(value, dict) and name != "mix":
            found |= value
        else:
            found[name] = value
    return Knobs(found)


@dataclass(frozen=True)
class Law:
    """Of whole numbers. One of `fixed` (a value and its share) and `below` (a distribution function; what is drawn is
    rounded up) is there."""

    fixed: Mapping[int, float] | None
    below: Callable[[Numbers], Numbers] | None
    told: str

    def mean(self) -> float:
        """Of the law, by summing what is above each step of a fine grid."""
        if self.fixed is not None:
            whole = sum(self.fixed.values())
            return sum(value * part for value, part in self.fixed.items()) / whole
        assert self.below is not None
        grid = np.concatenate([[0.0], np.geomspace(1e-2, 1e12, 400_000)])
        above = 1 - self.below(grid)
        return float(np.trapezoid(above, grid)) + 0.5  # rounding up adds half a byte on average


def law_of(text: str, largest: float = float(1 << 50)) -> Law:
    """fixed:B, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, tailed:MEDIAN:SIGMA:TAIL:CUT:ALPHA or table:B=WEIGHT,…

    What is above `largest` is drawn anew."""
    name, _, rest = text.partition(":")
    if name == "table":
        rows = [row.split("=") for row in rest.split(",")]
        return Law({int(float(size)): float(weight) for size, weight in rows}, None, text)
    numbers = [float(part) for part in rest.split(":")]
    if name == "fixed":
        return Law({int(numbers[0]): 1.0}, None, text)
    if name == "uniform":
        low, high = numbers
        return Law(None, lambda at: np.clip((at - low + 1) / (high - low + 1), 0.0, 1.0), text)
    whole = _lognormal(*numbers) if name == "lognormal" else _tailed(*numbers)
    most = float(whole(np.array([largest]))[0])
    return Law(None, lambda at: np.minimum(whole(at) / most, 1.0), text)


def _lognormal(median: float, sigma: float) -> Callable[[Numbers], Numbers]:
    return lambda at: np.asarray(stats.lognorm.cdf(at, sigma, scale=median))


def _tailed(
    median: float, sigma: float, tail: float, cut: float, alpha: float
) -> Callable[[Numbers], Numbers]:
    body = _lognormal(median, sigma)
    full = float(body(np.array([cut]))[0])

    def below(at: Numbers) -> Numbers:
        at = np.asarray(at, dtype=float)
        beyond = 1 - tail * (cut / np.maximum(at, cut)) ** alpha
        return np.asarray(np.where(at <= cut, (1 - tail) * body(at) / full, beyond))

    return below
