"""Tests that could be compared and were not: why, and what compares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from etude.analysis.pairs import pairs_of
from etude.units.formatting import counted

if TYPE_CHECKING:
    from etude.analysis.cross_session import CrossSession
    from etude.analysis.verdict import Verdict

NAMED = 3
"""Tests that a line names."""


@dataclass(frozen=True)
class NotCompared:
    """Tests of one experiment that have the judged metric in one unit, and no comparison of it; or one of several tests
    that were to be compared."""

    tests: tuple[str, ...]
    why: Literal["one after the other", "too few pairs", "alone"]
    """`alone`: no other test of its blocks has a value."""
    script: bool
    """Whether a script ran them."""
    results: str


def not_compared(verdict: Verdict) -> NotCompared | None:
    """The tests that could be compared with another one, by the primary metric; None where there are none."""
    experiment = verdict.subject.experiment
    kind = ((experiment or {}).get("plan") or {}).get("kind")
    if experiment is None or kind not in (None, "script", "res"):
        return None
    compared = {name for c in verdict.comparisons for name in (c.base, c.other)}
    units = {
        test.test: found.unit
        for test in verdict.tests
        if (found := test.metric(verdict.primary)) and found.summary
    }
    tests = tuple(name for name in units if name not in compared)
    if alone := tuple(
        name for name in tests if any(set(group) & set(units) == {name} for group in verdict.asked.groups)
    ):
        return NotCompared(alone, "alone", kind == "script", verdict.subject.label)
    if not tests or len(units) < 2 or len(set(units.values())) > 1:
        return None
    groups = [group for group in verdict.asked.groups if set(tests) & set(group)]
    if groups and len({name for group in groups for name in group} & set(tests)) == len(tests):
        few = _with_few_pairs(verdict, groups)
        tests = tuple(
            name for name in tests if name in few
        )  # of the others a note says why there is no ratio
        return NotCompared(tests, "too few pairs", kind == "script", verdict.subject.label) if tests else None
    return NotCompared(tests, "one after the other", kind == "script", verdict.subject.label)


def _with_few_pairs(verdict: Verdict, groups: Iterable[Sequence[str]]) -> set[str]:
    """The tests that have fewer than two complete pairs with the reference of their group, or as one."""
    found = set()
    for reference, *others in groups:
        for other in others:
            pairs = pairs_of(verdict.subject.test(reference), verdict.subject.test(other), verdict.primary)
            if pairs.base.size < 2:
                found |= {reference, other}
    return found


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
