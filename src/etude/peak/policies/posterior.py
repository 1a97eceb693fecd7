"""The default policy: a posterior of the peak rate and the curve's shape, and as few trials as the target needs.

Each trial updates the posterior (`belief/`). The next load has the highest expected information per benchmarking time
(`belief/choice.py`), but is never much above the highest passing one. A trial ends when the target is met with enough
windows to show stalls, or when its side is clear. The search ends when the target is met with at least two trials near
the answer, after checks of what could have misled it (`belief/answer_checks.py`). If no shape fits the trials,
`bracket.py` decides without a shape, and the answer reports it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from etude.peak import diagnostics
from etude.peak.policies.belief.answer_checks import (
    CALM,
    LOOK_WINDOWS,
    TargetCheck,
    answer_of,
    calm_windows,
    highest_offerable_load,
    hysteresis_check,
    is_target_met,
    non_monotone_check,
    recheck_baseline,
    required_check,
    rising_evidence,
    shedding_check,
    slowdown_check,
    unbracketed,
)
from etude.peak.policies.belief.choice import CLEAR, LEAST_WINDOWS, next_load
from etude.peak.policies.belief.curves import family
from etude.peak.policies.belief.evidence import (
    CLEARLY,
    TRIALS_IF_DISAGREEING,
    TRIALS_IF_SURPRISING,
    Evidence,
    disturbed_trials,
    ends,
    evidence_of,
    half_suspect,
    unconfirmed_loads,
    window_evidence,
    without_trials,
)
from etude.peak.policies.belief.grid import Belief, posterior_of, quicker_ones, slow_share, slower_ones
from etude.peak.policies.bracket import Bracket
from etude.peak.task import Answer, Finding, Task, Trial, TrialRequest
from etude.peak.window import Window

PASSING_WINDOWS = 8
"""Windows of the shortest trial of a passing load: later trials may be compared with it, and stalls must show."""
CALM_WINDOWS = 40
"""Minimum windows of trials without overload before an answer: a stall of one in 20 shows in seven of eight such
samples."""
WILD = 6.0
"""Ratio of the slowest to the fastest of the first windows above which a stall may have made a load fail."""
LEAST_LOOK_WINDOWS, MOST_LOOK_WINDOWS = 3, 12
MOST_BLIND = 4
"""Number of consecutive uninformative trials that ends the search, except for loads that could not be offered: lower
ones follow."""
SURPRISE = 0.1
"""Probability, by the trials below it, up to which a failing load is surprising."""
SUFFICIENT_PROBABILITY = 0.6
"""Minimum probability of an answer without the trials of any one passing load."""
SUFFICIENT_PROBABILITY_FAILING = 0.9
"""Same for the failing load: trials that were all slow agree with each other."""
SAME_LOAD = 0.01
"""Log distance within which a load counts as tried."""
STALE, NARROWER = 20, 0.95
"""Number of trials that ends the search if the interval stays wider than this share of its former width."""
MOST_STALLED = 0.2
"""Share of all response time in stalls beyond which the mean is unreliable."""
MISFIT = 30.0
"""Excess of the sum of squared residuals over the number of trials above which no shape fits."""


class Posterior:
    """The policy (`policy.Policy`)."""

    name = "posterior"
    _fallback = Bracket()

    def __init__(self, watched: int = PASSING_WINDOWS) -> None:
        """`watched`: windows of the shortest trial of a passing load. More windows detect rarer stalls at a higher
        cost."""
        self.watched = watched
        family()  # computed here, so that no decision waits for it

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        known = evidence_of(task, trials)
        if not known and (trials or task.seed_spread is None):
            return self._fallback.decide(task, trials)
        if (
            known
            and uninformative_trials(trials[known[-1].order + 1 :], max(each.load for each in known))
            >= MOST_BLIND
        ):
            return self.best(task, trials, f"the last {MOST_BLIND} trials show nothing about the server")
        if self._stale(task, trials):
            return self.best(task, trials, f"the last {STALE} trials did not narrow the interval")
        doubt = (
            non_monotone_check(task, known) or hysteresis_check(task, known) or slowdown_check(task, known)
        )
        if doubt is not None:
            return doubt
        known = usable_trials(known)
        belief = posterior_of(task, known)
        misfit = find_misfit(task, belief, known)
        if misfit is not None:
            decision = self._fallback.decide(task, trials)
            return decision if isinstance(decision, TrialRequest) else with_finding(decision, misfit)
        bound = out_of_range_answer(task, trials, belief, known)
        if bound is not None:
            return bound
        now, most = answer_of(task, belief, known), highest_offerable_load(task, trials)
        if now.met:
            extra = required_check(task, known, now.rate, most) or shedding_check(
                task, trials, now.rate, most
            )
            return (
                extra
                or nearer_load(task, evidence_of(task, trials), now.rate, most)
                or confirmation_trial(task, evidence_of(task, trials), now.rate)
                or answer(task, trials, belief, now, "")
            )
        return task.request(*next_load(task, belief, known, trials, most))

    def _stale(self, task: Task, trials: Sequence[Trial]) -> bool:
        if len(trials) < 2 * STALE or len(trials) % STALE:
            return False
        then, now = (self.best(task, made, "") for made in (trials[:-STALE], trials))
        return width_of(now) > NARROWER * width_of(then) or width_of(now) == math.inf

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """True if the target is met with these windows, or the load's side is clear and nothing else is needed."""
        known = evidence_of(task, trials)
        now = window_evidence(task.goal, request.load, windows, len(trials))
        if len(windows) < LEAST_WINDOWS or now is None:
            return False
        if len(windows) < LOOK_WINDOWS and is_wild(task, windows):
            return False
        before = recheck_baseline(known, request.load)
        if before is not None:
            told = comparable_trials(before, now)
        elif abs(now.value) >= CLEAR * math.sqrt(now.within):
            told = len(windows) >= self._least(known, now)
        else:
            told = self._told(task, trials, request, windows, now)
        return told and has_enough_windows(task, known, now)

    def _least(self, known: Sequence[Evidence], now: Evidence) -> int:
        """Minimum windows of a trial whose side is clear."""
        before = [each.value for each in known if each.load == now.load]
        if before and min(*before, now.value) >= CLEARLY:
            return LEAST_WINDOWS
        if before:
            pair = diagnostics.conflict(known, diagnostics.DOUBT)
            doubted = pair is not None and now.load in (pair[0].load, pair[1].load)
            return MOST_LOOK_WINDOWS if doubted else LOOK_WINDOWS
        return self.watched if now.value < 0 else LEAST_WINDOWS

    def _told(
        self,
        task: Task,
        trials: Sequence[Trial],
        request: TrialRequest,
        windows: Sequence[Window],
        now: Evidence,
    ) -> bool:
        """True if a trial whose side is not clear has enough windows."""
        known = usable_trials(evidence_of(task, trials))
        belief = posterior_of(task, known)
        if known and find_misfit(task, belief, known) is not None:
            return self._fallback.enough(task, trials, request, windows)
        now = replace(now, slow_share=known[0].slow_share if known else 0.0)
        if is_target_met(task, belief, known).met:  # a check: only its side matters
            clear = now.value >= 2 * math.sqrt(now.within) and len(windows) >= LOOK_WINDOWS
            return clear or len(windows) >= MOST_LOOK_WINDOWS
        return is_target_met(task, belief.updated(now), [*known, now]).met

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """The most probable rate so far."""
        known = usable_trials(evidence_of(task, trials))
        if not known:
            return Answer(None, 0.0, math.inf, 0.0, False, why, diagnostics.findings(task, trials))
        belief = posterior_of(task, known)
        misfit = find_misfit(task, belief, known)
        if misfit is not None:
            return with_finding(self._fallback.best(task, trials, why), misfit)
        return answer(task, trials, belief, answer_of(task, belief, known), why)


