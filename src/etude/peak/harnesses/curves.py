"""How a server's mean response grows with its load: the shapes that simulated servers have.

A load is given as its load factor ρ, the load over the peak rate λ* ("Cutting Corners", section 2.2). At ρ = 1 every
server answers within 40 ms on average, and no answer takes longer than 2 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

LIMIT_MS = 40.0
"""R(1): the mean response at the peak, R_sat of the paper."""

LONGEST_MS = 2000.0
"""Nobody waits longer."""


class Curve(Protocol):
    """Mean response against load."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...

    def response_s(self, rho: float) -> float:
        """The mean response at load factor `rho` ≥ 0, s; 0.040 at 1."""
        ...


@dataclass(frozen=True, slots=True)
class MM1:
    """One queue, as the paper's model has it: R = 1/(a - bρ)."""

    name: str = "mm1"
    idle_ms: float = 4.24

    def response_s(self, rho: float) -> float:
        a = 1 / self.idle_ms
        left = a - (a - 1 / LIMIT_MS) * rho
        return _seconds(1 / left if left > 0 else math.inf)


@dataclass(frozen=True, slots=True)
class MMc:
    """One queue before several workers (Erlang's C)."""

    name: str = "mmc"
    idle_ms: float = 2.5
    workers: int = 4

    def response_s(self, rho: float) -> float:
        return _seconds(_mmc(self.idle_ms, self.workers, rho * _busy_at_peak(self.idle_ms, self.workers)))


@dataclass(frozen=True, slots=True)
class Knee:
    """Almost straight up to the peak, then a wall."""

    name: str = "knee"
    idle_ms: float = 3.0

    def response_s(self, rho: float) -> float:
        wall = LIMIT_MS - 1.5 * self.idle_ms
        return _seconds(self.idle_ms * (1 + rho / 2) + wall * min(rho, 10.0) ** 40)


@dataclass(frozen=True, slots=True)
class Ramp:
    """A slow rise: a percent of load is little more than a percent of response."""

    name: str = "ramp"
    idle_ms: float = 6.0

    def response_s(self, rho: float) -> float:
        return _seconds(self.idle_ms + (LIMIT_MS - self.idle_ms) * rho**1.5)


# Those from here on are of no family that a policy fits.


@dataclass(frozen=True, slots=True)
class Cache:
    """A step where the working set no longer fits a cache, at three quarters of the peak, before the rise."""

    name: str = "cache"

    def response_s(self, rho: float) -> float:
        rise = LIMIT_MS - 6.5 - 12.0 * _logistic(0.25 / 0.02)
        return _seconds(5.0 + 1.5 * rho + 12.0 * _logistic((rho - 0.75) / 0.02) + rise * min(rho, 10.0) ** 12)


@dataclass(frozen=True, slots=True)
class Priority:
    """M/G/1 behind batch work that goes first: Cobham's waiting time of the second of two classes.

    A quarter of the time goes to batch jobs; services of 4 ms, their squared coefficient of variation 4.
    """

    name: str = "priority"

    def response_s(self, rho: float) -> float:
        return _seconds(_second_class(rho * _priority_at_peak()))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Straight between points, as a server is that switches modes."""

    name: str = "pieces"

    def response_s(self, rho: float) -> float:
        loads = (0.0, 0.40, 0.85, 1.05, 1.20, 1.50)
        return _seconds(float(np.interp(rho, loads, (7.0, 9.0, 16.0, 48.0, 200.0, LONGEST_MS))))


@dataclass(frozen=True, slots=True)
class Plateaus:
    """A hockey stick with a second plateau: flat, a rise to half the limit, flat again, and the blade."""

    name: str = "plateaus"

    def response_s(self, rho: float) -> float:
        blade = LIMIT_MS - 8.0 - 16.0 * _logistic(0.4 / 0.03)
        bend = max(rho - 0.9, 0.0) / 0.1
        return _seconds(6.0 + 2.0 * rho + 16.0 * _logistic((rho - 0.6) / 0.03) + blade * bend**2)


@dataclass(frozen=True, slots=True)
class Logistic:
    """Ends in a plateau of 160 ms above the peak: a bounded queue."""

    name: str = "logistic"

    def response_s(self, rho: float) -> float:
        width, low, high = 0.06, 5.0, 160.0
        share = (LIMIT_MS - low) / (high - low)
        middle = 1 - width * math.log(share / (1 - share))
        return _seconds(low + (high - low) * _logistic((rho - middle) / width))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Every percent of load costs the same percent of response; no pole."""

    name: str = "exponential"
    idle_ms: float = 5.0

    def response_s(self, rho: float) -> float:
        return _seconds(self.idle_ms * math.exp(min(rho, 20.0) * math.log(LIMIT_MS / self.idle_ms)))


@dataclass(frozen=True, slots=True)
class Batching:
    """Waits for batches to fill at low load, as interrupt moderation does, so that it falls before it rises."""

    name: str
    timer_ms: float

    def response_s(self, rho: float) -> float:
        a, decay = 1 / 4.24, 0.12
        at_peak = LIMIT_MS - self.timer_ms * math.exp(-1 / decay)
        left = a - (a - 1 / at_peak) * rho
        return _seconds(self.timer_ms * math.exp(-rho / decay) + (1 / left if left > 0 else math.inf))


@dataclass(frozen=True, slots=True)
class Hump:
    """Too slow in a band about half its peak, fine above: a governor that raises the clock only beyond it."""

    name: str

    def response_s(self, rho: float) -> float:
        return _seconds(1e3 * MM1().response_s(rho) + 50.0 * math.exp(-(((rho - 0.55) / 0.05) ** 2)))


