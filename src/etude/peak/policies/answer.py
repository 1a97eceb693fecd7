"""Answers whose interval is what the trials exclude, independent of the policy's model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.load_history import half_width, side_of, sides_of
from etude.peak.slo_ratio import Reading, bracket
from etude.peak.task import Answer, Finding, Task


def found_answer(task: Task, visits: Sequence[Reading], rate: float, why: str) -> Answer:
    """Answer of a policy whose own rule has ended the search at `rate`."""
    low, high = bounds(task, visits, rate)
    return Answer(rate, low, high, task.confidence, True, why, contradictions(task, visits))


def unfinished_answer(
    task: Task, visits: Sequence[Reading], why: str, findings: Sequence[Finding] = ()
) -> Answer:
    """The best answer so far: the load in the peak region whose SLO ratio is nearest to 1, else the middle of the
    bracket, else only bounds."""
    near = [visit for visit in visits if len(visit.values) > 1 and side_of(task, visit) == "near"]
    fine, too_much = bracket(sorted(visits, key=lambda visit: visit.load))
    rate: float | None = None
    if near:
        rate = min(near, key=lambda visit: abs(visit.mean - 1)).load
    elif fine > 0 and math.isfinite(too_much):
        rate = (fine + too_much) / 2
        if task.whole:
            rate = float(math.floor(rate))
    low, high = bounds(task, visits, rate)
    both = (*findings, *contradictions(task, visits))
    return Answer(rate, low, high, task.confidence, False, why, both)


def end_of_range_answer(task: Task, visits: Sequence[Reading]) -> Answer | None:
    """Answer with one bound if the last load is the lowest and fails, or the highest and passes, and no other load
    contradicts it; else None."""
    last = visits[-1]
    where = side_of(task, last)
    lowest, highest = allowed_ends(task)
    others = {side_of(task, visit) for visit in visits[:-1] if len(visit.values) > 1}
    if where == "too much" and last.load == lowest and "fine" not in others:
        what = f"{_share(task, last)} at the lowest load, {task.load_text(last.load)}"
        finding = Finding("below-lowest", what)
        return Answer(None, 0.0, last.load, task.confidence, False, what, (finding,))
    if where == "fine" and last.load == highest and "too much" not in others:
        what = f"{_share(task, last)} at the highest load, {task.load_text(last.load)}"
        finding = Finding("above-highest", what)
        return Answer(None, last.load, math.inf, task.confidence, False, what, (finding,))
    return None


def adjacent_loads(task: Task, visits: Sequence[Reading]) -> Answer | None:
    """Answer for whole-number loads: the highest passing one, if the next one fails. The paper has no such rule; no
    rule on response times could be more precise."""
    fine, too_much = sides_of(task, visits)
    if not task.whole or fine <= 0 or too_much - fine > 1:
        return None
    why = f"{task.load_text(fine)} is fine and {task.load_text(too_much)} is too much: there is none between"
    return found_answer(task, visits, fine, why)


def bounds(task: Task, visits: Sequence[Reading], rate: float | None) -> tuple[float, float]:
    """The highest load up to `rate` whose mean is significantly within the limit, and the lowest one above it whose
    mean is significantly above; 0 and inf if there is none. Each is wrong with at most half of 1 - confidence."""
    surely = [(visit, half_width(visit, task.confidence)) for visit in visits if len(visit.values) > 1]
    above = [visit.load for visit, half in surely if visit.mean - half > 1]
    if rate is None:
        rate = min(above, default=math.inf)
    fine = [visit.load for visit, half in surely if visit.mean + half <= 1 and visit.load <= rate]
    return max(fine, default=0.0), min((load for load in above if load >= rate), default=math.inf)


def contradictions(task: Task, visits: Sequence[Reading]) -> tuple[Finding, ...]:
    """Findings for loads that pass although a lower one fails."""
    judged = [(visit, side_of(task, visit)) for visit in visits if len(visit.values) > 1]
    too_much = min((v for v, where in judged if where == "too much"), key=lambda v: v.load, default=None)
    fine = max((v for v, where in judged if where == "fine"), key=lambda v: v.load, default=None)
    if too_much is None or fine is None or fine.load < too_much.load:
        return ()
    high, low = (f"{_share(task, each)} at {task.load_text(each.load)}" for each in (too_much, fine))
    return (Finding("non-monotone", f"{high}, {low}"),)


def allowed_ends(task: Task) -> tuple[float, float]:
    """Lowest and highest permitted load."""
    if task.whole:
        return float(math.ceil(task.lowest)), float(math.floor(task.highest))
    return task.lowest, task.highest


def _share(task: Task, visit: Reading) -> str:
    half = half_width(visit, task.confidence)
    return f"{visit.mean:.2f} ± {half:.2f} of the limit"
