"""Prior family of curves: SLO ratio y at load factor ρ = λ/λ*, rising, with y(1) = 1.

    mm1      1/(1/f - (1/f - 1)ρ)                              one queue, f = y(0)
    mmc      f(1 + C(c, u)/(c(1 - u))), u = u*ρ                c servers; C is Erlang's, u* makes y(1) = 1
    power    f + (1 - f)ρ^k                                    from a slow ramp (k < 1) to a knee (k = 40)

They are tabulated as log y over log ρ. Only values near the limit locate the peak: below `FLOOR` and above `CAP` a
curve counts as flat, since its height there depends on how the server fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from etude.peak.policies.belief.evidence import CAP, FLOOR

Floats = NDArray[np.float64]

_STEP = 0.0025
_FIRST, _LAST = -2281 * _STEP, 555 * _STEP
"""Range ρ = 1/300 to 4; ρ = 1 is a point of the table, since the steepest curves are almost vertical there."""

_BASES = (0.03, 0.08, 0.15, 0.3, 0.6, 0.85)
_EXPONENTS = {0.7: 0.25, 1.0: 0.7, 1.5: 1.0, 2.0: 1.0, 3.0: 1.0, 5.0: 1.0, 10.0: 1.0, 20.0: 1.0, 40.0: 1.0}
"""Exponents of the power curves, with their weights."""
_SERVERS = (3, 12, 48)
_SHARES = {"mm1": 0.3, "mmc": 0.2, "power": 0.5}


@dataclass(frozen=True, eq=False)
class Family:
    """All shapes."""

    names: tuple[str, ...]
    weights: Floats
    """Prior probabilities of the shapes, shape (K,); they sum to 1."""
    table: Floats
    """Log SLO ratios at log ρ from `_FIRST` in steps of `_STEP`, shape (K, N)."""

    def log_readings(self, log_rho: Floats) -> Floats:
        """Log SLO ratios of every shape at log load factors, shape (G,) -> (K, G)."""
        place = np.clip((log_rho - _FIRST) / _STEP, 0, self.table.shape[1] - 1.001)
        left = place.astype(np.intp)
        share = place - left
        return np.asarray(self.table[:, left] * (1 - share) + self.table[:, left + 1] * share)


@cache
def family() -> Family:
    """The shared family; created once."""
    rho = np.exp(np.linspace(_FIRST, _LAST, round((_LAST - _FIRST) / _STEP) + 1))
    made = [(name, weight, curve) for name, weight, curve in _curves(rho)]
    weights = np.array([weight for _, weight, _ in made])
    logs = np.log(np.maximum([curve for _, _, curve in made], 1e-9))
    return Family(tuple(name for name, _, _ in made), weights / weights.sum(), np.clip(logs, FLOOR, CAP))


def _curves(rho: Floats) -> Iterator[tuple[str, float, Floats]]:
    for base in _BASES:
        yield f"mm1 {base:g}", _SHARES["mm1"] / len(_BASES), _mm1(rho, base)
        for servers in _SERVERS:
            share = _SHARES["mmc"] / len(_BASES) / len(_SERVERS)
            yield f"mmc {base:g} {servers}", share, _mmc(rho, base, servers)
        for exponent, weight in _EXPONENTS.items():
            share = _SHARES["power"] / len(_BASES) * weight / sum(_EXPONENTS.values())
            yield f"power {base:g} {exponent:g}", share, base + (1 - base) * rho**exponent


def _mm1(rho: Floats, base: float) -> Floats:
    left = 1 / base - (1 / base - 1) * rho
    return np.where(left > 1e-6, 1 / np.maximum(left, 1e-6), 1e6)


def _mmc(rho: Floats, base: float, servers: int) -> Floats:
    def readings(used: Floats) -> Floats:
        safe = np.minimum(used, 1 - 1e-6)
        return np.where(used < 1 - 1e-6, base * (1 + _waiting(safe, servers) / (servers * (1 - safe))), 1e6)

    peak = optimize.brentq(lambda used: float(readings(np.array([used]))[0]) - 1, 1e-3, 1 - 2e-6)
    return readings(float(peak) * rho)


def _waiting(used: Floats, servers: int) -> Floats:
    """Erlang C: the share of requests that wait, by utilisation."""
    offered = used * servers
    blocked = np.ones_like(used)
    for n in range(1, servers + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return np.asarray(blocked / (1 - used * (1 - blocked)))
