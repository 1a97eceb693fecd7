"""Mean response of simulated servers against load.

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
"""R(1): mean response at the peak, R_sat of the paper."""

LONGEST_MS = 2000.0
"""Upper bound of responses: clients time out."""


class Curve(Protocol):
    """Mean response against load."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    def response_s(self, rho: float) -> float:
        """Mean response at load factor `rho` ≥ 0, s; 0.040 at 1."""
        ...


@dataclass(frozen=True, slots=True)
class MM1:
    """M/M/1 queue, as in the paper's model: R = 1/(a - bρ)."""

    name: str = "mm1"
    idle_ms: float = 4.24

    def response_s(self, rho: float) -> float:
        a = 1 / self.idle_ms
        left = a - (a - 1 / LIMIT_MS) * rho
        return _seconds(1 / left if left > 0 else math.inf)


@dataclass(frozen=True, slots=True)
class MMc:
    """M/M/c queue (Erlang C)."""

    name: str = "mmc"
    idle_ms: float = 2.5
    workers: int = 4

    def response_s(self, rho: float) -> float:
        return _seconds(_mmc(self.idle_ms, self.workers, rho * _busy_at_peak(self.idle_ms, self.workers)))


@dataclass(frozen=True, slots=True)
class Knee:
    """Almost linear up to the peak, then a wall."""

    name: str = "knee"
    idle_ms: float = 3.0

    def response_s(self, rho: float) -> float:
        wall = LIMIT_MS - 1.5 * self.idle_ms
        return _seconds(self.idle_ms * (1 + rho / 2) + wall * min(rho, 10.0) ** 40)


@dataclass(frozen=True, slots=True)
class Ramp:
    """Slow rise: 1 % more load costs little more than 1 % more response."""

    name: str = "ramp"
    idle_ms: float = 6.0

    def response_s(self, rho: float) -> float:
        return _seconds(self.idle_ms + (LIMIT_MS - self.idle_ms) * rho**1.5)


# The following curves belong to no family that a policy fits.


@dataclass(frozen=True, slots=True)
class Cache:
    """Step at three quarters of the peak, where the working set exceeds a cache, before the rise."""

    name: str = "cache"

    def response_s(self, rho: float) -> float:
        rise = LIMIT_MS - 6.5 - 12.0 * _logistic(0.25 / 0.02)
        return _seconds(5.0 + 1.5 * rho + 12.0 * _logistic((rho - 0.75) / 0.02) + rise * min(rho, 10.0) ** 12)


@dataclass(frozen=True, slots=True)
class Priority:
    """M/G/1 with batch work of higher priority: Cobham's waiting time of the second of two classes.

    A quarter of the time goes to batch jobs; services of 4 ms, their squared coefficient of variation 4.
    """

    name: str = "priority"

    def response_s(self, rho: float) -> float:
        return _seconds(_second_class(rho * _priority_at_peak()))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Piecewise linear, like a server that switches modes."""

    name: str = "pieces"

    def response_s(self, rho: float) -> float:
        loads = (0.0, 0.40, 0.85, 1.05, 1.20, 1.50)
        return _seconds(float(np.interp(rho, loads, (7.0, 9.0, 16.0, 48.0, 200.0, LONGEST_MS))))


@dataclass(frozen=True, slots=True)
class Plateaus:
    """Hockey stick with a second plateau: flat, a rise to half the limit, flat again, and the blade."""

    name: str = "plateaus"

    def response_s(self, rho: float) -> float:
        blade = LIMIT_MS - 8.0 - 16.0 * _logistic(0.4 / 0.03)
        bend = max(rho - 0.9, 0.0) / 0.1
        return _seconds(6.0 + 2.0 * rho + 16.0 * _logistic((rho - 0.6) / 0.03) + blade * bend**2)


@dataclass(frozen=True, slots=True)
class Logistic:
    """Logistic curve with a plateau of 160 ms above the peak: a bounded queue."""

    name: str = "logistic"

    def response_s(self, rho: float) -> float:
        width, low, high = 0.06, 5.0, 160.0
        share = (LIMIT_MS - low) / (high - low)
        middle = 1 - width * math.log(share / (1 - share))
        return _seconds(low + (high - low) * _logistic((rho - middle) / width))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponential growth without a pole."""

    name: str = "exponential"
    idle_ms: float = 5.0

    def response_s(self, rho: float) -> float:
        return _seconds(self.idle_ms * math.exp(min(rho, 20.0) * math.log(LIMIT_MS / self.idle_ms)))


@dataclass(frozen=True, slots=True)
class Batching:
    """Waits for batches to fill at low load, like interrupt moderation: response falls before it rises."""

    name: str
    timer_ms: float

    def response_s(self, rho: float) -> float:
        a, decay = 1 / 4.24, 0.12
        at_peak = LIMIT_MS - self.timer_ms * math.exp(-1 / decay)
        left = a - (a - 1 / at_peak) * rho
        return _seconds(self.timer_ms * math.exp(-rho / decay) + (1 / left if left > 0 else math.inf))


