"""Whether more trials are a way to know something better, and what to do where they are not."""

from __future__ import annotations

from etude.units.formatting import DAY_S, HOUR_S

TIMES_MEASURED = 100
"""Beyond an hour, more trials than this many times those that were made are no advice."""
MOST_TRIALS = 10**7
INSTEAD = "make each trial longer, judge a less noisy metric, or accept a coarser precision"
"""The alternatives to more trials."""


def within_reach(more: int, measured: int, seconds: float) -> bool:
    """Whether `more` trials after `measured` ones are worth advising: an hour is; a day, or a hundred times as many
    trials in more than an hour, is not. seconds: what they take by the clock, 0 where it is not known."""
    if more >= MOST_TRIALS or not seconds <= DAY_S:
        return False
    return more <= TIMES_MEASURED * measured or 0 < seconds <= HOUR_S
