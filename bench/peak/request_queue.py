"""Simulated server, request by request: one queue, Poisson arrivals, and disturbances of real servers.

Each response is a wait by Lindley's recursion and a service. The speed of a trial depends on its start (declared or
undeclared warm-up), on chance (disturbed trials, two modes) and on earlier trials (hysteresis).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from etude.peak.harnesses.load_report import histogram_of
from etude.peak.search import EarlyStop
from etude.peak.task import Criterion, Trial, TrialRequest
from etude.peak.window import Window
from etude.results.histograms import Histogram

Floats = NDArray[np.float64]
OVERLOAD = 1.05
"""Load factor above which a trial is an overload."""
BEHIND = 0.95
"""Share of the due requests completed by the end below which the server was the limit."""
PARETO = 2.2
"""Shape of the heavy-tailed (Pareto) distribution of services."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Behaviour of a server besides queueing."""

    name: str
    law: Literal["exponential", "pareto"] = "exponential"
    percent: float | None = None
    """Percentile of the criterion; None: the mean."""
    warm_up_s: float = 0.0
    """A trial starts at `cold` of the speed and reaches full speed after this time."""
    cold: float = 0.6
    declared: bool = False
    """True if the harness declares that warm-up."""
    warm_up_load: float = 0.5
    """Load of a declared warm-up as a share of the trial's (`Commands.warmup_load`): 1 is the beginning of the trial,
    less is a separate run, after which the queue drains."""
    slow_share: float = 0.0
    """Share of trials, chosen at random, that run at `slow` of the speed."""
    slow: float = 1.0
    marked: int = 0
    """Number of trials after an overload that run at `mark` of the speed."""
    mark: float = 1.0


TROUBLES = {
    each.name: each
    for each in (
        Trouble("plain"),
        Trouble("warm-up", warm_up_s=60.0),
        Trouble("warm-up-declared", warm_up_s=60.0, declared=True),
        Trouble("warm-up-whole", warm_up_s=60.0, declared=True, warm_up_load=1.0),
        Trouble("two-modes", slow_share=0.3, slow=0.7),
        Trouble("hysteresis", marked=3, mark=0.8),
        Trouble("disturbed-0.5", slow_share=0.1, slow=0.5),
        Trouble("disturbed-0.3", slow_share=0.1, slow=0.3),
        Trouble("pareto", law="pareto"),
        Trouble("p95", percent=95.0),
    )
}
"""Troubles by name; *plain* has none."""


