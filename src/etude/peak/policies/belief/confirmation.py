"""Confirmation of answers: no answer depends on a single slow trial; the loads on either side have a second one.

A trial may be disturbed by another program, a slow mode, or hysteresis. This makes it slower, never faster, so a
clearly passing load needs no second trial. A trial far off the others of its load, which agree, is excluded; two that
disagree get a third. If a disturbance is visible (steal time, late requests), one trial without it is enough to exclude
a slower one, and no answer depends on a disturbed one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.belief.evidence import PRIOR_BETWEEN, Evidence

TRIALS_IF_SURPRISING, TRIALS_IF_DISAGREEING = 3, 4
"""Trials that a failing load needs if the curve contradicts it, or if its trials disagree."""
APART = 3.0
"""Standard deviations by which two trials of a load disagree."""
CLEARLY = math.log(1.5)
"""Log SLO ratio above which two trials agree whatever they read: the load fails. As far below the limit, a load clearly
passes."""


def disagree(one: Evidence, other: Evidence) -> bool:
    """True if two trials of one load differ by more than their windows explain."""
    if min(one.value, other.value) >= CLEARLY:
        return False
    spread = math.sqrt(one.within + other.within + 2 * PRIOR_BETWEEN)
    return abs(one.value - other.value) >= APART * spread


MOST_SUSPECT = 4
"""Maximum trials of a load that are repeated because of disturbances."""


def slower_trials(one: Evidence, other: Evidence) -> bool:
    """True if `one` is slower than `other` and they disagree."""
    return one.value > other.value and disagree(one, other)


def disturbed_trials(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials slower than all others of their load, of which at least two agree, or one is undisturbed while these are
    suspect."""
    found = []
    for load in sorted({each.load for each in known}):
        group = sorted((each for each in known if each.load == load), key=lambda each: each.value)
        quiet = [each for each in group if not each.suspect]
        off = [e for e in group if quiet and e.suspect and slower_trials(e, quiet[-1])]
        found += off
        group = without_trials(group, off)
        if len(group) < 3:
            continue
        *others, slowest = group
        agree = not disagree(others[0], others[-1])
        if agree and disagree(others[-1], slowest):
            found.append(slowest)
    return found


def without_trials(known: Sequence[Evidence], dropped: Sequence[Evidence]) -> list[Evidence]:
    """Trials without the dropped ones."""
    orders = {each.order for each in dropped}
    return [each for each in known if each.order not in orders]


def ends(known: Sequence[Evidence]) -> tuple[float | None, float | None]:
    """The highest passing load below the lowest failing one, and that one; None if there is none."""
    groups: dict[float, list[Evidence]] = {}
    for each in known:
        groups.setdefault(each.load, []).append(each)
    means = {
        load: sum(e.value / e.within for e in of) / sum(1 / e.within for e in of)
        for load, of in groups.items()
    }
    too_much = min((load for load, mean in means.items() if mean > 0), default=None)
    below = [load for load, mean in means.items() if mean <= 0 and (too_much is None or load < too_much)]
    return max(below, default=None), too_much


def unconfirmed_loads(known: Sequence[Evidence]) -> list[tuple[float, str]]:
    """Loads that need another trial before an answer may depend on them, and the reason. The failing load comes first:
    the other one then shows hysteresis."""
    kept = without_trials(known, disturbed_trials(known))
    fine, too_much = ends(kept)
    found = []
    for load in (too_much, fine):
        group = [each for each in kept if each.load == load]
        if load is not None and len(group) == 1 and (load == too_much or group[0].value > -CLEARLY):
            found.append((load, "no answer rests on one trial"))
        elif load is not None and len(group) == 2 and disagree(*group):
            found.append((load, "two trials disagree"))
        elif load is not None and len(group) < MOST_SUSPECT and half_suspect(group):
            found.append((load, "half of its trials or more were disturbed"))
    return found


def half_suspect(group: Sequence[Evidence]) -> bool:
    """True if half or more of the trials of a load are suspect, counting only failing ones if there are any."""
    told = [each for each in group if each.value > 0] or group
    return 2 * sum(each.suspect for each in told) >= len(told)