@dataclass(frozen=True, slots=True)
class FewAnswered:
    """Beyond `collapse` ever fewer are answered, and those quickly: their mean alone would look fine again."""

    name: str
    collapse: float

    def response_s(self, rho: float) -> float:
        worst = MM1().response_s(min(rho, self.collapse))
        fewer = min(self.collapse / max(rho, 1e-9), 1.0)
        return max(worst * math.pow(fewer, 6), min(worst, 0.015))


@dataclass(frozen=True, slots=True)
class Stalls:
    """Rare windows of 10 s that a stall makes 1 + min(`scale`·Lomax(`shape`), `most`) times as slow."""

    share: float
    scale: float
    shape: float
    most: float

    @property
    def mean_factor(self) -> float:
        """Of all windows: what is divided by, so that the mean stays."""
        tail = 1 - math.pow(1 + self.most / self.scale, 1 - self.shape)
        return 1 + self.share * self.scale / (self.shape - 1) * tail


@dataclass(frozen=True, slots=True)
class Slow:
    """After an overload beyond load factor `beyond` answers take 1 + `extra` times as long, decaying with `fades_s`."""

    beyond: float
    extra: float
    fades_s: float


@dataclass(frozen=True, slots=True)
class Manners:
    """What a server does besides answering in its mean time."""

    stalls: Stalls | None = None
    slow_share: float = 0.0
    """Of the trials, those that fall into the slow of two modes…"""
    slow_factor: float = 1.0
    """…in which answers take so many times as long as in the other; the mean over both is the curve's."""
    falls_per_h: float = 0.0
    """Share of its peak that it loses in an hour of benchmarking time."""
    slow: Slow | None = None
    collapse: float | None = None
    """Load factor beyond which throughput falls with the cube of the load, and the rest fails."""


@dataclass(frozen=True, slots=True)
class Mannered:
    """A curve and manners: again a curve, of the means over all of them."""

    name: str
    curve: Curve
    manners: Manners

    def response_s(self, rho: float) -> float:
        return self.curve.response_s(rho)


def manners_of(curve: Curve) -> Manners:
    """Those of a plain curve are none."""
    return curve.manners if isinstance(curve, Mannered) else Manners()


def _named(*curves: Curve) -> Mapping[str, Curve]:
    return MappingProxyType({curve.name: curve for curve in curves})


CURVES = _named(
    MM1(),
    MMc(),
    Knee(),
    Ramp(),
    Mannered("tail", MM1(), Manners(stalls=Stalls(0.03, 4.0, 1.7, 60.0))),
    Cache(),
    Priority(),
    Pieces(),
    Plateaus(),
    Logistic(),
    Exponential(),
)
"""All rise with the load. The first five are the families that policies fit, the others are not."""

FAMILIES = ("mm1", "mmc", "knee", "ramp", "tail")
"""Those of CURVES whose shapes a policy may know."""

TROUBLED = _named(
    # One window in twenty carries half of the mean; one in seventy carries two fifths.
    Mannered("stalling", MM1(), Manners(stalls=Stalls(0.05, 40.0, 2.5, 100.0))),
    Mannered("stalling-rarely", MM1(), Manners(stalls=Stalls(0.015, 120.0, 2.5, 85.0))),
    Mannered("thrashing", FewAnswered("thrashing", 1.08), Manners(collapse=1.08)),
    Batching("non-monotone", 30.0),
    Batching("non-monotone-low", 80.0),
    Hump("hump"),
    Mannered("hysteretic", MM1(), Manners(slow=Slow(1.05, 1.5, 1200.0))),
    Mannered("bimodal", MM1(), Manners(slow_share=0.3, slow_factor=1.6)),
    Mannered("drifting", MM1(), Manners(falls_per_h=0.2)),
)
"""Of which one peak rate says little. *non-monotone-low* is over the limit at its lowest loads, *hump* about half its
peak; λ* is the highest load at which the limit is kept."""


def saturation(curve: Curve) -> float:
    """The load factor beyond which no more is answered: where responses reach their longest; inf where they do not."""
    low, high = 1.0, 100.0
    if 1e3 * curve.response_s(high) < LONGEST_MS:
        return math.inf
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if 1e3 * curve.response_s(middle) >= LONGEST_MS else (middle, high)
    return high


def _seconds(ms: float) -> float:
    return 1e-3 * min(ms, LONGEST_MS)


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))


def _mmc(idle_ms: float, workers: int, busy: float) -> float:
    """r0·(1 + C(c, u)/(c(1 - u))), ms, with u = `busy`; inf where all are always busy."""
    if busy >= 1:
        return math.inf
    offered = workers * busy
    term = total = 1.0
    for k in range(1, workers):
        term *= offered / k
        total += term
    waiting = term * offered / workers / (1 - busy)
    return idle_ms * (1 + waiting / (total + waiting) / (workers * (1 - busy)))


@lru_cache(maxsize=16)
def _busy_at_peak(idle_ms: float, workers: int) -> float:
    return float(brentq(lambda busy: _mmc(idle_ms, workers, busy) - LIMIT_MS, 0.0, 1 - 1e-9, xtol=1e-14))


def _second_class(busy: float) -> float:
    """s + W0/((1 - σ)(1 - σ - u)), ms: W0 what is left of the job in service, batch jobs 12 ms and exponential."""
    batch, service, squared_cv = 0.25, 4.0, 4.0
    free = 1 - batch - busy
    if free <= 0:
        return math.inf
    left = batch * 12.0 + busy * service * (1 + squared_cv) / 2
    return service + left / ((1 - batch) * free)


@lru_cache(maxsize=1)
def _priority_at_peak() -> float:
    return float(brentq(lambda busy: _second_class(busy) - LIMIT_MS, 0.0, 0.75 - 1e-9, xtol=1e-14))
