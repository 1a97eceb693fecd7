"""Whether a fresh, interleaved comparison bears a step out."""

from __future__ import annotations

from typing import Literal

from etude.history.metric_history import Change
from etude.history.rules import Rule
from etude.stats.compare import Ratio

Word = Literal["confirmed", "refuted", "open"]


def borne_out(change: Change, ratio: Ratio, rule: Rule) -> Word:
    """*confirmed*: the ratio is surely on the step's side of 1, and may be as far from it as the rule asks. *refuted*:
    it is surely not so far on that side. *open*: its interval cannot tell, and what was seen before stands."""
    low, high = (ratio.low, ratio.high) if change.size > 0.0 else (2.0 - ratio.high, 2.0 - ratio.low)
    if high - 1.0 < rule.at_least:
        return "refuted"
    return "confirmed" if low > 1.0 else "open"
