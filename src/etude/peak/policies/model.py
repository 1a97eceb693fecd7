"""Loads at which a fitted curve reaches the limit ("Cutting Corners", section 3.6, Algorithm 4).

*model*: R = 1/(a - bλ), through two loads: the last one, which was a prediction, and the one with the response nearest
to the limit. *polynomial*: R = a + bλ + cλ², through three: the last one and the two nearest. Our reading of the paper:

- "insufficient tuples": as in Binsearch, twice the highest load while all are fine, half the lowest while all are too
  much, else the middle;
- the same where the curve does not rise through its loads, or never reaches the limit;
- the paper warns that the search may never converge. Predictions that return to a load that is known not to be the
  peak, or thirty loads, end it: the answer says so, and `kept` is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from etude.peak.policies import binsearch
from etude.peak.policies.answer import unfinished_answer
from etude.peak.policies.load_history import allowed_load
from etude.peak.policies.stopping import Stopping
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, Finding, Task

MOST_LOADS = 30

SAME = 1e-6
"""Relative difference below which two loads are the same prediction."""

Curve = Callable[[Sequence[Reading]], float | None]
"""Load at which the curve through these SLO ratios reaches the limit; None if it does not."""


def model() -> Stopping:
    """The policy with the response of one queue."""
    return Stopping("model", partial(pick_load, 2, by_queue))


def polynomial() -> Stopping:
    """The policy with a parabola."""
    return Stopping("polynomial", partial(pick_load, 3, by_parabola))


def pick_load(through: int, curve: Curve, task: Task, visits: Sequence[Reading]) -> float | Answer:
    """The curve's prediction after each load; `through`: number of loads that it is fitted to."""
    last = visits[-1]
    if len(visits) >= MOST_LOADS:
        return diverged(task, visits, f"{len(visits)} loads were tried")
    if len(visits) < through:
        return binsearch.pick_load(task, visits)
    nearest = sorted(visits[:-1], key=lambda visit: abs(visit.mean - 1))
    predicted = curve([last, *nearest[: through - 1]])
    if predicted is None:
        return binsearch.pick_load(task, visits)
    load = allowed_load(task, predicted)
    if any(math.isclose(visit.load, load, rel_tol=SAME) for visit in visits):
        return diverged(task, visits, f"it predicts {task.load_text(load)} again")
    return load


def by_queue(tuples: Sequence[Reading]) -> float | None:
    """Load at which the queue's response, 1/R linear in λ, reaches the limit."""
    one, other = tuples
    if one.mean <= 0 or other.mean <= 0:
        return None
    falls = (1 / other.mean - 1 / one.mean) / (one.load - other.load)
    return one.load + (1 / one.mean - 1) / falls if falls > 0 else None


def by_parabola(tuples: Sequence[Reading]) -> float | None:
    """Load at which the parabola rises through the limit."""
    first, second, third = sorted(tuples, key=lambda visit: visit.load)
    rise = (second.mean - first.mean) / (second.load - first.load)
    later = (third.mean - second.mean) / (third.load - second.load)
    bend = (later - rise) / (third.load - first.load)
    # R - 1 around the middle load: bend·x² + slope·x + offset.
    slope = rise + bend * (second.load - first.load)
    offset = second.mean - 1
    inside = slope * slope - 4 * bend * offset
    if inside <= 0:
        return None
    root = math.sqrt(inside)
    # The root with a positive slope, without cancellation.
    x = -2 * offset / (slope + root) if slope > 0 else (root - slope) / (2 * bend) if bend else math.nan
    return second.load + x if math.isfinite(x) and second.load + x > 0 else None


def diverged(task: Task, visits: Sequence[Reading], how: str) -> Answer:
    """The end of a search that does not converge."""
    last = visits[-1]
    what = f"the fitted curve does not lead to the peak: {how}, the last gave {last.mean:.2f} of the limit"
    return unfinished_answer(task, visits, what, (Finding("model-misfit", what),))
