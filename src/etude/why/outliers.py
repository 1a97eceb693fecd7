"""Slow trials of one test against its typical ones: all that was measured of each trial, ranked by its share of the
extra time.

Source: slow is above the median by 3 scaled median absolute deviations (Hampel 1974; Leys et al. 2013), a bound that
holds with up to half of the trials slow. Each quantity: permutation test of the rank sum; Holm (1979) over all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from etude.stats.multiplicity import holm

Floats = NDArray[np.float64]
Source = Literal["call", "metric", "scheduler", "monitor"]

_IN_TURN: tuple[Source, ...] = ("metric", "call", "monitor")

DEVIATIONS = 3.0
SCALED = 1.4826
LEAST = 0.01
"""Share of the median by which a slow trial exceeds it at least."""
FEW_SLOW = 3
"""Smallest number of slow trials that are compared."""
LEVEL = 0.05
MOST = 10
"""Number of causes that are listed."""
RARE = 0.01
"""Share of the extra time below which a time is not looked at, if it varies by no more over all trials."""
RESAMPLES, MOST_RESAMPLES, BATCH = 9_999, 99_999, 2_000
MOST_NEEDED = 1_000_000


class Observed(NamedTuple):
    """A quantity that was measured of each trial."""

    source: Source
    name: str
    """Name of the call, metric, or reading."""
    file: str
    """File of a call; empty for calls about none, and for all others."""
    unit: str


@dataclass(frozen=True)
class OutlierCause:
    """A quantity that differs between slow and typical trials."""

    of: Observed
    typical: float
    """Mean of the typical trials."""
    slow: float
    share: float | None
    """Share of the extra time; None if it is no time."""
    p: float
    """Two-sided, adjusted for all quantities that were looked at."""


@dataclass(frozen=True)
class Outliers:
    """Slow trials, and what differs in them."""

    trials: int
    bound_s: float
    slow: tuple[int, ...]
    """Positions of the slow trials."""
    typical_s: float
    """Mean time of the others."""
    slow_s: float
    """Mean time of the slow ones; NaN without any."""
    causes: tuple[OutlierCause, ...]
    """The largest share first, then those without one by p, in turn from each source."""
    looked_at: int
    needed: int | None
    """Number of trials with which a cause can be found, if these were too few; else None."""


def slow_trials(elapsed_s: Floats) -> tuple[float, NDArray[np.bool_]]:
    """The bound, s, and which trials are slower."""
    median = float(np.median(elapsed_s))
    deviation = SCALED * float(np.median(np.abs(elapsed_s - median)))
    bound = median + max(DEVIATIONS * deviation, LEAST * median)
    return bound, elapsed_s > bound


def outliers(elapsed_s: Floats, observed: Mapping[Observed, Floats], seed: int = 0) -> Outliers:
    """Compare the slow trials with the others in all that was observed. Arrays have shape (trials,)."""
    bound, slow = slow_trials(elapsed_s)
    count, many = elapsed_s.size, int(slow.sum())
    typical_s = float(elapsed_s[~slow].mean())
    slow_s = float(elapsed_s[slow].mean()) if many else math.nan
    extra_s = slow_s - typical_s
    names = [each for each, values in observed.items() if many and _is_looked_at(each, values, extra_s)]
    needed = _needed(count, many, len(names)) if many else None
    places = tuple(np.flatnonzero(slow).tolist())
    if not many or needed is not None or not names:
        return Outliers(count, bound, places, typical_s, slow_s, (), len(names), needed)
    table = np.column_stack([_without_gaps(observed[each]) for each in names])
    adjusted = [each.adjusted for each in holm(permutation_p(table, slow, seed).tolist())]
    causes = []
    for each, p in zip(names, adjusted, strict=True):
        if p is not None and p < LEVEL:
            usual, odd = (float(np.nanmean(observed[each][mask])) for mask in (~slow, slow))
            share = (odd - usual) / extra_s if each.unit == "s" else None
            if share is None or abs(share) >= RARE:
                causes.append(OutlierCause(each, usual, odd, share, p))
    return Outliers(count, bound, places, typical_s, slow_s, tuple(_ranked(causes)[:MOST]), len(names), None)


def _ranked(causes: Sequence[OutlierCause]) -> list[OutlierCause]:
    """Times by their shares, then the others by p and relative difference, in turn from each source."""
    times = sorted((c for c in causes if c.share is not None), key=lambda c: -(c.share or 0.0))
    turns = [
        sorted((c for c in causes if c.share is None and c.of.source == s), key=_clearness) for s in _IN_TURN
    ]
    return [*times, *(c for turn in zip_longest(*turns) for c in turn if c is not None)]


def _clearness(cause: OutlierCause) -> tuple[float, float]:
    return cause.p, -abs(cause.slow - cause.typical) / max(abs(cause.slow), abs(cause.typical))


def _is_looked_at(of: Observed, values: Floats, extra_s: float) -> bool:
    """True if it varies, by enough to matter; it does not depend on which trials are slow."""
    known = values[np.isfinite(values)]
    if known.size < 0.8 * values.size:
        return False
    varies = float(known.max() - known.min())
    return varies > (RARE * extra_s if of.unit == "s" else 0.0)


def _without_gaps(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nanmedian(values))


def _needed(count: int, slow: int, looked_at: int) -> int | None:
    """Number of trials with which the most distinct quantity could be significant, at this rate of slow ones; None if
    there are enough."""
    total, rate = count, slow / count
    while total < MOST_NEEDED:
        odd = slow if total == count else round(rate * total)
        if odd >= FEW_SLOW and looked_at / math.comb(total, odd) < LEVEL / 2:
            return None if total == count else total
        total = math.ceil(1.1 * total)
    return total


def permutation_p(table: Floats, slow: NDArray[np.bool_], seed: int = 0) -> Floats:
    """Two-sided p of each column, shape (columns,), for the rank sum of the slow rows of a table without constant
    columns; ties have their mean rank."""
    ranks = np.column_stack([_midranks(column) for column in table.T])
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    found = np.abs(slow @ ranks) - 1e-9
    resamples = int(np.clip(100 * table.shape[1], RESAMPLES, MOST_RESAMPLES))
    random, above = np.random.default_rng(seed), np.zeros(table.shape[1])
    for first in range(0, resamples, BATCH):
        size = min(BATCH, resamples - first)
        picked = random.permuted(np.broadcast_to(slow, (size, slow.size)), axis=1)
        above += (np.abs(picked.astype(np.float64) @ ranks) >= found).sum(axis=0)
    result: Floats = (above + 1.0) / (resamples + 1.0)
    return result


def _midranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    return found
