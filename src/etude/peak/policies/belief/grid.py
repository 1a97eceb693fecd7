"""The posterior: a weight for each shape and each peak rate on a grid, its prior, and quantities derived from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from scipy import stats

from etude.peak.policies.belief.curves import Floats, family
from etude.peak.policies.belief.evidence import (
    CAP,
    CLEARLY,
    Evidence,
    between_trial_variance,
    disagree,
    trials_by_load,
    without_trials,
)
from etude.peak.task import Task

_SEEDED, _SEED_WIDTH = 0.7, 0.25
"""Trust in a seed: share of the prior around it, and the scale of that share in log rate."""
_PREDICTED, _FREEDOM = 0.95, 5.0
"""Trust in a predicted seed with a stated error: share of the prior, and Student's degrees of freedom, for poor
predictions."""
_ALIKE = 0.9
"""Trust in the shapes of similar configurations."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Prior of a task: its `seed_load`, `seed_spread` and `seed_shapes`."""

    load: float | None
    spread: float | None
    shapes: tuple[tuple[str, float], ...] = ()

    def shape_weights(self) -> Floats:
        """Prior weights of all shapes, shape (K,); a similar configuration may have another shape."""
        own = family().weights
        known = dict(self.shapes)
        told = np.array([known.get(name, 0.0) for name in family().names])
        return own if not told.sum() else (1 - _ALIKE) * own + _ALIKE * told / told.sum()

    def log_prior(self, grid: Floats) -> Floats:
        """Log prior of log λ*, up to a constant."""
        if self.load is None:
            return np.zeros_like(grid)
        if self.spread is None:
            share, near = _SEEDED, stats.cauchy.pdf(grid, np.log(self.load), _SEED_WIDTH)
        else:
            share, near = _PREDICTED, stats.t.pdf(grid, _FREEDOM, np.log(self.load), self.spread)
        return np.asarray(np.log((1 - share) / 5.0 + share * near))


def weight_of_seed(off: float, spread: float) -> float:
    """Weight of a prediction relative to measurements, an inverse variance: a normal law with it exerts the same pull
    at this distance, in log rate, from the prediction. It falls with the distance."""
    near = _PREDICTED * float(stats.t.pdf(off, _FREEDOM, 0.0, spread))
    counted = near / (near + (1 - _PREDICTED) / 5.0)
    return counted * (_FREEDOM - 1) / (_FREEDOM * spread**2 + off**2)


PRIOR_USUAL_TRIALS = 2
"""Prior weight of the usual mode, in trials."""


def split_modes(known: Sequence[Evidence]) -> list[tuple[list[Evidence], list[Evidence]]]:
    """The faster and the slower trials of each load whose trials disagree, split at the widest gap. Trials with steal
    time are excluded, since their slowness has a known cause."""
    quiet = [each for each in known if not each.suspect]
    found = []
    for _, group in sorted(trials_by_load(quiet).items()):
        group.sort(key=lambda each: each.value)
        gaps = [high.value - low.value for low, high in pairwise(group)]
        at = gaps.index(max(gaps)) + 1 if gaps else 0
        if gaps and disagree(group[at - 1], group[at]):
            found.append((group[:at], group[at:]))
    return found


