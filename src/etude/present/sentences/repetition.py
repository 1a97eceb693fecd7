"""Text of the reason why a verdict counts as reproduced or not."""

from __future__ import annotations

from collections.abc import Iterator

from etude.analysis.repetition import Reason, RepeatedLevel, RepeatedRatio, Repetition
from etude.units.formatting import counted

_REASONS = {
    "no comparison": "there is no such comparison now",
    "no spread": "the spread of the ratio is unknown",
    "opposite": "the difference has the opposite direction",
    "same": "the same direction; no difference in size is shown",
    "disagree": "neither shows a difference, but the two ratios disagree",
    "other size": "the same direction, but another size",
    "gone": "a difference was shown before, and is not shown now",
    "new": "no difference was shown before, and one is shown now",
    "less known now": "the ratios agree, but now it is not known well enough to see the difference",
    "less known then": "the ratios agree, but then it is not known well enough to see the difference",
    "several sessions": "both have several sessions",
    "stated": "the variation between sessions is as stated",
}
_LEVELS = {"not reproduced": "level shift; ", "reproduced": "not distinguishable; "}


def outcome_reason(part: RepeatedRatio | RepeatedLevel) -> str:
    """Reason for the outcome, without a full stop."""
    level = _LEVELS.get(part.outcome or "", "") if isinstance(part, RepeatedLevel) else ""
    return level + _reason(part.reason)


def _reason(reason: Reason) -> str:
    match reason.kind:
        case "too wide":
            return f"neither shows a difference, and the wider interval reaches {100 * reason.share:.2g} % from 1"
        case "no difference":
            return f"neither shows a difference, and both exclude one above {100 * reason.share:.2g} %"
        case "close":
            return f"the sizes differ, but by less than {100 * reason.share:g} %"
        case "known sessions":
            return f"the variation between sessions is known from {reason.sessions} of them"
        case "not comparable":
            refused = reason.refused
            assert refused is not None
            more = counted(refused.needed, "more stored session")
            return f"not comparable: {refused.reason}; it takes {more} of it here, or --between-sessions"
        case _:
            return _REASONS[reason.kind]


def repetition_notes(again: Repetition) -> Iterator[str]:
    """Notes on the outcomes: given ones, and what could not be repeated."""
    yield from again.notes
    if again.refused:
        yield f"The tests' own {again.metric} was not compared: {again.refused}."
    yield from (f"{test}: has no included trial now." for test in again.lost)
