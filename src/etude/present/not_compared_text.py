"""Sentences on tests that were not compared, and on options that have no answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.analysis.cross_session import CrossSession
from etude.analysis.verdict import Verdict, not_compared
from etude.units.formatting import counted

NAMED = 3
"""Tests that a line names."""


def not_compared_lines(verdict: Verdict) -> Iterator[str]:
    """Why they were not compared and how they can be, in words."""
    found = not_compared(verdict)
    if found is None:
        return
    if found.why == "too few pairs":
        yield f"Not compared: {_some(found.tests)}: fewer than two complete pairs; make more trials."
        return
    if found.why == "alone":
        yield f"Not compared: {_some(found.tests)}: no other test of the same blocks has a trial that counts."
        return
    apart = "they ran one after the other, so what drifts on the machine is in any difference"
    how = (
        "in a script INTERLEAVE … DONE around them pairs them"
        if found.script
        else "etude bench A B pairs them"
    )
    yield f"Not compared: {_some(found.tests)}: {apart}; {how}; --reference TEST of etude stats compares them unpaired."


def unanswered_lines(
    verdicts: Sequence[Verdict],
    across: Sequence[CrossSession],
    *,
    same_within: float | None,
    tests: Sequence[str] = (),
) -> list[str]:
    """In words, why options of comparisons have no answer here; none where they have one everywhere."""
    options = ["--same-within"] * (same_within is not None) + ["--test"] * bool(tests)
    named = " and ".join(options)
    if options and across:
        return [f"{named}: only for tests of one result, not for results of different sessions"]
    if options and not any(verdict.comparisons for verdict in verdicts):
        return [f"{named}: no tests are compared here; --reference TEST names what others are compared with"]
    return []


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - NAMED
    shown = [*names[:NAMED], *([counted(more, "more test")] if more > 0 else [])]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