def quicker_ones(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials of the faster mode, at loads whose trials disagree."""
    return [each for quicker, _ in split_modes(known) for each in quicker]


def slower_ones(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials of the slower mode, at loads whose trials disagree."""
    return [each for _, slower in split_modes(known) for each in slower]


def slow_share(known: Sequence[Evidence]) -> float:
    """Probability that a trial is in the slower mode, from repeated loads; 0 if all of these agree.

    A load that failed clearly in each trial does so in both modes and gives no information.
    """
    shows = {each.load for each in known if each.value < CLEARLY}
    loads = [each.load for each in known if each.load in shows]
    return len(slower_ones(known)) / (sum(loads.count(load) > 1 for load in loads) + PRIOR_USUAL_TRIALS)


FREEDOM = 5.0
"""Degrees of freedom of Student's law: outliers are more frequent than in a normal law."""
DISCREPANCY = 0.25
"""Model discrepancy, in units of log y: no server follows a family exactly. It grows with the distance from y = 1, so
that trials far from the peak have little weight."""
_EDGE = math.log(1.3)
SLOWER = (0.85, 0.7, 0.5)
"""Speeds of the slow mode relative to the usual one, equally likely."""


def log_likelihood(expected: Floats, value: float, variance: float, slack: float = 0.0) -> Floats:
    """Log likelihood of a log SLO ratio with expected value `expected` (any shape), up to a constant.

    Student's law with 5 degrees of freedom and the variance `variance` + (DISCREPANCY·log y)². Beyond the limit the SLO
    ratio grows with the duration of the trial, so that high values are censored: a value above a curve at its cap is no
    residual, and between 1.3 and the cap the residual fades. Less than `slack` above is no residual either.
    """
    spread = np.sqrt(variance + (DISCREPANCY * expected) ** 2)
    miss = value - expected
    beyond = np.clip((expected - _EDGE) / (CAP - _EDGE), 0, 1)
    miss = np.where(miss > 0, np.maximum(miss - slack, 0) * (1 - beyond), miss)
    return np.asarray(-0.5 * (FREEDOM + 1) * np.log1p((miss / spread) ** 2 / (FREEDOM - 2)) - np.log(spread))


def with_slow(usual: Floats, slow: Sequence[Floats], share: float) -> Floats:
    """Log likelihood of a trial that was in a slow mode with probability `share`; `slow` for each of `SLOWER`."""
    parts = [usual + math.log1p(-share), *(each + math.log(share / len(slow)) for each in slow)]
    most = np.maximum.reduce(parts)
    return np.asarray(most + np.log(sum(np.exp(part - most) for part in parts)))


POINTS = 240
MARGIN = math.log(2.0)
"""Extension of the grid beyond the permitted loads, in logs."""
_TAIL = 1e-5
_DEEPEST = 4
_RARE = 1e-3


@dataclass(frozen=True, eq=False)
class Belief:
    """Posterior over log λ* and the shape."""

    log_peak: Floats
    """Evenly spaced, shape (G,)."""
    joint: Floats
    """Probabilities, shape (K, G); they sum to 1."""
    between: float
    """τ² of the likelihood."""

    @cached_property
    def _cumulated(self) -> tuple[Floats, Floats]:
        """Edges of the grid's cells in log λ*, and P(λ* below each), shape (G + 1,) each."""
        step = self.log_peak[1] - self.log_peak[0]
        edges = np.append(self.log_peak - step / 2, self.log_peak[-1] + step / 2)
        return edges, np.append(0.0, np.cumsum(self.joint.sum(axis=0)))

    def below(self, rate: Floats | float) -> Floats:
        """P(λ* < rate)."""
        edges, sums = self._cumulated
        return np.asarray(np.interp(np.log(rate), edges, sums))

    def near(self, rate: Floats | float, within: float) -> Floats:
        """P(|rate/λ* - 1| <= within)."""
        return self.below(rate / (1 - within)) - self.below(rate / (1 + within))

    def quantile(self, share: float) -> float:
        """Quantile of λ*."""
        edges, sums = self._cumulated
        return math.exp(float(np.interp(share * sums[-1], sums, edges)))

    def best_rate(self, within: float) -> tuple[float, float]:
        """The rate with the highest P(|rate/λ* - 1| <= within), and that probability."""
        held = self.near(np.exp(self.log_peak), within)
        # The middle of all equally good rates: a narrow posterior lies entirely within `within` of many.
        good = np.flatnonzero(held >= held.max() - 1e-6)
        return float(np.exp(self.log_peak[good].mean())), float(held.max())

    def best_region(self, width: float) -> tuple[float, float]:
        """The rate with the highest P(|y(rate/λ*) - 1| <= width), and that probability."""
        rates = np.array([self.quantile(float(share)) for share in np.linspace(0.02, 0.98, 40)])
        held = np.array([self.in_region(rate, width) for rate in rates])
        good = np.flatnonzero(held >= held.max() - 1e-6)
        return float(rates[good[len(good) // 2]]), float(held.max())

    def in_region(self, rate: float, width: float) -> float:
        """P(|y(rate/λ*) - 1| <= width)."""
        logs = family().log_readings(math.log(rate) - self.log_peak)
        inside = (logs >= math.log(1 - width)) & (logs <= math.log(1 + width))
        return float(self.joint[inside].sum())

    def shapes(self) -> tuple[tuple[str, float], ...]:
        """Probable shapes with their probabilities, by falling probability."""
        weights = self.joint.sum(axis=1)
        order = np.argsort(-weights, kind="stable")
        return tuple(
            (family().names[at], round(float(weights[at]), 6)) for at in order if weights[at] > _RARE
        )

    def updated(self, evidence: Evidence) -> Belief:
        """The posterior after one more trial."""
        logs = np.log(np.maximum(self.joint, 1e-300)) + _likelihood(self.log_peak, evidence, self.between)
        return Belief(self.log_peak, _normal(logs), self.between)

    def misses(self, known: Sequence[Evidence]) -> Floats:
        """Residual of each trial under the most probable shape and peak, in its own standard deviations, shape
        (trials,); 0 for censored values beyond the limit."""
        # Inverse of Student's law: log L = -3·log(1 + miss²/3) plus a constant.
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
    """Posterior after these trials: first on the whole range, then on a grid over its plausible part."""
    seed = Seed(task.seed_load, task.seed_spread, task.seed_shapes)
    return _believed(task.lowest, task.highest, seed, tuple(known))


@lru_cache(maxsize=16)
def _believed(lowest: float, highest: float, seed: Seed, known: tuple[Evidence, ...]) -> Belief:
    low, high = math.log(lowest) - MARGIN, math.log(highest) + MARGIN
    tau = between_trial_variance(without_trials(known, slower_ones(known)))
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
    """Cached likelihood: each decision needs the same trials again."""
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
