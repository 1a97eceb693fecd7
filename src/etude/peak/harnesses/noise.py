"""Variation of simulated trials around the server's mean response.

The variance of a trial's mean over r seconds, relative to the mean, is e² + (B/r)² + S/r: an effect of the whole trial,
a transient of its start, and white noise. S grows with the load and B falls: the law fits the four values in "Cutting
Corners", section 3.2 (accuracy of five trials of 90 and 300 s at load factor 0.3, of 90 and 120 s at 0.9); beyond 0.9
it is extrapolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
