"""Queueing theory: response times of c workers with one queue and Poisson arrivals, and the resulting peak rate.

Exact: mean and percentiles for exponential services (M/M/c: Erlang's formula), mean for constant ones (M/D/c:
Crommelin's series). Everything else is simulated by the recursion of Kiefer and Wolfowitz, with a Monte-Carlo error.
All rates share the same draws, so that responses rise with the rate without noise and the peak can be solved for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special

from etude.peak.goal import Criterion

Real = NDArray[np.float64]

REPLICATIONS = 200
CUSTOMERS = 12_000
"""Customers per replication; the first third is excluded, since the queue starts empty."""
NEAREST = 0.995
"""Maximum simulated utilisation: closer to 1, replications would have to be longer."""
GROUPS = 20
"""Groups of replications; their percentiles give the error of the overall percentile."""


@dataclass(frozen=True, slots=True)
class ValueWithError:
    """A value and its standard error, 0 if exact."""

    value: float
    error: float


@dataclass(frozen=True)
class Queue:
    """c workers, one FIFO queue, Poisson arrivals."""

    workers: int
    law: str
    """Distribution of service times, as in `etude-engine known-server` (docs/load.md)."""
    mean_s: float

    @property
    def capacity(self) -> float:
        """Rate above which the queue grows without bound, requests/s."""
        return self.workers / self.mean_s

    def mean_response_s(self, rate: float) -> ValueWithError:
        """Mean time from arrival to the end of service, s.

        Raises ValueError unless 0 < rate < capacity.
        """
        load = self._load(rate)
        if self.law == "exponential":
            return ValueWithError(
                self.mean_s * (1 + erlang_c(self.workers, load) / (self.workers - load)), 0.0
            )
        if self.law == "constant":
            return ValueWithError(self.mean_s * (1 + crommelin(self.workers, load)), 0.0)
        means = self._simulated(load).mean(axis=0) * self.mean_s
        return ValueWithError(float(means.mean()), float(means.std(ddof=1)) / math.sqrt(means.size))

    def percentile_s(self, rate: float, percent: float) -> ValueWithError:
        """Percentile of the response times, s. Raises ValueError unless 0 < rate < capacity."""
        load = self._load(rate)
        share = 1 - percent / 100
        if self.law == "exponential":
            return ValueWithError(self.mean_s * _exponential_quantile(self.workers, load, share), 0.0)
        responses = self._simulated(load) * self.mean_s
        parts = np.array([np.quantile(each, 1 - share) for each in np.array_split(responses, GROUPS, axis=1)])
        return ValueWithError(
            float(np.quantile(responses, 1 - share)), float(parts.std(ddof=1)) / math.sqrt(parts.size)
        )

    def response_s(self, rate: float, criterion: Criterion) -> ValueWithError:
        """Response that the criterion limits, s. Raises ValueError for errors: an unbounded queue fails no request."""
        if criterion.of == "errors":
            raise ValueError("a queue without a bound fails no request: ask for a mean or a percentile")
        if criterion.percent is None:
            return self.mean_response_s(rate)
        return self.percentile_s(rate, criterion.percent)

    def peak(self, criterion: Criterion, overhead_s: float = 0.0) -> ValueWithError:
        """Highest rate that meets the criterion if `overhead_s` is added to each response.

        Raises:
            ValueError: it is met at no rate, or at all rates up to `NEAREST`.
        """
        lowest, highest = 1e-3 * self.capacity, NEAREST * self.capacity

        def above(rate: float) -> float:
            return self.response_s(rate, criterion).value + overhead_s - criterion.limit

        if above(lowest) > 0:
            raise ValueError(f"{criterion} is not met at any rate: services alone take as long")
        if above(highest) < 0:
            raise ValueError(f"{criterion} is still met at {NEAREST:.1%} of the capacity")
        rate = float(optimize.brentq(above, lowest, highest, xtol=1e-4 * self.capacity))
        step = min(0.01 * rate, (highest - rate) / 2) or 1e-6 * rate
        slope = (above(rate + step) - above(rate - step)) / (2 * step)
        return ValueWithError(rate, self.response_s(rate, criterion).error / slope)

    def _load(self, rate: float) -> float:
        if not 0 < rate < self.capacity:
            raise ValueError(f"rate {rate:g}/s: expected more than 0 and less than {self.capacity:g}/s")
        return rate * self.mean_s

    def _simulated(self, load: float) -> Real:
        """Responses in mean services, shape (customers, replications)."""
        gaps, services = self._draws
        workers = np.zeros((REPLICATIONS, self.workers))
        rows = np.arange(REPLICATIONS)
        found = np.empty_like(services)
        now = np.zeros(REPLICATIONS)
        for number, service in enumerate(services):
            now += gaps[number] / load
            free = workers.argmin(axis=1)
            over = np.maximum(workers[rows, free], now) + service
            workers[rows, free] = over
            found[number] = over - now
        kept: Real = found[CUSTOMERS // 3 :]
        return kept

    @cached_property
    def _draws(self) -> tuple[Real, Real]:
        """Gaps and services of mean 1, shape (customers, replications) each."""
        generator = np.random.default_rng(20_260_101)
        size = (CUSTOMERS, REPLICATIONS)
        return generator.exponential(size=size), drawn(self.law, generator, size)


def drawn(law: str, generator: np.random.Generator, size: tuple[int, ...]) -> Real:
    """Service times of mean 1 by a law of `etude-engine known-server`. Raises ValueError for an unknown law."""
    name, _, shape = law.partition(":")
    if name == "constant":
        return np.ones(size)
    if name == "exponential":
        return generator.exponential(size=size)
    if name == "erlang":
        return generator.gamma(float(shape), 1 / float(shape), size)
    if name == "lognormal":
        variance = math.log(1 + float(shape) ** 2)
        return generator.lognormal(-variance / 2, math.sqrt(variance), size)
    if name == "hyperexponential":
        square = float(shape) ** 2
        often = (1 + math.sqrt((square - 1) / (square + 1))) / 2
        share = np.where(generator.random(size) < often, often, 1 - often)
        times: Real = generator.exponential(size=size) / (2 * share)
        return times
    raise ValueError(f"{law!r} is no law of service times")


def erlang_c(workers: int, load: float) -> float:
    """Share of requests that wait in M/M/c; `load` = rate · mean service < workers."""
    blocked = 1.0
    for worker in range(1, workers + 1):
        blocked = load * blocked / (worker + load * blocked)
    return blocked / (1 - load / workers * (1 - blocked))


def crommelin(workers: int, load: float) -> float:
    """Mean wait in M/D/c, in services: a sum over whole services of Poisson tails (Crommelin 1932).

    Near saturation it has millions of slowly changing terms: after the first, the Euler–Maclaurin formula is used.
    """

    def term(number: Real | float) -> Real:
        # P(N ≥ k) of mean m is the regularised incomplete gamma function P(k, m).
        at_least = special.gammainc(number * workers, number * load)
        return np.asarray(at_least - workers / load * special.gammainc(number * workers + 1, number * load))

    first = 1024.0
    head = float(term(np.arange(1.0, first)).sum())
    top = first
    while term(top) > 1e-18:
        top *= 2

    def stretched(place: float) -> float:
        return float(term(math.exp(place))) * math.exp(place)

    ends = math.log(first), math.log(top)
    tail = integrate.quad(stretched, *ends, limit=200, epsabs=1e-10)[0] if top > first else 0.0
    slope = float(term(first + 0.5) - term(first - 0.5))
    return head + float(tail) + float(term(first)) / 2 - slope / 12


def _exponential_quantile(workers: int, load: float, share: float) -> float:
    """Upper `share` quantile of responses in M/M/c, in mean services."""
    waits, spare = erlang_c(workers, load), workers - load

    def above(time: float) -> float:
        rest = -special.expm1(-(spare - 1) * time) / (spare - 1) if abs(spare - 1) > 1e-9 else time
        return math.exp(-time) * (1 + waits * float(rest)) - share

    top = 1.0
    while above(top) > 0:
        top *= 2
    return float(optimize.brentq(above, 0.0, top, xtol=1e-12))
