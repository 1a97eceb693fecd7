"""Which notes stand below a verdict: the most important ones, one for each kind; the rest are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from etude.analysis.warnings import DataWarning

MOST = 3
"""Notes that are shown unless all are asked for."""

NAMED = 3
"""Tests that a note names; of more it has the text of the first one only."""


@dataclass(frozen=True)
class Note:
    """The warnings of one kind, of one test or several, or of the whole experiment."""

    firsts: tuple[DataWarning, ...]
    """The first warning of each test, in the order of the tests; one, without a test, on the whole experiment."""
    stands_for: int = 1
    """How many warnings it tells of: all of its kind where it names more tests than it has texts for."""

    @property
    def tests(self) -> tuple[str, ...]:
        """Empty: it is about the whole experiment."""
        return tuple(each.test for each in self.firsts if each.test)

    @property
    def kind(self) -> str:
        """One of the kinds of warnings."""
        return self.firsts[0].kind

    @property
    def rank(self) -> int:
        """Lower is more important."""
        return self.firsts[0].rank


def notes_of(warnings: Iterable[DataWarning]) -> tuple[Note, ...]:
    """One note for each kind, for all tests that have it or for the whole experiment; the most important first."""
    kinds: dict[tuple[str, bool], dict[str, list[DataWarning]]] = {}
    for each in sorted(warnings, key=lambda each: each.rank):
        kinds.setdefault((each.kind, bool(each.test)), {}).setdefault(each.test, []).append(each)
    return tuple(
        Note(
            tuple(alike[0] for alike in by_test.values()),
            len(by_test) if len(by_test) <= NAMED else sum(map(len, by_test.values())),
        )
        for by_test in kinds.values()
    )
