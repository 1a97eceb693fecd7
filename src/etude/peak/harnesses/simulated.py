"""Simulated server of a curve, noise and optional misbehaviour: hours of benchmarking time in milliseconds.

The variance of a trial's mean over r seconds, relative to the mean, is e² + (B/r)² + S/r: an effect of the whole trial,
a transient of its start, and white noise. S grows with the load and B falls: the law fits the four values in "Cutting
Corners", section 3.2 (accuracy of five trials of 90 and 300 s at load factor 0.3, of 90 and 120 s at 0.9); beyond 0.9
it is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from etude.peak.harnesses.curves import LIMIT_MS, Curve, Stalls, saturation
from etude.peak.search import EarlyStop
from etude.peak.task import Trial, TrialRequest
from etude.peak.window import Window

Floats = NDArray[np.float64]

LEAST = 0.05
"""Lower bound of a window's mean, as a share of its expectation (reached by about 1 in 200 at the lowest load)."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The law and its constants."""

    trial_sd: float = 0.02
    """e: standard deviation of the log of a whole trial's effect."""
    white: float = 0.1173
    """S at load factor 0.3, s…"""
    white_growth: float = 3.957
    """…with this exponential growth rate per unit of load factor…"""
    white_most: float = 5.0
    """…up to this, s."""
    startup: float = 8.66
    """B at load factor 0.3, s, falling linearly to 0 at 0.9."""
    startup_most: float = 10.0
    startup_fades_s: float = 20.0
    """The transient within a trial decays as exp(-t / this)."""

    def stretched(self, by: float) -> Noise:
        """Noise of a server with all times multiplied by `by`: windows of the same length vary more."""
        return replace(
            self,
            white=self.white * by,
            white_most=self.white_most * by,
            startup=self.startup * by,
            startup_most=self.startup_most * by,
            startup_fades_s=self.startup_fades_s * by,
        )

    def white_s(self, rho: float) -> float:
        """S(ρ), s: variance of a mean over one second."""
        growth = min(self.white_growth * (rho - 0.3), 50.0)
        return min(self.white * math.exp(growth), self.white_most)

    def startup_s(self, rho: float) -> float:
        """B(ρ), s: standard deviation of the transient's contribution to the sum over a trial."""
        return min(max(self.startup * (0.9 - rho) / 0.6, 0.0), self.startup_most)

    def cv(self, rho: float, runlength_s: float) -> float:
        """Coefficient of variation of a trial's mean over `runlength_s` at load factor `rho`, by the law."""
        of_start = self.startup_s(rho) / runlength_s
        return math.sqrt(self.trial_sd**2 + of_start**2 + self.white_s(rho) / runlength_s)

    def draw(self, rng: np.random.Generator, rho: float, durations_s: Floats) -> Floats:
        """The means of one trial's windows over their expectation, shape as `durations_s`; mean 1.

        A window's share of the transient does not depend on the length of the trial: the rest after r seconds is lost,
        so that r = 90 s contains 99 % of B.
        """
        ends = np.cumsum(durations_s)
        started = np.exp(-(ends - durations_s) / self.startup_fades_s)
        shares = started - np.exp(-ends / self.startup_fades_s)
        effect = math.exp(rng.normal(-(self.trial_sd**2) / 2, self.trial_sd)) if self.trial_sd else 1.0
        start = self.startup_s(rho) * rng.standard_normal() * shares / durations_s
        return np.maximum(self._white(rng, rho, durations_s) + start, LEAST) * effect

    def _white(self, rng: np.random.Generator, rho: float, durations_s: Floats) -> Floats:
        white = self.white_s(rho)
        if not white:
            return np.ones_like(durations_s)
        shapes = durations_s / white
        return rng.gamma(shapes) / shapes


NOISE = Noise()
"""Noise of the paper's server."""

QUIET = Noise(trial_sd=0.0, white=0.0, startup=0.0)
"""No noise: each window equals its expectation."""


Counts = NDArray[np.int64]

BEHIND = 0.95
"""Share of the offered requests below which the server, not the generator, was the limit."""

WINDOW_S = 10.0
"""Window length of the noise law, in which stalls are counted whatever windows are reported."""


