"""Which notes stand below a verdict: the most important ones, one for each kind and test; the rest are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from etude.report.warnings import Warning
from etude.report.warnings.ranking import FOLDED_ABOVE

MOST = 5
"""Notes that are shown unless all are asked for."""


@dataclass(frozen=True)
class Note:
    """What is to be noted of one kind: of one test, of the whole experiment, or of more than three tests at once."""

    first: Warning
    """The one that is shown."""
    tests: tuple[str, ...]
    """Empty: it is about the whole experiment."""
    stands_for: int = 1
    """How many warnings it tells of, `first` included."""

    @property
    def kind(self) -> str:
        """One of the kinds of warnings."""
        return self.first.kind

    @property
    def rank(self) -> int:
        """Lower is more important."""
        return self.first.rank


def notes_of(warnings: Iterable[Warning]) -> tuple[Note, ...]:
    """One note for each kind and test, the most important first; one for a kind that more than three tests share."""
    kinds: dict[str, dict[str, list[Warning]]] = {}
    for each in sorted(warnings, key=lambda each: each.rank):
        kinds.setdefault(each.kind, {}).setdefault(each.test, []).append(each)
    found = []
    for by_test in kinds.values():
        named = tuple(test for test in by_test if test)
        if len(named) > FOLDED_ABOVE:
            folded = [by_test.pop(test) for test in named]
            found.append(Note(folded[0][0], named, sum(map(len, folded))))
        found += [Note(alike[0], (test,) if test else ()) for test, alike in by_test.items()]
    return tuple(found)
