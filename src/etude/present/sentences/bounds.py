"""Text of the reason why a bound of `--fail-if` is broken or not."""

from __future__ import annotations

from etude.analysis.gate import Answer, BoundedInterval
from etude.present.sentences.phrases import EXTENDED
from etude.units.formatting import counted, level_text, quantity

_UNCLAIMED = {
    "unsteady": "the baseline differs from itself by as much, and more trials do not change that",
    "noise": "within this machine's A/A noise",
    "opposed": "the typical run points the other way",
}
_BOUNDED = {"mean": "its mean", "ratio": "the ratio", "difference": "the difference"}


def answer_reason(answer: Answer) -> str:
    """Reason why a bound is broken, holds or is undecided, without a full stop."""
    if answer.bounded is None:
        if answer.of_ratio:
            return "no value varies, or the ratio of every pair is the same, so the ratio has no interval"
        return "its mean has no interval: too few values for this variation"
    parts = [_interval(answer.bounded)]
    if answer.unclaimed:
        parts.append(_UNCLAIMED[answer.unclaimed])
    if answer.trials is not None:
        each = " of each test" if answer.of_each_test else ""
        few = f"{counted(answer.trials, 'trial')}: too few to judge, make {answer.needed} or more{each}"
        parts.insert(0, few)
    return "; ".join(parts)


def _interval(found: BoundedInterval) -> str:
    level = level_text(found.confidence) + (f" for all {found.together}" if found.together > 1 else "")
    looked = f"; {EXTENDED}" if found.extended else ""
    low, high, limit = _told_apart((found.low, found.high, found.limit), found.unit)
    return f"{_BOUNDED[found.of]} ({level}{looked}) lies in {low} … {high}, the bound is {limit}"


def _told_apart(values: tuple[float, float, float], unit: str) -> tuple[str, ...]:
    """Values as texts; ratios have as many digits, up to eight, as make different values look different."""
    if unit != "ratio":
        return tuple(quantity(value, unit) for value in values)
    texts = [tuple(f"{value:.{digits}g}" for value in values) for digits in range(4, 9)]
    return next((each for each in texts if len(set(each)) == len(set(values))), texts[-1])