class SimulatedServer:
    """A bench (`bench.Bench`). Trials depend only on the seed, the number of earlier trials and the requests.

    `before`: earlier trials on it, so that a resumed search sees the same server.
    """

    def __init__(
        self,
        curve: Curve,
        peak: float,
        seed: int,
        *,
        limit_s: float = 1e-3 * LIMIT_MS,
        fixed_cost_s: float = 170.0,
        window_s: float = 10.0,
        noise: Noise = NOISE,
        before: Sequence[Trial] = (),
    ) -> None:
        """`limit_s`: mean response at the peak; the curve and the times of its noise are scaled to it."""
        if not (peak > 0 and limit_s > 0 and window_s > 0 and fixed_cost_s >= 0):
            raise ValueError(
                "a simulated server needs a peak, a limit and windows above 0, and no negative cost"
            )
        self.curve = curve
        self.peak = peak
        """λ*: the true peak rate; for a drifting server, at the start."""
        self.spent_s = 0.0
        """Benchmarking time so far."""
        self.trials = 0
        self._seed = seed
        self._stretch = limit_s / (1e-3 * LIMIT_MS)
        self._fixed_cost_s = fixed_cost_s
        self._window_s = window_s
        self._noise = noise.stretched(self._stretch)
        self._manners = curve.behaviour
        self._saturation = saturation(curve)
        self._overloaded_at: float | None = None
        for trial in before:
            self._passes(trial)

    @property
    def peak_now(self) -> float:
        """λ* after the benchmarking time so far: less than `peak` for a drifting server."""
        return self.peak * math.pow(1 - self._manners.falls_per_h, self.spent_s / 3600)

    def response_s(self, load: float) -> float:
        """True mean response at a load, s, before any drift."""
        return self._stretch * self.curve.response_s(load / self.peak)

    def drain(self, cost_s: float = 0.0) -> None:
        """Empty all queues, which takes `cost_s` of benchmarking time: an earlier overload has no effect any more."""
        self.spent_s += cost_s
        self._overloaded_at = None

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Offer a load until the run length is over or `enough` returns True. Raises ValueError for an invalid
        request."""
        if not (
            request.load > 0 and request.runlength_s > 0 and math.isfinite(request.load * request.runlength_s)
        ):
            raise ValueError(f"a load and a run length must be above 0: {request}")
        windows = self._windows(request)
        count = next((n for n in range(1, len(windows)) if enough(windows[:n])), len(windows))
        seen = windows[:count]
        behind = sum(w.completed for w in seen) < BEHIND * sum(w.offered for w in seen)
        trial = Trial(
            request.load,
            request.runlength_s,
            seen,
            cost_s=sum(w.duration_s for w in seen) + self._fixed_cost_s,
            ended="whole" if count == len(windows) else "early",
            limited="server" if behind else None,
        )
        self._passes(trial)
        return trial

    def _windows(self, request: TrialRequest) -> tuple[Window, ...]:
        rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(self.trials,)))
        rho = request.load / self.peak_now
        durations = self._durations(request.runlength_s)
        means = self._noise.draw(rng, rho, durations) * self.curve.response_s(rho) * self._stretch
        behaviour = self._manners
        if behaviour.slow_share:
            slow = behaviour.slow_factor if rng.random() < behaviour.slow_share else 1.0
            means *= slow / (1 + behaviour.slow_share * (behaviour.slow_factor - 1))
        if behaviour.stalls is not None:
            means *= _stalled(rng, behaviour.stalls, durations) / behaviour.stalls.mean_factor
        means *= self._still_slow(durations)
        offered = self._offered(request.load, durations)
        completed, failed = self._completed(rho, offered)
        rows = zip(
            durations.tolist(),
            offered.tolist(),
            completed.tolist(),
            failed.tolist(),
            means.tolist(),
            strict=True,
        )
        return tuple(Window(*row) for row in rows)

    def _durations(self, runlength_s: float) -> Floats:
        whole = int(runlength_s / self._window_s + 1e-9)
        rest = runlength_s - whole * self._window_s
        durations = [self._window_s] * whole + ([rest] if rest > 1e-6 * self._window_s else [])
        return np.array(durations or [runlength_s])

    def _offered(self, load: float, durations: Floats) -> Counts:
        """Requests due in each window: evenly spaced, at least one."""
        due = np.floor(load * np.cumsum(durations) + 1e-9)
        return np.maximum(np.diff(due, prepend=0.0), 1.0).astype(np.int64)

    def _completed(self, rho: float, offered: Counts) -> tuple[Counts, Counts]:
        collapse = self._manners.collapse
        share = min(self._saturation / rho, 1.0)
        if collapse is not None and rho > collapse:
            share = (collapse / rho) ** 3
        completed = np.maximum((offered * share).astype(np.int64), 1)
        return completed, offered - completed if collapse is not None else np.zeros_like(completed)

    def _still_slow(self, durations: Floats) -> Floats | float:
        """Factor by which an earlier overload slows each window."""
        slow = self._manners.slow
        if slow is None or self._overloaded_at is None:
            return 1.0
        since = self.spent_s + self._fixed_cost_s - self._overloaded_at
        return 1 + slow.extra * np.exp(-(since + np.cumsum(durations) - durations) / slow.fades_s)

    def _passes(self, trial: Trial) -> None:
        slow = self._manners.slow
        overload = slow is not None and trial.load > slow.beyond * self.peak_now
        self.spent_s += trial.cost_s
        self.trials += 1
        if overload:
            self._overloaded_at = self.spent_s


def _stalled(rng: np.random.Generator, stalls: Stalls, durations: Floats) -> Floats:
    """Stall factor of each window. A window longer than the law's has several chances, a shorter one less than one, and
    each weighs a stall by its share of the window, so that the mean is the same."""
    chances = max(round(float(durations.max()) / WINDOW_S), 1)
    relative = durations / WINDOW_S
    hit = rng.random((durations.size, chances)) < (stalls.share * relative / chances)[:, None]
    extra = np.minimum(stalls.scale * rng.pareto(stalls.shape, hit.shape), stalls.most)
    factor: Floats = 1 + (hit * extra).sum(axis=1) / relative
    return factor
