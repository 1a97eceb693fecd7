"""Tests that could be compared and were not: why, and what compares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from etude.analysis.pairs import pairs_of

if TYPE_CHECKING:
    from etude.analysis.verdict import Verdict


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
