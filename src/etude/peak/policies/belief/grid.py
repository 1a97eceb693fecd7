"""The belief itself: a weight for each shape and each peak rate on a grid, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from etude.peak.policies.belief.confirmation import CLEARLY, all_but, disagree
from etude.peak.policies.belief.curves import CAP, Floats, family
from etude.peak.policies.belief.evidence import Evidence, between_trial_variance
from etude.peak.policies.belief.seed import Seed, seed_of
from etude.peak.task import Task

AGREED = 2
"""So many trials in the usual mode are assumed besides those that were made."""


def split_modes(known: Sequence[Evidence]) -> list[tuple[list[Evidence], list[Evidence]]]:
    """Of each load whose trials disagree, the quicker and the slower ones: on either side of the widest gap. Trials
    with steal time are slow for a reason that is known."""
    quiet = [each for each in known if not each.suspect]
    found = []
    for load in sorted({each.load for each in quiet}):
        group = sorted((each for each in quiet if each.load == load), key=lambda each: each.value)
        gaps = [high.value - low.value for low, high in pairwise(group)]
        at = gaps.index(max(gaps)) + 1 if gaps else 0
        if gaps and disagree(group[at - 1], group[at]):
            found.append((group[:at], group[at:]))
    return found


def quicker_ones(known: Sequence[Evidence]) -> list[Evidence]:
    """Those of the quicker mode, of loads whose trials disagree."""
    return [each for quicker, _ in split_modes(known) for each in quicker]


def slower_ones(known: Sequence[Evidence]) -> list[Evidence]:
    """Those of the slower mode, of loads whose trials disagree."""
    return [each for _, slower in split_modes(known) for each in slower]


def slow_share(known: Sequence[Evidence]) -> float:
    """The probability that a trial is of the slower mode, from loads that have several; 0 where all of them agree.

    A load that was far too much in each trial is so in both modes, and tells nothing of them.
    """
    shows = {each.load for each in known if each.value < CLEARLY}
    loads = [each.load for each in known if each.load in shows]
    return len(slower_ones(known)) / (sum(loads.count(load) > 1 for load in loads) + AGREED)


FREEDOM = 5.0
"""Student's: trials go wrong more often than a normal law allows."""
DISCREPANCY = 0.25
"""No server is exactly of a family. All shapes meet at y = 1; with the distance from there, in units of log y,
grows what a real curve may differ by, so that trials far from the peak say little of it."""
_EDGE = math.log(1.3)
SLOWER = (0.85, 0.7, 0.5)
"""Speeds of a server in a slow mode, of its usual one, each as likely as the others."""


def log_likelihood(expected: Floats, value: float, variance: float, slack: float = 0.0) -> Floats:
    """Of a log reading, where shapes and peaks lead one to expect `expected` (any shape), up to a constant.

    Student's law with 5 degrees of freedom and the variance `variance` + (DISCREPANCY·log y)². Beyond the limit a
    reading grows with the time that one waits, so a high one is "at least so much": where a curve is at its cap, a
    reading above is no miss, and between 1.3 and the cap the miss fades. By less than `slack` above it is no miss
    either.
    """
    spread = np.sqrt(variance + (DISCREPANCY * expected) ** 2)
    miss = value - expected
    beyond = np.clip((expected - _EDGE) / (CAP - _EDGE), 0, 1)
    miss = np.where(miss > 0, np.maximum(miss - slack, 0) * (1 - beyond), miss)
    return np.asarray(-0.5 * (FREEDOM + 1) * np.log1p((miss / spread) ** 2 / (FREEDOM - 2)) - np.log(spread))


def with_slow(usual: Floats, slow: Sequence[Floats], share: float) -> Floats:
    """Log likelihood of a trial that was, with the probability `share`, of a slow mode; `slow` for each of `SLOWER`."""
    parts = [usual + math.log1p(-share), *(each + math.log(share / len(slow)) for each in slow)]
    most = np.maximum.reduce(parts)
    return np.asarray(most + np.log(sum(np.exp(part - most) for part in parts)))


POINTS = 240
MARGIN = math.log(2.0)
"""The grid reaches so far beyond the loads that may be asked for."""
_TAIL = 1e-5
_DEEPEST = 4
_RARE = 1e-3