class RequestQueue:
    """A bench (`bench.Bench`) with a known peak rate: at full speed, warm, in its usual mode."""

    def __init__(
        self,
        trouble: Trouble,
        peak: float,
        seed: int,
        *,
        limit_s: float = 0.040,
        fixed_cost_s: float = 170.0,
        window_s: float = 10.0,
    ) -> None:
        self.trouble, self.peak, self.limit_s = trouble, peak, limit_s
        self.criterion = Criterion(
            "mean" if trouble.percent is None else "percentile", limit_s, trouble.percent
        )
        self._service_s = service_s(trouble, peak, limit_s)
        self._rng = np.random.default_rng(seed)
        self._fixed_cost_s, self._window_s = fixed_cost_s, window_s
        self._marked = 0

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Offer a load until the run length is over or `enough` returns True."""
        windows, warm_up_s = self._windows(request)
        count = next((n for n in range(1, len(windows)) if enough(windows[:n])), len(windows))
        seen = windows[:count]
        self._marked = (
            self.trouble.marked if request.load > OVERLOAD * self.peak else max(self._marked - 1, 0)
        )
        completed, due = sum(w.completed for w in seen), sum(w.offered for w in seen)
        return Trial(
            request.load,
            request.runlength_s,
            seen,
            self._fixed_cost_s + warm_up_s + sum(w.duration_s for w in seen),
            "whole" if count == len(windows) else "early",
            "server" if completed < BEHIND * due else None,
        )

    def _windows(self, request: TrialRequest) -> tuple[tuple[Window, ...], float]:
        """All windows of a trial, and the duration of its declared warm-up, s. Responses count in the window in which
        they were due."""
        trouble, runlength_s = self.trouble, request.runlength_s
        if not trouble.declared:
            due, responses = self._responses(request.load, runlength_s)
            return self._told(due, responses, runlength_s), 0.0
        if trouble.warm_up_load == 1:
            from_s = trouble.warm_up_s
            due, responses = self._responses(request.load, from_s + runlength_s)
            counts = due >= from_s
            return self._told(due[counts] - from_s, responses[counts], runlength_s), from_s
        due, responses = self._responses(trouble.warm_up_load * request.load, trouble.warm_up_s)
        idle_s = float(max((due + responses).max(initial=0.0), trouble.warm_up_s))
        due, responses = self._responses(request.load, runlength_s, warm_s=idle_s)
        return self._told(due, responses, runlength_s), idle_s

    def _responses(self, load: float, length_s: float, warm_s: float = 0.0) -> tuple[Floats, Floats]:
        """Due times and response times of requests, after the system has run for `warm_s`."""
        rng = self._rng
        due = np.cumsum(rng.exponential(1 / load, int(1.2 * load * length_s) + 50))
        due = due[due < length_s]
        services = self._drawn(rng, len(due)) / (self._mode() * self._warmth(due + warm_s))
        return due, _waits(due, services) + services

    def _told(self, due: Floats, responses: Floats, length_s: float) -> tuple[Window, ...]:
        answered = due + responses < length_s
        ends = np.arange(self._window_s, length_s + 1e-9, self._window_s)
        places = np.searchsorted(ends, due)
        return tuple(self._window(responses[here := places == n], answered[here]) for n in range(len(ends)))

    def _window(self, responses: Floats, answered: NDArray[np.bool_]) -> Window:
        done = responses[answered]
        mean_s = float(done.mean()) if done.size else None
        latency: Histogram | None = histogram_of(done * 1e9) if self.trouble.percent is not None else None
        return Window(self._window_s, len(responses), len(done), 0, mean_s, latency)

    def _mode(self) -> float:
        """Speed of a run once it is warm."""
        trouble = self.trouble
        speed = trouble.slow if self._rng.random() < trouble.slow_share else 1.0
        return speed * (trouble.mark if self._marked else 1.0)

    def _warmth(self, since_s: Floats) -> Floats:
        trouble = self.trouble
        if not trouble.warm_up_s:
            return np.ones_like(since_s)
        warm = np.minimum(since_s / trouble.warm_up_s, 1.0)
        return np.asarray(trouble.cold + (1 - trouble.cold) * warm)

    def _drawn(self, rng: np.random.Generator, count: int) -> Floats:
        if self.trouble.law == "exponential":
            return rng.exponential(self._service_s, count)
        least = self._service_s * (PARETO - 1) / PARETO
        return np.asarray(least * (1 + rng.pareto(PARETO, count)))


def service_s(trouble: Trouble, peak: float, limit_s: float) -> float:
    """Mean service with which the criterion is just met at `peak`, s: M/M/1, or the Pollaczek–Khinchine formula."""
    if trouble.law == "exponential":
        times = 1.0 if trouble.percent is None else -np.log(1 - trouble.percent / 100)
        return float(1 / (peak + times / limit_s))
    square = (PARETO - 1) ** 2 / (PARETO * (PARETO - 2))  # E[S²]/E[S]²

    def above(mean_s: float) -> float:
        return mean_s + peak * square * mean_s**2 / (2 * (1 - peak * mean_s)) - limit_s

    return float(optimize.brentq(above, 1e-9, (1 - 1e-9) / peak))


def _waits(due: Floats, services: Floats) -> Floats:
    """Waits by Lindley's recursion: the cumulative excess of services over gaps, less its minimum so far."""
    walk = np.concatenate([[0.0], np.cumsum(services[:-1] - np.diff(due))])
    return np.asarray(walk - np.minimum.accumulate(walk))
