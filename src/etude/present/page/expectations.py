"""The purpose of each test, its expectations, and their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etude.analysis.comparison import Comparison
from etude.analysis.cross_session import CrossSession
from etude.analysis.gate import answers, parse_bound
from etude.analysis.verdict import TestVerdict, Verdict
from etude.errors import EtudeError
from etude.present.page.gather import Gathered
from etude.present.sentences import comparison as text
from etude.present.sentences.bounds import answer_reason

MET, NOT_MET, OPEN, TO_BE_JUDGED = "met", "not met", "undecided", "to be judged"
"""Outcomes of an expectation; the last is for one in plain words, which a reader judges."""


@dataclass(frozen=True)
class Expectation:
    """One test that says what it is for or what is expected of it."""

    test: str
    purpose: str
    expect: str
    result: str
    """The test's numbers, in a line."""
    met: str
    """One of `met`, `not met`, `undecided`, `to be judged`; empty where nothing was expected."""
    why: str
    """Evidence for the outcome; empty where a reader judges."""

    @property
    def mark(self) -> str:
        """Mark of the outcome, besides its words."""
        return {MET: "good", NOT_MET: "bad", OPEN: "open"}.get(self.met, "")


def expectations_of(found: Gathered) -> tuple[Expectation, ...]:
    """Expectations of every test that has a purpose or an expectation.

    An expectation that is a bound, such as `elapsed < 5 ms` or `elapsed < baseline * 1.05` (the grammar of
    `--fail-if`), is judged by its interval; any other is left to the reader.
    """
    result = []
    for verdict in found.verdicts:
        entries: Sequence[Any] = (verdict.subject.experiment or {}).get("tests") or ()
        texts = {entry.get("name"): entry for entry in entries}
        where = f" ({verdict.subject.label})" if len(found.verdicts) > 1 else ""
        across = [a for a in found.across if a.other_label == verdict.subject.label]
        for test in verdict.tests:
            entry = texts.get(test.test) or {}
            purpose, expect = str(entry.get("purpose") or ""), str(entry.get("expect") or "")
            if purpose or expect:
                met, why = _judged(expect, test, verdict, across) if expect else ("", "")
                line = text.test_line(test, verdict.primary).removeprefix(f"{test.test}: ")
                result.append(Expectation(test.test + where, purpose, expect, line, met, why))
    return tuple(result)


def _judged(
    expect: str, test: TestVerdict, verdict: Verdict, across: Sequence[CrossSession]
) -> tuple[str, str]:
    others = [a for a in across if a.other == test.test]
    try:
        bound = parse_bound(expect.strip().rstrip("."))
        within = _compared(verdict, test)
        given = answers(bound, [test], within, [] if within else others)
    except EtudeError as error:
        reason = str(error).partition(": ")[2]
        return TO_BE_JUDGED, reason if _is_bound(expect) else ""
    # It was written as what shall be; `fails` is true where the bound surely holds.
    verdicts = {answer.fails for answer in given}
    met = MET if verdicts == {True} else NOT_MET if False in verdicts else OPEN
    return met, "; ".join(answer_reason(answer) for answer in given)


def _is_bound(expect: str) -> bool:
    try:
        parse_bound(expect.strip().rstrip("."))
    except EtudeError:
        return False
    return True


def _compared(verdict: Verdict, test: TestVerdict) -> list[Comparison]:
    return [c for c in verdict.comparisons if c.other == test.test]
