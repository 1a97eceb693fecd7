"""Simulated claims with known truths: how often families are decided wrongly, and how many trials decisions take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from etude.claims.evidence import estimate_of_ratio
from etude.stats.ratio import paired_mean_ratio
from etude.stats.sequential import Evidence, at_a_look, decide, evidence_within, planned_looks

Floats = NDArray[np.float64]
MARGIN, FIRST = 0.01, 10
TRUTHS = (1.0, 1.0 / 1.01, 1.01, 0.995, 1.005, 1.02, 1.05, 0.97, 0.9, 1.2)
"""Ratios of a family of ten; each claims at most 1. Those within `MARGIN` may not be decided at all."""
POWER = 0.9
OUTLIERS, FACTOR = 0.02, 1.5
"""Share of trials that are outliers, and how many times longer these take."""


@dataclass(frozen=True)
class Errors:
    """Families in which a claim was decided wrongly, and all decisions."""

    families: int
    wrong: int
    """Families with a false "supported" or "refuted", or a decision within the margin."""
    decided: int
    """Claims outside the margin that were decided rightly, …"""
    of: int
    """… of all of them."""

    @property
    def share(self) -> float:
        """Share of families with a wrong decision."""
        return self.wrong / self.families


def times(rng: np.random.Generator, mean: float, cv: float, count: int, outliers: bool) -> Floats:
    """Log-normal times of this mean and coefficient of variation, some of them outliers."""
    sigma = math.sqrt(math.log1p(cv * cv))
    found = mean * rng.lognormal(-sigma * sigma / 2.0, sigma, count)
    return np.where(rng.random(count) < OUTLIERS, FACTOR * found, found) if outliers else found


def looks_at(base: Floats, other: Floats, looks: Sequence[int], level: float = 0.0) -> tuple[int, Evidence]:
    """Trials and evidence that other/base is at most 1, at the first look that decides, or the last."""
    for count in looks:
        ratio = paired_mean_ratio(base[:count], other[:count])
        found = at_a_look(evidence_within(estimate_of_ratio(ratio), 0.0, 1.0, MARGIN), len(looks))
        if found.p <= level:
            break
    return count, found


def errors(families: int, cv: float, last: int, outliers: bool, seed: int, level: float = 0.05) -> Errors:
    """Decide families of `TRUTHS`, look by look."""
    rng = np.random.default_rng(seed)
    looks = planned_looks(FIRST, last)
    wrong = decided = 0
    for _ in range(families):
        evidence = [
            looks_at(times(rng, 1.0, cv, last, outliers), times(rng, truth, cv, last, outliers), looks)[1]
            for truth in TRUTHS
        ]
        told = [each.supported for each in decide(evidence, level)]
        right = [None if abs(math.log(t)) <= math.log1p(MARGIN) + 1e-9 else t < 1.0 for t in TRUTHS]
        wrong += any(a is not None and a != b for a, b in zip(told, right, strict=True))
        decided += sum(a is not None and a == b for a, b in zip(told, right, strict=True))
    return Errors(families, wrong, decided, families * sum(t is not None for t in right))


def trials_of(
    truth: float, cv: float, last: int, level: float, runs: int, outliers: bool, seed: int
) -> tuple[float, float]:
    """Mean number of trials until a claim is decided, or `last`; and the share that is decided rightly."""
    rng = np.random.default_rng(seed)
    looks = planned_looks(FIRST, last)
    spent = right = 0
    for _ in range(runs):
        base, other = times(rng, 1.0, cv, last, outliers), times(rng, truth, cv, last, outliers)
        count, found = looks_at(base, other, looks, level)
        spent += count
        right += found.p <= level and found.towards == (truth < 1.0)
    return spent / runs, right / runs


def savings(cv: float, level: float, runs: int, outliers: bool, seed: int) -> tuple[int, int, float]:
    """Trials of a fixed plan that decides a truth one margin beyond the margin with `POWER`; those of a sequential one
    with that power, at most; and its mean trials if the truth is two margins beyond, over those of the fixed plan."""
    rng = np.random.default_rng(seed)
    sample = times(rng, 1.0, cv, 20_000, outliers)
    deviation = math.sqrt(2.0) * float(sample.std() / sample.mean())
    step = math.log1p(MARGIN)
    fixed = math.ceil(((float(ndtri(POWER)) - float(ndtri(level / 2.0))) * deviation / step) ** 2)
    fixed = max(fixed, FIRST)
    last = math.ceil(1.1 * fixed)
    while trials_of(math.exp(-2.0 * step), cv, last, level, runs, outliers, seed)[1] < POWER:
        last = math.ceil(last * 1.06)
    mean, _ = trials_of(math.exp(-3.0 * step), cv, last, level, runs, outliers, seed + 1)
    return fixed, last, mean / fixed
