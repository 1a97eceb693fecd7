"""The searches of "Cutting Corners", and the common practice that the paper compares them with (section 3.1).

Section 3.3, Algorithm 2: trials at a load until it is known not to be the peak, or known accurately enough. Our copy
lacks the algorithm's own lines; its prose says: two trials; the interval of the mean response at 95 %; no overlap with
the peak region: the next load, by one of several policies; overlap: more trials, until the accuracy a is reached at
confidence c, which ends the search, or there is no overlap any more; its answers have the interval that the trials
exclude, independent of a policy's model. Our reading:

- an interval that touches the region overlaps it;
- "after verifying that the t runs come from a normal distribution" (section 2.3): where Shapiro and Wilk refute that at
  5 %, the accuracy of up to 30 trials is not used, and one more is made. Only the end is checked, since later loads
  correct a search that continues;
- loads outside the permitted range are clamped; a load that is picked a second time, or a hundred trials at one load,
end the search with its target not met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from etude.peak.slo_ratio import (
    MOST_FOR_STUDENT,
    LoadHistory,
    Reading,
    allowed_load,
    bracket,
    half_width,
    side_of,
    sides_of,
)
from etude.peak.task import Answer, Finding, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.stats.shape import normality

Pick = Callable[[Task, Sequence[Reading]], float | Answer]
"""The next load after the measured ones, none of which is near the peak; or the answer if there is none."""

MOST_AT_A_LOAD = 100
"""Maximum trials at one load: if they have not decided, more are not worth their time."""

NORMALITY_LEVEL = 0.05

FEWEST = 2
"""Minimum trials at a load."""


class PaperPolicy:
    """Common part of the paper's policies: trials always run whole."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._visits = LoadHistory()

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """False: trials are never ended early."""
        return False

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """The best load so far."""
        return unfinished_answer(task, self._visits.of(task.goal, trials), why)


class Stopping(PaperPolicy):
    """Algorithm 2 around a load-picking policy."""

    def __init__(self, name: str, pick: Pick) -> None:
        super().__init__(name)
        self._pick = pick

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """More trials at the last load, or another load, or the end."""
        if not trials:
            return task.request(first_load(task), "the first load")
        visits = self._visits.of(task.goal, trials)
        load = trials[-1].load
        if is_uninformative(self._visits.values(task.goal, trials)):
            return unfinished_answer(task, visits, *uninformative_reason(task, trials[-1]))
        here = next((visit for visit in visits if visit.load == load), None)
        if here is None or len(here.values) < FEWEST:
            return task.request(load, f"{task.load_text(load)} takes {FEWEST} trials at least")
        if side_of(task, here) == "near":
            return self._at_peak(task, visits, here)
        return self._elsewhere(task, visits)

    def _at_peak(self, task: Task, visits: Sequence[Reading], here: Reading) -> TrialRequest | Answer:
        reached = accuracy(task, here)
        n = len(here.values)
        said = f"{here.mean:.2f} of the limit at {task.load_text(here.load)}"
        said += f", accuracy {100 * reached:.0f} % by {n} trials"
        if reached >= task.accuracy and (n > MOST_FOR_STUDENT or looks_normal(here)):
            return found_answer(task, visits, here.load, said)
        if n >= MOST_AT_A_LOAD:
            return unfinished_answer(task, visits, f"{said}: no more are made at one load")
        return task.request(here.load, said)

    def _elsewhere(self, task: Task, visits: Sequence[Reading]) -> TrialRequest | Answer:
        ended = end_of_range_answer(task, visits) or adjacent_loads(task, visits)
        if ended is not None:
            return ended
        picked = self._pick(task, visits)
        if isinstance(picked, Answer):
            return picked
        load, last = allowed_load(task, picked), visits[-1]
        if any(visit.load == load for visit in visits):
            return unfinished_answer(
                task, visits, f"{task.load_text(load)} was to be tried again: the policy does not get on"
            )
        why = f"{last.mean:.2f} of the limit at {task.load_text(last.load)}: {side_of(task, last)}"
        return task.request(load, why)


def first_load(task: Task) -> float:
    """The seed, else the lowest load ("Cutting Corners", section 3.7)."""
    return allowed_load(task, task.lowest if task.seed_load is None else task.seed_load)


def accuracy(task: Task, visit: Reading) -> float:
    """1 - (high - low) / (high + low) of the interval of the mean at confidence c (section 2.3, equation 2)."""
    return 1 - half_width(visit, task.confidence) / visit.mean if visit.mean > 0 else -math.inf


def looks_normal(visit: Reading) -> bool:
    """True unless the test rejects normality; two trials cannot."""
    tested = normality(visit.values)
    return tested is None or tested.p >= NORMALITY_LEVEL


def is_uninformative(values: Sequence[float]) -> bool:
    """True if neither of the last two trials has information on the server, so that a third is pointless. (The second
    is at the load of the first, which it was to replace.)"""
    return len(values) > 1 and all(map(math.isnan, values[-2:]))


def uninformative_reason(task: Task, trial: Trial) -> tuple[str, tuple[Finding, ...]]:
    """The reason as text and as findings."""
    at = f"two trials at {task.load_text(trial.load)} show nothing about the server"
    if trial.ended == "not-made":
        why = f"{at}: {trial.note}"
        return why, (Finding("load-not-made", why),)
    if trial.limited == "generator":
        why = f"{at}: the load generator did not offer so much"
        return why, (Finding("generator-limited", why),)
    why = f"{at}: they have no window with what the goal is about"
    return why, (Finding("no-windows", why),)


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


COLLAPSED = 5e-4
"""Relative width of an interval of loads that is too narrow to continue: the peak region of a sharp knee is ten times
as wide. It results from a misjudged load, or from a response that jumps."""