@dataclass(frozen=True, slots=True)
class Hump:
    """Hump above the limit at half the peak, fine above it: a governor that raises the clock only at higher load."""

    name: str

    def response_s(self, rho: float) -> float:
        return _seconds(1e3 * MM1().response_s(rho) + 50.0 * math.exp(-(((rho - 0.55) / 0.05) ** 2)))


@dataclass(frozen=True, slots=True)
class CollapsingThroughput:
    """Beyond `collapse` fewer and fewer requests are answered, but quickly: their mean alone would look fine again."""

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
        """Mean slowdown of all windows, the divisor that preserves the mean."""
        tail = 1 - math.pow(1 + self.most / self.scale, 1 - self.shape)
        return 1 + self.share * self.scale / (self.shape - 1) * tail


@dataclass(frozen=True, slots=True)
class Slow:
    """Hysteresis: after an overload beyond load factor `beyond`, responses take 1 + `extra` times as long, decaying
    with `fades_s`."""

    beyond: float
    extra: float
    fades_s: float


@dataclass(frozen=True, slots=True)
class ServerBehaviour:
    """Behaviour of a simulated server besides its mean response."""

    stalls: Stalls | None = None
    slow_share: float = 0.0
    """Share of trials in the slow one of two modes…"""
    slow_factor: float = 1.0
    """…in which responses take this many times as long; the mean over both is the curve's."""
    falls_per_h: float = 0.0
    """Share of the peak that is lost per hour of benchmarking time."""
    slow: Slow | None = None
    collapse: float | None = None
    """Load factor beyond which throughput falls with the cube of the load and the other requests fail."""


@dataclass(frozen=True, slots=True)
class CurveWithBehaviour:
    """A curve of means over all effects of the behaviour."""

    name: str
    curve: Curve
    behaviour: ServerBehaviour

    def response_s(self, rho: float) -> float:
        return self.curve.response_s(rho)


def behaviour_of(curve: Curve) -> ServerBehaviour:
    """Behaviour of a curve; the defaults for a plain one."""
    return curve.behaviour if isinstance(curve, CurveWithBehaviour) else ServerBehaviour()


def _named(*curves: Curve) -> Mapping[str, Curve]:
    return MappingProxyType({curve.name: curve for curve in curves})


CURVES = _named(
    MM1(),
    MMc(),
    Knee(),
    Ramp(),
    CurveWithBehaviour("tail", MM1(), ServerBehaviour(stalls=Stalls(0.03, 4.0, 1.7, 60.0))),
    Cache(),
    Priority(),
    Pieces(),
    Plateaus(),
    Logistic(),
    Exponential(),
)
"""Curves that rise with the load. Policies fit the first five families, not the others."""

FAMILIES = ("mm1", "mmc", "knee", "ramp", "tail")
"""Names of CURVES whose shapes a policy may know."""

TROUBLED = _named(
    # One window in twenty carries half of the mean; one in seventy carries two fifths.
    CurveWithBehaviour("stalling", MM1(), ServerBehaviour(stalls=Stalls(0.05, 40.0, 2.5, 100.0))),
    CurveWithBehaviour("stalling-rarely", MM1(), ServerBehaviour(stalls=Stalls(0.015, 120.0, 2.5, 85.0))),
    CurveWithBehaviour("thrashing", CollapsingThroughput("thrashing", 1.08), ServerBehaviour(collapse=1.08)),
    Batching("non-monotone", 30.0),
    Batching("non-monotone-low", 80.0),
    Hump("hump"),
    CurveWithBehaviour("hysteretic", MM1(), ServerBehaviour(slow=Slow(1.05, 1.5, 1200.0))),
    CurveWithBehaviour("bimodal", MM1(), ServerBehaviour(slow_share=0.3, slow_factor=1.6)),
    CurveWithBehaviour("drifting", MM1(), ServerBehaviour(falls_per_h=0.2)),
)
"""Curves that one peak rate describes badly. *non-monotone-low* is over the limit at its lowest loads, *hump* at about
half its peak; λ* is the highest load at which the limit is met."""


def saturation(curve: Curve) -> float:
    """Load factor beyond which throughput no longer grows (responses reach `LONGEST_MS`); inf if there is none."""
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
    """s + W0/((1 - σ)(1 - σ - u)), ms; W0: residual time of the job in service, batch jobs 12 ms and exponential."""
    batch, service, squared_cv = 0.25, 4.0, 4.0
    free = 1 - batch - busy
    if free <= 0:
        return math.inf
    left = batch * 12.0 + busy * service * (1 + squared_cv) / 2
    return service + left / ((1 - batch) * free)


@lru_cache(maxsize=1)
def _priority_at_peak() -> float:
    return float(brentq(lambda busy: _second_class(busy) - LIMIT_MS, 0.0, 0.75 - 1e-9, xtol=1e-14))
