"""Mean response of simulated servers against load.

A load is given as its load factor ρ, the load over the peak rate λ* ("Cutting Corners", section 2.2). At ρ = 1 every
server answers within 40 ms on average, and no answer takes longer than 2 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from scipy.optimize import brentq

LIMIT_MS = 40.0
"""R(1): mean response at the peak, R_sat of the paper."""

LONGEST_MS = 2000.0
"""Upper bound of responses: clients time out."""

COLLAPSE = 1.08
"""Load factor beyond which the thrashing server answers less."""


def mm1(rho: float) -> float:
    """M/M/1 queue, as in the paper's model: R = 1/(a - bρ)."""
    a = 1 / 4.24
    left = a - (a - 1 / LIMIT_MS) * rho
    return _seconds(1 / left if left > 0 else math.inf)


def mmc(rho: float) -> float:
    """M/M/c queue (Erlang C)."""
    return _seconds(_mmc(2.5, 4, rho * _busy_at_peak(2.5, 4)))


def knee(rho: float) -> float:
    """Almost linear up to the peak, then a wall."""
    idle_ms = 3.0
    wall = LIMIT_MS - 1.5 * idle_ms
    return _seconds(idle_ms * (1 + rho / 2) + wall * min(rho, 10.0) ** 40)


def ramp(rho: float) -> float:
    """Slow rise: 1 % more load costs little more than 1 % more response."""
    idle_ms = 6.0
    return _seconds(idle_ms + (LIMIT_MS - idle_ms) * rho**1.5)


# The following curves belong to no family that a policy fits.


def cache(rho: float) -> float:
    """Step at three quarters of the peak, where the working set exceeds a cache, before the rise."""
    rise = LIMIT_MS - 6.5 - 12.0 * _logistic(0.25 / 0.02)
    return _seconds(5.0 + 1.5 * rho + 12.0 * _logistic((rho - 0.75) / 0.02) + rise * min(rho, 10.0) ** 12)


def priority(rho: float) -> float:
    """M/G/1 with batch work of higher priority: Cobham's waiting time of the second of two classes.

    A quarter of the time goes to batch jobs; services of 4 ms, their squared coefficient of variation 4.
    """
    return _seconds(_second_class(rho * _priority_at_peak()))


def pieces(rho: float) -> float:
    """Piecewise linear, like a server that switches modes."""
    loads = (0.0, 0.40, 0.85, 1.05, 1.20, 1.50)
    return _seconds(float(np.interp(rho, loads, (7.0, 9.0, 16.0, 48.0, 200.0, LONGEST_MS))))


def plateaus(rho: float) -> float:
    """Hockey stick with a second plateau: flat, a rise to half the limit, flat again, and the blade."""
    blade = LIMIT_MS - 8.0 - 16.0 * _logistic(0.4 / 0.03)
    bend = max(rho - 0.9, 0.0) / 0.1
    return _seconds(6.0 + 2.0 * rho + 16.0 * _logistic((rho - 0.6) / 0.03) + blade * bend**2)


def logistic(rho: float) -> float:
    """Logistic curve with a plateau of 160 ms above the peak: a bounded queue."""
    width, low, high = 0.06, 5.0, 160.0
    share = (LIMIT_MS - low) / (high - low)
    middle = 1 - width * math.log(share / (1 - share))
    return _seconds(low + (high - low) * _logistic((rho - middle) / width))


def exponential(rho: float) -> float:
    """Exponential growth without a pole."""
    idle_ms = 5.0
    return _seconds(idle_ms * math.exp(min(rho, 20.0) * math.log(LIMIT_MS / idle_ms)))


def non_monotone(rho: float) -> float:
    """Waits of 30 ms for batches to fill at low load, like interrupt moderation: response falls before it rises."""
    return _batching(30.0, rho)


def non_monotone_low(rho: float) -> float:
    """Same with 80 ms: over the limit at the lowest loads."""
    return _batching(80.0, rho)


def _batching(timer_ms: float, rho: float) -> float:
    a, decay = 1 / 4.24, 0.12
    at_peak = LIMIT_MS - timer_ms * math.exp(-1 / decay)
    left = a - (a - 1 / at_peak) * rho
    return _seconds(timer_ms * math.exp(-rho / decay) + (1 / left if left > 0 else math.inf))


def hump(rho: float) -> float:
    """Hump above the limit at half the peak, fine above it: a governor that raises the clock only at higher load."""
    return _seconds(1e3 * mm1(rho) + 50.0 * math.exp(-(((rho - 0.55) / 0.05) ** 2)))


def thrashing(rho: float) -> float:
    """Beyond `COLLAPSE` fewer and fewer requests are answered, but quickly: their mean alone would look fine again."""
    worst = mm1(min(rho, COLLAPSE))
    fewer = min(COLLAPSE / max(rho, 1e-9), 1.0)
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
class Curve:
    """Mean response against load, over all effects of the server's behaviour."""

    name: str
    """Name on the command line."""
    response_s: Callable[[float], float]
    """Mean response at a load factor ρ ≥ 0, s; 0.040 at 1."""
    behaviour: ServerBehaviour = ServerBehaviour()


def _named(*curves: Curve) -> Mapping[str, Curve]:
    return MappingProxyType({curve.name: curve for curve in curves})


CURVES = _named(
    Curve("mm1", mm1),
    Curve("mmc", mmc),
    Curve("knee", knee),
    Curve("ramp", ramp),
    Curve("tail", mm1, ServerBehaviour(stalls=Stalls(0.03, 4.0, 1.7, 60.0))),
    Curve("cache", cache),
    Curve("priority", priority),
    Curve("pieces", pieces),
    Curve("plateaus", plateaus),
    Curve("logistic", logistic),
    Curve("exponential", exponential),
)
"""Curves that rise with the load. Policies fit the first five families, not the others."""

FAMILIES = ("mm1", "mmc", "knee", "ramp", "tail")
"""Names of CURVES whose shapes a policy may know."""

TROUBLED = _named(
    # One window in twenty carries half of the mean; one in seventy carries two fifths.
    Curve("stalling", mm1, ServerBehaviour(stalls=Stalls(0.05, 40.0, 2.5, 100.0))),
    Curve("stalling-rarely", mm1, ServerBehaviour(stalls=Stalls(0.015, 120.0, 2.5, 85.0))),
    Curve("thrashing", thrashing, ServerBehaviour(collapse=COLLAPSE)),
    Curve("non-monotone", non_monotone),
    Curve("non-monotone-low", non_monotone_low),
    Curve("hump", hump),
    Curve("hysteretic", mm1, ServerBehaviour(slow=Slow(1.05, 1.5, 1200.0))),
    Curve("bimodal", mm1, ServerBehaviour(slow_share=0.3, slow_factor=1.6)),
    Curve("drifting", mm1, ServerBehaviour(falls_per_h=0.2)),
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
