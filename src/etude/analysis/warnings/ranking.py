"""Which warning comes first, and many of one kind in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from etude.analysis.warnings.warning import DataWarning, meaning_of

FOLDED_ABOVE = 3
"""What is said of more tests than this is said once."""

NAMED = 3


def ranked(warnings: Iterable[DataWarning], tests: int | None = None) -> list[DataWarning]:
    """By importance, each once: one line for a kind that several metrics of a test share, or more than three tests.

    tests: how many there are, for "12 of 40 tests"; None where it is not known.
    """
    kinds: dict[tuple[int, str], list[DataWarning]] = {}
    for each in dict.fromkeys(warnings):
        kinds.setdefault((each.rank, each.kind), []).append(each)
    found: list[DataWarning] = []
    for _, alike in sorted(kinds.items(), key=lambda item: item[0][0]):
        found += _folded(_by_test(alike), tests)
    return found


def _by_test(alike: Sequence[DataWarning]) -> list[DataWarning]:
    """One for a test, which names the further metrics. What is about no test or no metric stays as it is."""
    firsts: dict[object, DataWarning] = {}
    further: dict[object, list[str]] = {}
    for place, each in enumerate(alike):
        key: object = each.test if each.test and each.metric else place
        if key in firsts:
            further.setdefault(key, []).append(each.metric)
        else:
            firsts[key] = each
    return [
        replace(each, text=f"{each.text}; also {', '.join(dict.fromkeys(further[key]))}")
        if key in further
        else each
        for key, each in firsts.items()
    ]


def _folded(alike: list[DataWarning], tests: int | None) -> list[DataWarning]:
    names = list(dict.fromkeys(each.test for each in alike if each.test))
    if len(names) <= FOLDED_ABOVE:
        return alike
    first = next(each for each in alike if each.test)
    whole = [each for each in alike if not each.test]
    count = f"{len(names)} tests" if tests is None else f"{len(names)} of {tests} tests"
    text = f"{count}: {meaning_of(first.kind)} ({_some(names)}); {first.test}: {first.text}"
    return [*whole, DataWarning(first.kind, first.rank, "", first.metric, text, first.advice)]


def _some(names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
