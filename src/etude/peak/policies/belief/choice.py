"""Choice of the next load.

The load whose trial raises the probability of the best answer most per benchmarking time, one step ahead. For each
candidate load, the possible outcomes of a trial under each shape and peak, its expected duration, and the resulting
answer are evaluated. This selects loads on both sides of the answer, where a short trial gives more information than a
long one in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from etude.peak.policies.belief.curves import Floats, family
from etude.peak.policies.belief.evidence import CAP, FLOOR, PRIOR_SCATTER, Evidence, ends
from etude.peak.policies.belief.grid import Belief
from etude.peak.task import Task, Trial

GROWTH = 3.5
"""Maximum load over the highest passing one: deep overloads may affect later trials."""
SAME = 0.1
"""Loads closer than this share of `within` are made equal: repeated trials show the between-trial variance."""
CLEAR = 3.0
"""Standard deviations from the limit at which a load's side is clear."""
LEAST_WINDOWS = 2
"""Windows of the shortest trial."""
SHARES = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)
"""Quantiles of the posterior that are candidate loads; others are next to the best answer, in units of `within`:"""
CANDIDATE_OFFSETS = (-9.0, -6.0, -4.0, -3.0, -2.0, -1.3, -1.0, -0.6, 0.6, 1.0, 1.3, 2.0, 3.0, 4.0, 6.0)
REPEAT_COST_WEIGHT = 0.5
"""Weight of the cost of a second trial at an end of the bracket: an answer needs it anyway."""
_EDGES = np.array([-math.inf, -2, -1, -0.6, -0.45, -0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.45, 0.6, math.inf])
"""Edges of the classes of log SLO ratios; beyond the limits of the curves there is one class each."""
_LEAST = 1e-6
"""Probability below which shapes and peaks are ignored in a choice."""
WINDOW_S, OVERHEAD_S = 10.0, 60.0
"""Defaults before the first trial, s."""
SLOW = 3.0
"""Estimated trials to the target above which learning the shape comes first."""


def next_load(
    task: Task, belief: Belief, known: Sequence[Evidence], trials: Sequence[Trial], most: float
) -> tuple[float, str]:
    """The next load, at most `most`, and the reason."""
    if not known and task.seed_spread is None:
        return task.seed_load or task.lowest, "where it begins"
    if not known and task.seed_trials and task.seed_load is not None and task.seed_spread is not None:
        below = task.seed_load * math.exp(-min(task.seed_spread, task.within))
        return max(min(below, most), task.lowest), "whether it is as predicted"
    fine = max((each.load for each in known if each.value < 0), default=0.0)
    too_much = min((each.load for each in known if each.value > 0), default=math.inf)
    highest = min(GROWTH * fine if fine else too_much / (1 + task.within), most) if known else most
    if task.promise == "region" and fine and too_much < math.inf:
        # For the region it is the response at the answer that has to be known, not the rate.
        wanted, why = belief.best_region(task.width)[0], "the likeliest to be near the limit"
    elif belief.quantile(0.25) > highest:
        wanted, why = highest, "nothing was too much yet"
    else:
        wanted, why = _most_telling(task, belief, known, trials, highest), "most informative for its time"
    return _settled(task, max(min(wanted, highest, most), task.lowest), known), why


def _most_telling(
    task: Task, belief: Belief, known: Sequence[Evidence], trials: Sequence[Trial], highest: float
) -> float:
    best, now = belief.best_rate(task.within)
    width = math.log1p(task.within)
    around = [best * math.exp(step * width) for step in CANDIDATE_OFFSETS]
    alone = {end for end in ends(known) if end is not None and sum(e.load == end for e in known) == 1}
    every = [*around, *alone, *(belief.quantile(share) for share in SHARES)]
    loads = sorted({_settled(task, max(min(load, highest), task.lowest), known) for load in every})
    overhead_s = float(np.mean([trial.cost_s - trial.ran_s for trial in trials])) if trials else OVERHEAD_S
    lengths = [window.duration_s for trial in trials for window in trial.windows]
    window_s = float(np.median(lengths)) if lengths else WINDOW_S
    longest = max(round(task.runlength_s / window_s), LEAST_WINDOWS)
    told = [forecast_of(belief, load, scatter(known, load), longest, task.within) for load in loads]
    cost_s = np.array([overhead_s + each.windows * window_s for each in told])
    cost_s *= [REPEAT_COST_WEIGHT if load in alone else 1.0 for load in loads]
    gains = np.array([each.sure - now for each in told])
    if SLOW * gains.max() < task.confidence - now:
        gains = np.array([each.bits for each in told])
    return loads[int(np.argmax(gains / cost_s))]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected outcome of a trial that may be made."""

    sure: float
    """Probability of the best answer after it."""
    bits: float
    """Mutual information of its outcome with shape and peak, nats."""
    windows: float
    """Expected windows until it ends."""


def forecast_of(belief: Belief, load: float, variance: float, longest: int, within: float) -> Forecast:
    """Forecast of a trial at a load.

    `variance`: variance of one window's log SLO ratio.
    """
    expected = np.clip(family().log_readings(math.log(load) - belief.log_peak), FLOOR, CAP)
    likely = belief.joint.T > _LEAST
    weights, logs = belief.joint.T[likely], expected.T[likely]
    windows = np.clip(CLEAR**2 * variance / np.maximum(logs**2, 1e-9), LEAST_WINDOWS, longest)
    spread = np.sqrt(belief.between + variance / windows)
    cumulated = special.ndtr((_EDGES[None, :] - logs[:, None]) / spread[:, None])
    chances = np.diff(cumulated, axis=1)
    counts = likely.sum(axis=1)
    outcomes = np.zeros((len(counts), chances.shape[1]))
    first = np.cumsum(counts) - counts
    outcomes[counts > 0] = np.add.reduceat(weights[:, None] * chances, first[counts > 0])
    return Forecast(
        float(_most_in(outcomes, belief, within).sum()),
        float(special.entr(outcomes.sum(axis=0)).sum()) - float(weights @ special.entr(chances).sum(axis=1)),
        float(weights @ windows / weights.sum()),
    )


def _most_in(outcomes: Floats, belief: Belief, within: float) -> Floats:
    """Maximum probability within `within` of one rate after each outcome, shape (outcomes,)."""
    step = float(belief.log_peak[1] - belief.log_peak[0])
    wide = math.log((1 + within) / (1 - within)) / step
    sums = np.vstack([np.zeros(outcomes.shape[1]), np.cumsum(outcomes, axis=0)])
    places = np.minimum(np.arange(len(sums)) + wide, len(sums) - 1)
    left = places.astype(np.intp)
    right = np.minimum(left + 1, len(sums) - 1)
    share = (places - left)[:, None]
    held = sums[left] * (1 - share) + sums[right] * share - sums
    return np.asarray(held.max(axis=0))


def scatter(known: Sequence[Evidence], load: float) -> float:
    """Variance of one window's log SLO ratio, from the nearest measured load."""
    if not known:
        return PRIOR_SCATTER
    near = min(known, key=lambda each: abs(math.log(each.load / load)))
    return min(max(near.within * near.windows, 0.01), 1.0)


def _settled(task: Task, load: float, known: Iterable[Evidence]) -> float:
    if task.whole:
        return float(min(max(round(load), 1, math.ceil(task.lowest)), math.floor(task.highest)))
    near = [each.load for each in known if abs(math.log(each.load / load)) < SAME * task.within]
    close = min(near, key=lambda each: abs(math.log(each / load)), default=load)
    return close if task.promise == "rate" else load
