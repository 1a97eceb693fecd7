"""Whether a fresh, interleaved comparison bears a step out."""

from __future__ import annotations

from etude.history.course import Change
from etude.history.rules import Rule
from etude.stats.compare import Ratio


def borne_out(change: Change, ratio: Ratio, rule: Rule) -> bool:
    """Whether the ratio is surely on the step's side of 1, and may be as far from it as the rule asks."""
    if change.size > 0.0:
        return ratio.low > 1.0 and ratio.high - 1.0 >= rule.at_least
    return ratio.high < 1.0 and 1.0 - ratio.low >= rule.at_least
