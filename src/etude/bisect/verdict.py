"""Answer of a bisection from its posterior: a commit, a range, no step, a drift, or not yet known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from etude.bisect.posterior import Posterior

Kind = Literal["commit", "range", "none", "drift", "undecided"]


@dataclass(frozen=True)
class Answer:
    """Finding of a bisection, with its probability."""

    kind: Kind
    first: int
    """Index of the first commit of the range; of a commit the commit itself; 0 where there is none."""
    last: int
    probability: float

    @property
    def decided(self) -> bool:
        """True unless more trials are needed."""
        return self.kind != "undecided"


def answer_of(posterior: Posterior, broken: Collection[int], *, confidence: float, smallest: float) -> Answer:
    """Answer at a confidence; *undecided* with the smallest range that has that probability.

    broken: commits that cannot be measured: the range of a step among them cannot be narrowed.
    """
    nothing = max(posterior.none, posterior.below(smallest))
    if nothing >= confidence:
        return Answer("none", 0, 0, nothing)
    if posterior.drift >= confidence:
        return Answer("drift", 0, posterior.commits.size - 1, posterior.drift)
    top = int(np.argmax(posterior.commits))
    first = last = top
    while first - 1 > 0 and first - 1 in broken:
        first -= 1
    while last in broken:
        last += 1
    share = float(posterior.commits[first : last + 1].sum())
    if share >= confidence:
        return Answer("commit" if first == last else "range", first, last, share)
    first, last = credible_range(posterior, confidence)
    return Answer("undecided", first, last, float(posterior.commits[first : last + 1].sum()))


def credible_range(posterior: Posterior, share: float) -> tuple[int, int]:
    """The shortest run of commits that has at least `share` of the probability of all commits."""
    behind = np.concatenate(([0.0], np.cumsum(posterior.commits)))
    target = share * behind[-1]
    ends = np.searchsorted(behind, behind[:-1] + target - 1e-12)
    widths = np.where(ends < behind.size, ends - np.arange(behind.size - 1), behind.size)
    begin = int(np.argmin(widths))
    return begin, int(min(ends[begin], behind.size - 1)) - 1