def usable_trials(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials without disturbed ones and without loads slower than a higher one; if trials of a load disagree, each may
    be in the slow mode."""
    share = slow_share(known)
    return [
        replace(each, slow_share=share)
        for each in rising_evidence(without_trials(known, disturbed_trials(known)))
    ]


def confirmation_trial(task: Task, known: Sequence[Evidence], rate: float) -> TrialRequest | None:
    """Another trial of a load that the answer depends on; None if it depends on none. The bar is higher for the failing
    load."""
    left = usable_trials(known)
    too_much = ends(left)[1]
    for load, why in unconfirmed_loads(known):
        marked = load == too_much and (
            after_overload(left, load) or half_suspect([each for each in left if each.load == load])
        )
        strict = load == too_much and not task.seed_trials
        if marked or depends_on_load(
            task, left, rate, load, SUFFICIENT_PROBABILITY_FAILING if strict else SUFFICIENT_PROBABILITY
        ):
            return task.request(load, why)
    made = sum(each.load == too_much for each in left)
    if too_much is None or made >= TRIALS_IF_DISAGREEING:
        return None
    if slow_share(known) or (made < TRIALS_IF_SURPRISING and is_surprising(task, left, too_much)):
        return task.request(too_much, "a slow mode may have made it too much")
    return None


def nearer_load(task: Task, known: Sequence[Evidence], rate: float, most: float) -> TrialRequest | None:
    """A trial at the answer if all trials are so far from the limit that they only give a bound."""
    load = task.rounded(rate)
    tried = any(abs(math.log(each.load / load)) < SAME_LOAD for each in known)
    if unbracketed(task, known, rate) is None or load > most or tried:
        return None
    return task.request(load, "no load near the limit was tried yet")


def after_overload(known: Sequence[Evidence], load: float) -> bool:
    """True if each trial of a load came after an overload, which may have made it fail."""
    first = min((each.order for each in diagnostics.overloads(known)), default=math.inf)
    return all(each.order > first for each in known if each.load == load)


def is_surprising(task: Task, known: Sequence[Evidence], too_much: float) -> bool:
    """True if the trials below make it improbable that this load fails: the curve is steeper than they suggest."""
    lower = [each for each in known if each.load < too_much]
    return bool(lower) and float(posterior_of(task, lower).below(too_much)) < SURPRISE


def depends_on_load(task: Task, known: Sequence[Evidence], rate: float, load: float, stands: float) -> bool:
    """True if the answer has a probability below `stands` without the trials of one load."""
    others = [each for each in known if each.load != load]
    if not others and not task.seed_trials:
        return True
    return float(posterior_of(task, others).near(rate, task.within)) < stands


def width_of(found: Answer) -> float:
    """Log ratio of the interval's ends; inf without a bound."""
    return math.log(found.high / found.low) if found.low > 0 and found.high < math.inf else math.inf


def uninformative_trials(last: Sequence[Trial], highest: float) -> int:
    """Number of the last, uninformative trials after which no lower load is left to try."""
    return sum(trial.offered or trial.load <= highest for trial in last)


def has_enough_windows(task: Task, known: Sequence[Evidence], now: Evidence) -> bool:
    """True if an answer now would have enough windows to show stalls: more windows of one trial are cheap."""
    if task.seed_trials or now.value >= CALM or calm_windows([*known, now]) >= CALM_WINDOWS:
        return True  # similar configurations have shown no stalls
    every = usable_trials([*known, now])
    return not is_target_met(task, posterior_of(task, every), every).met


def is_wild(task: Task, windows: Sequence[Window]) -> bool:
    """True if a load fails by few windows of which some pass."""
    values = [task.goal.reading([window]) for window in windows]
    return min(values) < 2 < sum(values) / len(values) and max(values) > WILD * min(values)


def comparable_trials(before: Evidence, now: Evidence) -> bool:
    """True if the repeat of a load after an overload is clearly as fast as before, or clearly slower."""
    spread = math.sqrt(before.within + now.within)
    off = (now.value - before.value) / spread
    if now.windows >= MOST_LOOK_WINDOWS:
        return True
    if now.windows < LEAST_LOOK_WINDOWS:
        return False
    return off <= 0 if now.windows < LOOK_WINDOWS else off < 0.7 or off > 1.5 * diagnostics.SLOWER


def find_misfit(task: Task, belief: Belief, known: Sequence[Evidence]) -> Finding | None:
    """Finding if the residuals are too large even for the most probable shape and peak."""
    misses = belief.misses(known)
    if float(misses @ misses) - len(misses) < MISFIT:
        return None
    worst = int(np.argmax(np.abs(misses)))
    text = f"no shape fits: the trial at {task.load_text(known[worst].load)} is {abs(misses[worst]):.1f}"
    text += " standard deviations off"
    return Finding("model-misfit", text + "; decided by halving a bracket instead")


def with_finding(found: Answer, finding: Finding) -> Answer:
    """The answer with one more finding."""
    return replace(found, why=found.why or finding.what, findings=(finding, *found.findings))


def out_of_range_answer(
    task: Task, trials: Sequence[Trial], belief: Belief, known: Sequence[Evidence]
) -> TrialRequest | Answer | None:
    """The end of a search whose peak is outside the offerable loads; None while that is uncertain."""
    most = highest_offerable_load(task, trials)
    under, over = float(belief.below(task.lowest)), 1 - float(belief.below(most))
    at_lowest = [each for each in known if each.load <= task.lowest and each.value > 0]
    at_most = [each for each in known if each.load >= 0.97 * most and each.value <= 0]
    if under >= task.confidence and len(at_lowest) >= 2:
        higher = min(3 * task.lowest, most)
        if all(each.load <= task.lowest for each in known) and higher > task.lowest:
            return task.request(higher, "whether a higher load is too much as well")
        what = f"{task.load_text(task.lowest)}, the lowest load, is too much already"
        return bounded_answer(task, trials, Finding("below-lowest", what), 0.0, task.lowest, under)
    if over >= task.confidence and len(at_most) >= 2:
        top = max(each.load for each in at_most)
        limit = "the highest load" if most == task.highest else "the most that could be offered"
        what = f"{task.load_text(top)}, {limit}, is fine still"
        high = min((each.load for each in known if each.load > top and each.value > 0), default=math.inf)
        return bounded_answer(task, trials, Finding("above-highest", what), top, high, over)
    return None


def bounded_answer(
    task: Task, trials: Sequence[Trial], finding: Finding, low: float, high: float, sure: float
) -> Answer:
    """An answer that is only a bound."""
    return Answer(None, low, high, sure, False, finding.what, (finding, *diagnostics.findings(task, trials)))


def answer(task: Task, trials: Sequence[Trial], belief: Belief, now: TargetCheck, why: str) -> Answer:
    """Answer from the posterior, unless a finding contradicts its assumptions."""
    tail = (1 - task.confidence) / 2
    found = tuple(with_mode_rates(task, trials, each) for each in diagnostics.findings(task, trials))
    against = [
        each
        for each in found
        if each.kind not in diagnostics.HARMLESS and not is_answer_robust(task, trials, now, each)
    ]
    if against and not why:
        why = f"{against[0].kind}: {against[0].what}"
    low, high = belief.quantile(tail), belief.quantile(1 - tail)
    # The rate that meets the target most probably may lie on one side of a skewed posterior.
    rate = now.rate if task.whole else min(max(now.rate, low), high)
    low, high = min(low, rate), max(high, rate)
    ends = unbracketed(task, evidence_of(task, trials), rate)
    if ends is not None:
        fine, too_much = ends
        sure = 1 - float(belief.below(fine)) if fine else float(belief.below(too_much))
        finding = diagnostics.not_bracketed(task, *ends, trials)
        return Answer(None, fine, too_much, sure, False, why or finding.what, (finding, *found))
    return Answer(rate, low, high, now.confidence, now.met and not against, why, found)


def with_mode_rates(task: Task, trials: Sequence[Trial], finding: Finding) -> Finding:
    """A bimodal finding with the most probable rate of each mode."""
    if finding.kind != "bimodal":
        return finding
    known = evidence_of(task, trials)
    quick, slow = (
        posterior_of(task, rising_evidence(without_trials(known, dropped))).best_rate(task.within)[0]
        for dropped in (slower_ones(known), quicker_ones(known))
    )
    return replace(
        finding,
        what=f"{finding.what}: a peak rate of about {task.load_text(quick)}, or of about {task.load_text(slow)}",
    )


def is_answer_robust(task: Task, trials: Sequence[Trial], now: TargetCheck, finding: Finding) -> bool:
    """True if the answer holds despite a finding: it is as good without stalls; a peak remains one if less is answered
    above it."""
    if finding.kind == "disturbed":
        return len(disturbed_trials(evidence_of(task, trials))) == 1
    if finding.kind != "stalling" or task.promise != "rate":
        return finding == diagnostics.find_collapsing(task, trials)
    if diagnostics.stalled_share(task, trials) > MOST_STALLED:
        return False
    calm = posterior_of(
        task,
        rising_evidence(evidence_of(task, [diagnostics.without_stalls(task, trial) for trial in trials])),
    )
    return float(calm.near(now.rate, task.within)) >= task.confidence - 0.05
