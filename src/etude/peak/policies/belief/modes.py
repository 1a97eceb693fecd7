"""Two modes: trials of one load that disagree, since the server is slower in some trials than in others.

A slow trial may look like a load that is too much, and no window of it shows that. So where trials of a load disagree,
every other trial may be of the slow mode too, with the share that slow ones have among repeated loads: the belief is as
wide as that allows (`likelihood.with_slow`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from etude.peak.policies.belief.confirmation import CLEARLY, disagree
from etude.peak.policies.belief.evidence import Evidence

AGREED = 2
"""So many trials in the usual mode are assumed besides those that were made."""


def split_modes(known: Sequence[Evidence]) -> list[tuple[list[Evidence], list[Evidence]]]:
    """Of each load whose trials disagree, the quicker and the slower ones: on either side of the widest gap. Trials
    with steal time are slow for a reason that is known."""
    quiet = [each for each in known if not each.suspect]
    found = []
    for load in sorted({each.load for each in quiet}):
        group = sorted((each for each in quiet if each.load == load), key=lambda each: each.value)
        gaps = [high.value - low.value for low, high in pairwise(group)]
        at = gaps.index(max(gaps)) + 1 if gaps else 0
        if gaps and disagree(group[at - 1], group[at]):
            found.append((group[:at], group[at:]))
    return found


def quicker_ones(known: Sequence[Evidence]) -> list[Evidence]:
    """Those of the quicker mode, of loads whose trials disagree."""
    return [each for quicker, _ in split_modes(known) for each in quicker]


def slower_ones(known: Sequence[Evidence]) -> list[Evidence]:
    """Those of the slower mode, of loads whose trials disagree."""
    return [each for _, slower in split_modes(known) for each in slower]


def slow_share(known: Sequence[Evidence]) -> float:
    """The probability that a trial is of the slower mode, from loads that have several; 0 where all of them agree.

    A load that was far too much in each trial is so in both modes, and tells nothing of them.
    """
    shows = {each.load for each in known if each.value < CLEARLY}
    loads = [each.load for each in known if each.load in shows]
    return len(slower_ones(known)) / (sum(loads.count(load) > 1 for load in loads) + AGREED)
