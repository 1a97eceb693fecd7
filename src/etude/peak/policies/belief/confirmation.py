"""No answer rests on one slow trial: the loads on either side of it have a second one, at another time.

A trial may be disturbed: by another program, a slow mode, a mark of the trial before. That makes it slower, never
quicker: a load that is clearly fine has no second trial. What is off the other trials of
its load, which agree, is left out; two that disagree get a third. Where a disturbance shows itself (steal
time, requests sent late), one trial without it is enough to leave a slower one out, and an answer rests on none that
had it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.peak.policies.belief.evidence import PRIOR_BETWEEN, Evidence

SURPRISED, DOUBTED = 3, 4
"""So many trials needs a load that is too much: where the curve says otherwise, and where trials of a load disagree."""
APART = 3.0
"""Standard deviations by which two trials of a load disagree."""
CLEARLY = math.log(1.5)
"""Log reading from which on two trials agree, whatever they read: the load is too much. As far below the limit, a load
is clearly fine."""


def disagree(one: Evidence, other: Evidence) -> bool:
    """Whether two trials of one load differ by more than their windows allow."""
    if min(one.value, other.value) >= CLEARLY:
        return False
    spread = math.sqrt(one.within + other.within + 2 * PRIOR_BETWEEN)
    return abs(one.value - other.value) >= APART * spread


MOST_SUSPECT = 4
"""After so many trials of a load no more are made because of disturbances."""


def slower_trials(one: Evidence, other: Evidence) -> bool:
    """Whether the first disagrees with the other, being slower."""
    return one.value > other.value and disagree(one, other)


def disturbed_trials(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials that are slower than all others of their load, of which there are two at least that agree, or one that
    is not suspect while they are."""
    found = []
    for load in sorted({each.load for each in known}):
        group = sorted((each for each in known if each.load == load), key=lambda each: each.value)
        quiet = [each for each in group if not each.suspect]
        off = [e for e in group if quiet and e.suspect and slower_trials(e, quiet[-1])]
        found += off
        group = all_but(group, off)
        if len(group) < 3:
            continue
        *others, slowest = group
        agree = not disagree(others[0], others[-1])
        if agree and disagree(others[-1], slowest):
            found.append(slowest)
    return found


def all_but(known: Sequence[Evidence], dropped: Sequence[Evidence]) -> list[Evidence]:
    """All but these."""
    orders = {each.order for each in dropped}
    return [each for each in known if each.order not in orders]


def ends(known: Sequence[Evidence]) -> tuple[float | None, float | None]:
    """The highest load judged fine below the lowest judged too much, and that one; None where there is none."""
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
    """Loads that need another trial before an answer may rest on them, and why. The load that is too much comes first:
    the other then shows whether it has left a mark."""
    kept = all_but(known, disturbed_trials(known))
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
    """Whether half or more of the trials of a load are suspect; only of those that were too much, where any were."""
    told = [each for each in group if each.value > 0] or group
    return 2 * sum(each.suspect for each in told) >= len(told)
