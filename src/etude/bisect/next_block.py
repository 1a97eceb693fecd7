"""Choice of the next block of a bisection: the commit whose trials are expected to tell most per second.

A trial of a commit tells on which side of it the step lies. The expected information, in bits, is that of a binary
event seen through normal noise; its price is the time of the trials and, for a commit that is not built, of the build.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.bisect.posterior import Posterior

Floats = NDArray[np.float64]

CANDIDATE_TRIALS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Trials of the candidate that are compared; of more than `LARGEST` only the first are run before the next choice."""
REFERENCE_TRIALS = (1, 2, 3, 4, 6, 8)
LARGEST = 8
"""Most trials of the candidate in one block."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Prices:
    """Expected durations in seconds."""

    trial: float
    build: float


@dataclass(frozen=True)
class Block:
    """Trials to run next, in random order."""

    commit: int
    """Index of the candidate; of BAD where GOOD and BAD themselves are compared."""
    trials: int
    """Number of trials of the candidate."""
    references: int
    """Number of trials of GOOD, or shared between GOOD and BAD."""
    bits: float
    """Expected information about the place of the step."""
    seconds: float
    """Expected duration, with the build."""


def information(probability: Floats, distance: Floats) -> Floats:
    """Mutual information in bits of a binary event and a normal observation, shapes broadcast.

    probability: of the event. distance: difference of the two means over the standard deviation.
    """
    p = np.clip(probability, 1e-12, 1.0 - 1e-12)[..., None]
    d = distance[..., None]
    odds = np.log(p) - np.log1p(-p)
    # Log odds after an observation, where the event is true and where it is not.
    with_event, without = odds + d * NODES + 0.5 * d * d, odds + d * NODES - 0.5 * d * d
    left: Floats = np.sum(WEIGHTS * (p * _entropy(with_event) + (1.0 - p) * _entropy(without)), axis=-1)
    found: Floats = np.maximum(_entropy(odds)[..., 0] - left, 0.0)
    return found


def _entropy(log_odds: Floats) -> Floats:
    """Entropy in bits of a binary event."""
    size = np.abs(log_odds)
    small = np.exp(-size)
    found: Floats = (np.log1p(small) + size * small / (1.0 + small)) / math.log(2.0)
    return found


def next_block(
    posterior: Posterior,
    *,
    built: Collection[int],
    broken: Collection[int],
    prices: Prices,
    smallest: float,
    counts: NDArray[np.intp],
) -> Block:
    """The block of the highest expected information per second.

    built: commits that are built, GOOD and BAD among them. broken: commits that cannot be built or measured.
    smallest: the smallest step of interest. counts: trials of each commit so far, shape (commits,).
    """
    last = posterior.commits.size - 1
    behind = np.cumsum(posterior.commits)
    ready = [c for c in sorted(built) if 0 < c < last and c not in broken]
    free = [c for c in range(1, last) if c not in broken and c not in built]
    if free:
        # All of them cost the same: the one nearest to even odds tells most.
        ready += [min(free, key=lambda c: abs(behind[c] - 0.5))]
    candidates = np.array([*ready, last])
    odds = np.append(behind[ready], 1.0 - posterior.none)
    size = max(math.hypot(posterior.step, posterior.step_error), 0.5 * smallest)
    trials = np.array(CANDIDATE_TRIALS, dtype=np.float64)[None, :, None]
    references = np.array(REFERENCE_TRIALS, dtype=np.float64)[None, None, :]
    offset = _offset_left(posterior.block_ratio, references)
    before = counts[candidates].astype(np.float64)[:, None, None]
    noise, common = (
        posterior.noise**2,
        posterior.build_ratio * posterior.noise**2 + _level_variance(posterior, counts),
    )
    known = np.where(before > 0.0, 1.0 / (common + noise / np.maximum(before, 1.0)), 0.0)
    after = 1.0 / (common + noise / (before + 1.0 / (1.0 / trials + offset)))
    tells = information(odds[:, None, None], size * np.sqrt(after - known))
    build = np.where(np.isin(candidates, list(built)), 0.0, prices.build)[:, None, None]
    seconds = prices.trial * (trials + references) + build
    best = np.unravel_index(int(np.argmax(tells / seconds)), tells.shape)
    which, many, compared = (int(each) for each in best)
    return Block(
        int(candidates[which]),
        min(CANDIDATE_TRIALS[many], LARGEST),
        REFERENCE_TRIALS[compared],
        float(tells[best]),
        float(seconds[which, many, compared]),
    )


def _offset_left(ratio: float, references: Floats) -> Floats:
    """Variance of a block's offset that remains with so many references, over the noise variance."""
    if ratio <= 0.0:
        return np.zeros_like(references)
    return 1.0 / (1.0 / ratio + references)


def _level_variance(posterior: Posterior, counts: NDArray[np.intp]) -> float:
    """Variance of the middle between the levels of GOOD and BAD, to which a candidate is compared."""
    return 0.25 * posterior.step_error**2 + posterior.noise**2 / max(1, int(counts[0] + counts[-1]))
