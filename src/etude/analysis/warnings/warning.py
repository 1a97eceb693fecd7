"""A warning as data: its kind and finding; and the ranks of the kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from etude.analysis.warnings.facts import Facts

FOLDED_ABOVE = 3
"""Number of tests above which a kind of warning that they share becomes one line."""


@dataclass(frozen=True)
class DataWarning:
    """One warning about a result; `present.sentences.warnings` has its text and advice."""

    kind: str
    """One of KINDS."""
    test: str
    """Empty where it is about the whole experiment."""
    metric: str
    """Empty where it is about no single metric."""
    facts: Facts
    """The finding, with figures."""
    trials: tuple[int, ...] = ()
    """Numbers of all trials that it is about; empty where it is about none in particular."""
    machine: str = ""
    """The machine whose values it is about; empty where it is about those of all."""

    @property
    def rank(self) -> int:
        """Lower is more important."""
        return KINDS[self.kind].rank


@dataclass(frozen=True)
class WarningGroup:
    """Warnings of one kind that are shown as one line."""

    first: DataWarning
    also: tuple[str, ...] = ()
    """Further metrics of the same test."""
    tests: tuple[str, ...] = ()
    """All tests that have it, where they are more than `FOLDED_ABOVE`; else empty."""
    of: int | None = None
    """Number of all tests; None if unknown."""

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return self.first.kind


class Kind(NamedTuple):
    """A kind of warning."""

    rank: int
    """Lower is more important."""
    meaning: str
    """The sentence of such a warning, without figures."""


KINDS: Mapping[str, Kind] = {
    "different-work": Kind(0, "the compared commands ended differently, or printed different output"),
    "no-match": Kind(1, "a METRIC found no number in any trial"),
    "mixed-failures": Kind(2, "trials failed in more than one way"),
    "failed": Kind(3, "trials failed, all in one way"),
    "caches": Kind(4, "caches were not as the test declares"),
    "several-matches": Kind(5, "a METRIC found several values in one output, and the first counts"),
    "machine-changed": Kind(6, "the machine was another before than after, or in another session"),
    "several-machines": Kind(7, "trials were made on several machines"),
    "machine-apart": Kind(8, "the level on one machine differs from the others"),
    "kernel": Kind(9, "the kernel complained during trials, or slowed the CPUs down"),
    "shell": Kind(10, "the time is not distinguishable from the start of the shell, which is subtracted"),
    "others": Kind(11, "other processes used the CPUs during trials, as the probe of that name saw"),
    "busy": Kind(12, "the machine was busy when the experiment began"),
    "all-equal": Kind(13, "all values are one and the same"),
    "too-short": Kind(14, "a trial lasts so few ticks of its clock that it is not known within 1 %"),
    "leak": Kind(18, "free memory falls from trial to trial"),
    "never-steady": Kind(20, "values still rise or fall when the first and last trials are left out"),
    "drift": Kind(22, "values rise or fall over the series"),
    "warm-up": Kind(24, "level shift: the first trials differ"),
    "late-level": Kind(26, "level shift: the last trials differ"),
    "not-converged": Kind(30, "the requested precision was not reached"),
    "not-normal": Kind(32, "values are so skewed that the interval of the mean cannot be relied on"),
    "too-few": Kind(34, "there are too few trials, or none with a value"),
    "missing-values": Kind(36, "some of the included trials have no value"),
    "against-itself": Kind(40, "the reference differs from itself"),
    "bimodal": Kind(42, "values are bimodal"),
    "autocorrelated": Kind(44, "consecutive trials are autocorrelated"),
    "memory-cliff": Kind(46, "a trial's data are about as large as the memory"),
    "note": Kind(50, "something was left out on reading, or happened while measuring"),
    "coarse-clock": Kind(52, "the step that values are counted in is as large as their spread"),
    "outliers": Kind(54, "a few values are outliers"),
    "heavy-tail": Kind(55, "many values are outliers"),
    "outlier-explained": Kind(56, "what the monitor saw during a trial that lies far from the others"),
    "set-aside": Kind(60, "trials were not kept, and not because they failed"),
}
"""The most important first; docs/reference/warnings.md has more. Stored documents may have kinds of a newer Étude."""


def meaning_of(kind: str) -> str:
    """Meaning of a kind; the kind itself if it is unknown."""
    return KINDS[kind].meaning if kind in KINDS else kind


def warning(kind: str, test: str, metric: str, facts: Facts, trials: Iterable[int] = ()) -> DataWarning:
    """A warning on these trials."""
    return DataWarning(kind, test, metric, facts, tuple(map(int, trials)))


def ranked(warnings: Iterable[DataWarning], tests: int | None = None) -> list[WarningGroup]:
    """Warnings by importance, each once: one line for a kind that metrics of a test, or many tests, share.

    tests: number of all tests, for "12 of 40 tests"; None if unknown.
    """
    kinds: dict[tuple[int, str], list[DataWarning]] = {}
    for each in dict.fromkeys(warnings):
        kinds.setdefault((each.rank, each.kind), []).append(each)
    found: list[WarningGroup] = []
    for _, alike in sorted(kinds.items(), key=lambda item: item[0][0]):
        found += _folded(_by_test(alike), tests)
    return found


def _by_test(alike: Sequence[DataWarning]) -> list[WarningGroup]:
    """One group per test, with the further metrics. Warnings about no test or no metric stay alone."""
    firsts: dict[object, DataWarning] = {}
    further: dict[object, list[str]] = {}
    for place, each in enumerate(alike):
        key: object = each.test if each.test and each.metric else place
        if key in firsts:
            further.setdefault(key, []).append(each.metric)
        else:
            firsts[key] = each
    return [WarningGroup(each, tuple(dict.fromkeys(further.get(key, ())))) for key, each in firsts.items()]


def _folded(alike: list[WarningGroup], tests: int | None) -> list[WarningGroup]:
    names = tuple(dict.fromkeys(each.first.test for each in alike if each.first.test))
    if len(names) <= FOLDED_ABOVE:
        return alike
    first = next(each for each in alike if each.first.test)
    whole = [each for each in alike if not each.first.test]
    return [*whole, replace(first, tests=names, of=tests)]