@dataclass(frozen=True, eq=False)
class Belief:
    """Over log λ* and the shape."""

    log_peak: Floats
    """Evenly spaced, shape (G,)."""
    joint: Floats
    """Probabilities, shape (K, G); they sum to 1."""
    between: float
    """τ², with which it was made."""

    @property
    def marginal(self) -> Floats:
        """Of the peak alone, shape (G,)."""
        return np.asarray(self.joint.sum(axis=0))

    def below(self, rate: Floats | float) -> Floats:
        """P(λ* < rate)."""
        step = self.log_peak[1] - self.log_peak[0]
        edges = np.append(self.log_peak - step / 2, self.log_peak[-1] + step / 2)
        sums = np.append(0.0, np.cumsum(self.marginal))
        return np.asarray(np.interp(np.log(rate), edges, sums))

    def quantile(self, share: float) -> float:
        """The rate that λ* is below with this probability."""
        step = self.log_peak[1] - self.log_peak[0]
        edges = np.append(self.log_peak - step / 2, self.log_peak[-1] + step / 2)
        sums = np.append(0.0, np.cumsum(self.marginal))
        return math.exp(float(np.interp(share * sums[-1], sums, edges)))

    def best_rate(self, within: float) -> tuple[float, float]:
        """The rate for which P(|rate/λ* - 1| <= within) is highest, and that probability."""
        rates = np.exp(self.log_peak)
        held = self.below(rates / (1 - within)) - self.below(rates / (1 + within))
        # The middle of all that are as good: a sharp belief is held whole by many.
        good = np.flatnonzero(held >= held.max() - 1e-6)
        return float(np.exp(self.log_peak[good].mean())), float(held.max())

    def best_region(self, width: float) -> tuple[float, float]:
        """The rate for which P(|y(rate/λ*) - 1| <= width) is highest, and that probability."""
        rates = self._plausible()
        held = np.array([self.in_region(rate, width) for rate in rates])
        good = np.flatnonzero(held >= held.max() - 1e-6)
        return float(rates[good[len(good) // 2]]), float(held.max())

    def in_region(self, rate: float, width: float) -> float:
        """P(|y(rate/λ*) - 1| <= width)."""
        logs = family().log_readings(math.log(rate) - self.log_peak)
        inside = (logs >= math.log(1 - width)) & (logs <= math.log(1 + width))
        return float(self.joint[inside].sum())

    def _plausible(self, most: int = 40) -> Floats:
        shares = np.linspace(0.02, 0.98, most)
        return np.array([self.quantile(float(share)) for share in shares])

    def shapes(self) -> tuple[tuple[str, float], ...]:
        """How likely each is, the likeliest first, but for those that hardly are."""
        weights = self.joint.sum(axis=1)
        order = np.argsort(-weights, kind="stable")
        return tuple(
            (family().names[at], round(float(weights[at]), 6)) for at in order if weights[at] > _RARE
        )

    def updated(self, evidence: Evidence) -> Belief:
        """With one more trial."""
        logs = np.log(np.maximum(self.joint, 1e-300)) + _likelihood(self.log_peak, evidence, self.between)
        return Belief(self.log_peak, _normal(logs), self.between)

    def misses(self, known: Sequence[Evidence]) -> Floats:
        """How far each trial is from what the most plausible of shapes and peaks leads one to expect, in units of its
        own spread, shape (trials,); 0 for what is far beyond the limit, as expected."""
        # Student's law undone: log L = -3·log(1 + miss²/3) and a constant.
        shape, at = np.unravel_index(int(np.argmax(self.joint)), self.joint.shape)
        found = []
        for each in known:
            expected = family().log_readings(np.array([math.log(each.load)]) - self.log_peak[at])[shape]
            alone = _likelihood(self.log_peak[at : at + 1], replace(each, slack=0.0), self.between)
            gone = float(alone[shape, 0])
            best = float(log_likelihood(expected, float(expected[0]), each.within + self.between)[0])
            miss = math.sqrt(3 * math.expm1(max(best - gone, 0.0) / 3))
            found.append(math.copysign(miss, each.value - expected[0]))
        return np.array(found)


def posterior_of(task: Task, known: Sequence[Evidence]) -> Belief:
    """After these trials: on the whole range first, then on what of it is plausible still."""
    return _believed(task.lowest, task.highest, seed_of(task), tuple(known))


@lru_cache(maxsize=16)
def _believed(lowest: float, highest: float, seed: Seed, known: tuple[Evidence, ...]) -> Belief:
    low, high = math.log(lowest) - MARGIN, math.log(highest) + MARGIN
    tau = between_trial_variance(all_but(known, slower_ones(known)))
    for _ in range(_DEEPEST):
        belief = _on(low, high, seed, known, tau)
        step = belief.log_peak[1] - belief.log_peak[0]
        next_low = max(math.log(belief.quantile(_TAIL)) - 2 * step, low)
        next_high = min(math.log(belief.quantile(1 - _TAIL)) + 2 * step, high)
        if next_high - next_low > 0.5 * (high - low):
            break
        low, high = next_low, next_high
    return belief


def _on(low: float, high: float, seed: Seed, known: tuple[Evidence, ...], tau: float) -> Belief:
    grid = np.linspace(low, high, POINTS)
    logs = np.log(seed.shape_weights())[:, None] + seed.log_prior(grid)[None, :]
    for each in known:
        logs = logs + _kept(low, high, each, tau)
    return Belief(grid, _normal(logs), tau)


@lru_cache(maxsize=128)
def _kept(low: float, high: float, evidence: Evidence, tau: float) -> Floats:
    """The same trials are asked for again at each decision."""
    return _likelihood(np.linspace(low, high, POINTS), evidence, tau)


def _likelihood(grid: Floats, evidence: Evidence, tau: float) -> Floats:
    def at(speed: float) -> Floats:
        expected = family().log_readings(math.log(evidence.load / speed) - grid)
        return log_likelihood(expected, evidence.value, evidence.within + tau, evidence.slack)

    if not evidence.slow_share:
        return at(1.0)
    return with_slow(at(1.0), [at(speed) for speed in SLOWER], evidence.slow_share)


def _normal(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
