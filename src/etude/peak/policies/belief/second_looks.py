"""What has to be looked at once more before an answer may be trusted; a look costs a trial, so only where it matters.

1. *After an overload* a server may stay slow for a while. What was measured then may make its peak look lower than it
   is: by a factor of `LEFT_OVER` at most, say. Where the answer would hold even so, nothing is asked; else the highest
   load that was fine before the overload is offered again, and has to be as quick as before. Where it is not, once
   more at once: one slow trial may be chance.
2. *A lower load that was slower* than a higher one: both again.
3. *Nothing clearly too much above the answer*: a load well above it has to be, or the limit was only brushed by a hump.
   A load further above says nothing: a hump may end before it.
4. *Below the lowest load*: a higher load may be better still.
5. *Requests that failed in an overload*: whether a load well above is answered still less.
6. *Too few windows* of loads that are fine (`FEW`): one of these again, which shows stalls and marks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from etude.peak.diagnostics import DOUBT, SURE, by_load, conflict, mark_disturbed, overloads
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import posterior_of
from etude.peak.task import Task, Trial, TrialRequest

LEFT_OVER = math.log(3.0)
"""Log of how many times slower an overload may leave a server."""
HOLDS = 0.8
"""The answer holds even so when it has this probability then."""
DEEP = math.log(2.5)
"""Log of a reading that is no brush with the limit."""
MIDDLING = math.log(0.5)
"""Log of a reading that could be of a load that is fine by far, or nearly too much."""
ABOVE, FURTHER = 1.5, 1.9
"""Well above the answer, and further than that, as multiples of it."""
SHED = 0.02
"""Share of the requests that fail beyond which an overload does not only queue."""
CALM = math.log(1.1)
"""Log reading from which on windows differ anyway, and stalls do not show."""
FEW = 36
"""Fewer windows of calm trials than this, in all, show neither rare stalls nor marks."""
LOOK_WINDOWS = 6
"""What a look takes at least, so that two readings can be compared."""


def look(task: Task, known: Sequence[Evidence], rate: float, most: float) -> TrialRequest | None:
    """The trial that is needed before `rate` is answered, of a load of at most `most`; None when none is."""
    # Where the peak was predicted, it is no hump that the limit was brushed by.
    above = None if task.seed_spread is not None else _above(task, known, rate, most)
    return above or _recovered(task, known, rate)


def is_shedding(task: Task, trials: Sequence[Trial], rate: float, most: float) -> TrialRequest | None:
    """A load well above, where an overload was not queued but failed: it may answer fewer than at the peak."""
    load = min(ABOVE * rate, most)
    fails = any(
        trial.limited == "server" and any(window.failed > SHED * window.offered for window in trial.windows)
        for trial in trials
    )
    if not fails or load <= 1.05 * rate or any(trial.load >= 0.9 * load for trial in trials):
        return None
    load = float(round(load)) if task.whole else load
    return TrialRequest(load, task.runlength_s, "whether still fewer are answered well above")


def has_recovered(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """A second look at once, while a mark is fresh: what came after an overload is neither fine even if it was slowed,
    nor too much even so."""
    bad = overloads(known)
    if not bad or not any(MIDDLING < e.value < DEEP and e.order > bad[0].order for e in known):
        return None
    return _as_before(task, known)


def remarkable_loads(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """Another trial of a load that was slower in the only one after an overload."""
    found = mark_disturbed(known)
    if found is None or found[1].trials > 1:
        return None
    return TrialRequest(found[1].load, task.runlength_s, "it was slower after the overload: once more")


def calm_windows(known: Sequence[Evidence]) -> int:
    """Those in which a stall would have shown."""
    return sum(each.windows for each in known if each.value < CALM)


def rising_evidence(known: Sequence[Evidence]) -> list[Evidence]:
    """Without the loads below which, for certain, a higher load was quicker: the peak is looked for above them."""
    left = list(known)
    repeated = {each.load for each in by_load(known) if each.trials > 1}
    while (pair := conflict([e for e in left if e.load in repeated], SURE)) is not None:
        left = [each for each in left if each.load > pair[0].load]
    return left


def recheck_of(known: Sequence[Evidence], load: float) -> Evidence | None:
    """What a trial of this load is to be compared with: one before the first overload, when none came after it."""
    bad = overloads(known)
    if not bad:
        return None
    before = [each for each in known if each.load == load and each.order < bad[0].order]
    after = [each for each in known if each.load == load and each.order > bad[0].order]
    return before[-1] if before and not after else None


def _recovered(task: Task, known: Sequence[Evidence], rate: float) -> TrialRequest | None:
    bad = overloads(known)
    if (
        task.promise == "rate"
        and bad
        and calm_windows(known) >= FEW
        and _holds_even_so(task, known, rate, bad[0].order)
    ):
        return None
    return _as_before(task, known)


def _as_before(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    bad = overloads(known)
    if not bad or bad[0].order == known[-1].order:
        return None
    before = [each for each in known if each.order < bad[0].order and each.value < 0]
    if not before:
        return None
    target = max(before, key=lambda each: (each.load, each.order))
    if any(each.load == target.load and each.order > bad[0].order for each in known):
        return None
    return TrialRequest(target.load, task.runlength_s, "whether the overload has left its mark")


def _holds_even_so(task: Task, known: Sequence[Evidence], rate: float, since: int) -> bool:
    slack = [replace(e, slack=LEFT_OVER if e.order > since else 0.0) for e in known]
    belief = posterior_of(task, slack)
    held = belief.below(rate / (1 - task.within)) - belief.below(rate / (1 + task.within))
    return float(held) >= HOLDS


def repeat_of(task: Task, known: Sequence[Evidence]) -> TrialRequest | None:
    """The next trial of two loads of which the lower was slower, while either was tried but once."""
    pair = conflict(known, DOUBT)
    if pair is None:
        return None
    low, high = pair
    for each in (high, low):
        if each.trials < 2:
            slower, quicker = task.load_text(low.load), task.load_text(high.load)
            return TrialRequest(
                each.load,
                task.runlength_s,
                f"{slower} was slower than {quicker}: once more",
            )
    return None


def _above(task: Task, known: Sequence[Evidence], rate: float, most: float) -> TrialRequest | None:
    higher = [each for each in known if rate < each.load <= FURTHER * rate]
    if any(each.value >= DEEP for each in higher):
        return None
    well = [each for each in higher if each.load >= 0.9 * ABOVE * rate]
    load = min(ABOVE * rate, most)
    if (
        len(well) >= 2
        or any(each.value >= 2 * math.sqrt(each.within) for each in well)
        or load <= 1.05 * rate
    ):
        return None
    return TrialRequest(
        float(round(load)) if task.whole else load,
        task.runlength_s,
        "whether it is too much well above as well",
    )
