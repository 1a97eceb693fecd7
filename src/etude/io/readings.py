"""What a sweep says, in sentences: an automatic reading, and what it cannot know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etude.io.points import Over, Swept, swept_of
from etude.report.subject import Subject, subject_of

if TYPE_CHECKING:
    from etude.io.costs import Costs
    from etude.results.reader import Results


@dataclass(frozen=True)
class Reading:
    """What the curves say, and what to keep in mind about such curves."""

    over: Over
    findings: tuple[str, ...]
    caveats: tuple[str, ...]
    costs: tuple[Costs, ...] = ()
    """Of a sweep over buffers, what each curve costs."""

    def __str__(self) -> str:
        return "\n".join((*self.findings, "", *(f"Mind: {caveat}" for caveat in self.caveats)))


def explain(source: Results | Subject) -> Reading:
    """Read a sweep's results as the L41 notes read theirs: where curves bend and what lies there, or where a
    difference falls below 5 % and 1 %.

    Raises:
        InputError: the results are not those of a sweep.
    """
    return reading_of(swept_of(source if isinstance(source, Subject) else subject_of(source)))


def reading_of(swept: Swept) -> Reading:
    """The reading of a sweep."""
    if swept.over == "total":
        from etude.io import totals

        return Reading(swept.over, tuple(totals.findings(swept)), totals.CAVEATS)
    from etude.io import buffers
    from etude.io.costs import costs_of

    costs = tuple(found for curve in swept.curves if (found := costs_of(curve, swept)) is not None)
    sentences = tuple(buffers.findings(swept, {each.curve: each for each in costs}))
    return Reading(swept.over, sentences, buffers.CAVEATS, costs)