def binsearch() -> Stopping:
    """The policy. It begins at the seed, or else at the lowest load."""
    return Stopping("binsearch", pick_by_halving)


def pick_by_halving(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """Twice the highest load while all pass, else the middle. Our reading of the paper: if the first load fails, the
    interval begins at 0, so loads are halved until one passes."""
    fine, too_much = sides_of(task, visits)
    return 2 * fine if math.isinf(too_much) else middle(task, visits)


def middle(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """Middle of the interval that contains the peak. Our reading of the paper: a collapsed interval is an answer whose
    target is not met."""
    fine, too_much = sides_of(task, visits)
    if too_much - fine < COLLAPSED * too_much:
        why = f"{task.load_text(fine)} is fine, {task.load_text(too_much)} is too much"
        why += ", and nothing between was found near the limit"
        return unfinished_answer(task, visits, why)
    return (fine + too_much) / 2


def linear() -> Stopping:
    """The policy. It begins at the seed, or else at the lowest load."""
    return Stopping("linear", pick_by_steps)


def pick_by_steps(task: Task, visits: Sequence[Reading]) -> float | Answer:
    """One step up. Our reading of the paper: one step down while all fail, as a seed may."""
    fine, too_much = sides_of(task, visits)
    if math.isinf(too_much):
        return fine + step(task)
    return middle(task, visits) if fine > 0 else too_much - step(task)


def step(task: Task) -> float:
    """The paper's "small fixed increment", whose size it does not give: the task's `step`."""
    size = task.lowest if task.step is None else task.step
    return max(float(round(size)), 1.0) if task.whole else size


TRIALS = 10

RUNLENGTH_S = 300.0


class Strawman(PaperPolicy):
    """Common practice: steps of one size, ten trials of five minutes each, until the server is saturated.

    "Cutting Corners", section 3.1; run length and trials are those of its Figure 3. The last load before saturation is
    the peak rate: an answer within a step of the truth, and its rule promises no more.

    A load is saturated if the mean of ten trials is above the limit. Our reading of the paper: from a saturated seed
    it steps down, and the first load that is not saturated is the answer."""

    def __init__(self) -> None:
        super().__init__("strawman")

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """Another of the ten trials, or another load, or the end."""
        if not trials:
            return TrialRequest(first_load(task), RUNLENGTH_S, "the first load")
        visits = self._visits.of(task.goal, trials)
        load = trials[-1].load
        if is_uninformative(self._visits.values(task.goal, trials)):
            return unfinished_answer(task, visits, *uninformative_reason(task, trials[-1]))
        here = next((visit for visit in visits if visit.load == load), None)
        if here is None or len(here.values) < TRIALS:
            made = 0 if here is None else len(here.values)
            return TrialRequest(load, RUNLENGTH_S, f"trial {made + 1} of {TRIALS} at {task.load_text(load)}")
        return self._stepped(task, visits, here)

    def _stepped(self, task: Task, visits: Sequence[Reading], here: Reading) -> TrialRequest | Answer:
        saturated = here.mean > 1
        fine = max((visit.load for visit in visits if visit.mean <= 1), default=None)
        too_much = min((visit.load for visit in visits if visit.mean > 1), default=None)
        said = f"{here.mean:.2f} of the limit at {task.load_text(here.load)}"
        if fine is not None and too_much is not None:
            why = f"the last load before saturation, at {task.load_text(too_much)}"
            return found_answer(task, visits, fine, why)
        lowest, highest = allowed_ends(task)
        if here.load == (lowest if saturated else highest):
            which = "the lowest load" if saturated else "the highest load"
            finding = Finding("below-lowest" if saturated else "above-highest", f"{said}, {which}")
            return unfinished_answer(task, visits, f"{said}, {which}", (finding,))
        after = here.load + (-step(task) if saturated else step(task))
        return TrialRequest(allowed_load(task, after), RUNLENGTH_S, said)


MOST_LOADS = 30

SAME = 1e-6
"""Relative difference below which two loads are the same prediction."""

Curve = Callable[[Sequence[Reading]], float | None]
"""Load at which the curve through these SLO ratios reaches the limit; None if it does not."""


def model() -> Stopping:
    """The policy with the response of one queue, R = 1/(a - bλ)."""
    return Stopping("model", partial(pick_by_curve, 2, by_queue))


def polynomial() -> Stopping:
    """The policy with a parabola, R = a + bλ + cλ²."""
    return Stopping("polynomial", partial(pick_by_curve, 3, by_parabola))


def pick_by_curve(through: int, curve: Curve, task: Task, visits: Sequence[Reading]) -> float | Answer:
    """The curve's prediction after each load ("Cutting Corners", section 3.6, Algorithm 4).

    `through`: number of loads that it is fitted to: two, the last one, which was a prediction, and the one with the
    response nearest to the limit; for a parabola the two nearest. Our reading of the paper:

    - "insufficient tuples": as in Binsearch, twice the highest load while all are fine, half the lowest while all are
      too much, else the middle;
    - the same where the curve does not rise through its loads, or never reaches the limit;
    - the paper warns that the search may never converge. Predictions that return to a load that is known not to be the
      peak, or thirty loads, end it: the answer says so, and `kept` is false.
    """
    last = visits[-1]
    if len(visits) >= MOST_LOADS:
        return diverged(task, visits, f"{len(visits)} loads were tried")
    if len(visits) < through:
        return pick_by_halving(task, visits)
    nearest = sorted(visits[:-1], key=lambda visit: abs(visit.mean - 1))
    predicted = curve([last, *nearest[: through - 1]])
    if predicted is None:
        return pick_by_halving(task, visits)
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
