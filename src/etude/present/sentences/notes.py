"""Notes: the choice of those below a verdict, and the short line of each, from its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.analysis.warnings import DataWarning, meaning_of
from etude.present.sentences.phrases import named, signed, size
from etude.present.sentences.warning_numbers import numbers_of
from etude.present.sentences.warnings import words_of
from etude.units.formatting import counted, quantity

Numbers = Mapping[str, Any]
RESEMBLE = "consecutive trials are autocorrelated"
"""Alternative to a trend or a level shift: one series cannot distinguish them."""


def note_line(note: Note, tests: int) -> str:
    """`sort: 2 outliers (trials 4 and 9), the farthest 33 % above the median`; `tests`: how many there are."""
    if len(note.firsts) > NAMED:
        first = note.firsts[0]
        kind = f"{len(note.tests)} of {tests} tests: {meaning_of(note.kind)} ({some_names(note.tests)})"
        return f"{kind}; {first.test}: {short_text(first)}"
    names: dict[str, list[str]] = {}
    for each in note.firsts:
        names.setdefault(short_text(each), []).append(each.test)
    return "; ".join(": ".join((*filter(None, [", ".join(of)]), text)) for text, of in names.items())


def short_text(warning: DataWarning) -> str:
    """Finding and advice without the test's name; the whole text where there is no shorter one."""
    short = _SHORT.get(warning.kind)
    numbers = numbers_of(warning)
    if short is None or not numbers:
        return ": ".join(filter(None, words_of(warning)))
    return f"{f'on {warning.machine}: ' if warning.machine else ''}{short(warning, numbers)}"


def some_names(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def listed_names(names: Sequence[str], most: int, what: str = "") -> str:
    """`a, b and c`, or `a, b and 2 more tests`: up to `most` names, and the number of further ones, called `what`."""
    more = len(names) - most
    shown = [
        *names[:most],
        *([counted(more, f"more {what}") if what else f"{more} more"] if more > 0 else []),
    ]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _way(change: float) -> str:
    return f"{'rises' if change > 0 else 'falls'} by {size(change)}"


def _failed(w: DataWarning, n: Numbers) -> str:
    kept = "included" if n["kept"] == n["count"] else f"{n['kept']} included" if n["kept"] else "excluded"
    return f"{n['count']} of {counted(n['of'], 'trial')} failed ({n['how']}), {kept}"


def _far(n: Numbers) -> str:
    return f", the farthest {_from_median(n)}" if n["farthest"] else ""


def _from_median(n: Numbers) -> str:
    these = f" of the {n['among']} on one level" if "among" in n else ""
    return f"{signed(n['farthest'])} the median{these}"


def _among(n: Numbers) -> int:
    """Number of trials among which the outliers were found."""
    return int(n.get("among", n["of"]))


def _outliers(w: DataWarning, n: Numbers) -> str:
    if n["count"] == 1 and n["farthest"]:
        return f"1 outlier ({named(w.trials)}), {_from_median(n)}"
    return f"{counted(n['count'], 'outlier')} ({named(w.trials)}){_far(n)}"


def _heavy_tail(w: DataWarning, n: Numbers) -> str:
    return f"{n['count']} of {_among(n)} trials are outliers{_far(n)}: compare medians"


def _bimodal(w: DataWarning, n: Numbers) -> str:
    low, high = (quantity(n[name], n["unit"]) for name in ("low", "high"))
    return f"bimodal: {n['few']} trials near {low}, {n['many']} near {high}"


def _autocorrelated(w: DataWarning, n: Numbers) -> str:
    return f"consecutive trials are autocorrelated (effective n = {n['worth']:.0f} of {n['of']})"


def _drift(w: DataWarning, n: Numbers) -> str:
    return f"{w.metric} {_way(n['change'])} over {n['of']} trials, or {RESEMBLE}"


def _never_steady(w: DataWarning, n: Numbers) -> str:
    ends = [f"{word} {n[word]}" for word in ("first", "last") if n[word]]
    return f"no steady state: {w.metric} {_way(n['change'])} even without the {' and '.join(ends)} trials"


def _warm_up(w: DataWarning, n: Numbers) -> str:
    return (
        f"first {counted(n['first'], 'trial')} {signed(n['shift'])} the others' median; if a warm-up: --warmup "
        f"{n['runs']}, or a TEST of {n['runs']} before it"
    )


def _late_level(w: DataWarning, n: Numbers) -> str:
    if "first" in n:
        return (
            f"level shifts: the first {counted(n['first'], 'trial')} {signed(n['shift_first'])} the median of those "
            f"between, the last {n['last']} {signed(n['shift'])}; or {RESEMBLE}"
        )
    last = f"the last {n['last']}" if n["last"] > 1 else "the last trial"
    shift = f"{last} average {signed(n['shift'])} the median before"
    return f"level shift at trial {w.trials[0]}, or autocorrelated: {shift}"


def _leak(w: DataWarning, n: Numbers) -> str:
    each, total = quantity(n["each"], "B"), quantity(n["total"], "B")
    return f"suspected memory leak: {each} a trial, {total} in all"


def _others(w: DataWarning, n: Numbers) -> str:
    return f"other processes used {n['share']:.2g} CPUs: {n['named']} a trial"


def _too_short(w: DataWarning, n: Numbers) -> str:
    return f"a trial is only {n['ticks']:.3g} ticks of its clock long: make it longer"


def _coarse_clock(w: DataWarning, n: Numbers) -> str:
    return f"{w.metric} is counted in steps of {quantity(n['step'], n['unit'])}, as large as its spread"


def _all_equal(w: DataWarning, n: Numbers) -> str:
    return f"all {n['of']} values are {quantity(n['value'], n['unit'])}: read a finer clock"


def _too_few(w: DataWarning, n: Numbers) -> str:
    return f"{counted(n['count'], 'trial')}: too few to judge, make {n['needed']} or more"


def _missing(w: DataWarning, n: Numbers) -> str:
    return f"{n['count']} of {n['of']} trials have no {w.metric}"


def _no_match(w: DataWarning, n: Numbers) -> str:
    return f"{w.metric} has no value in any trial: {n['reason']}"


def _not_normal(w: DataWarning, n: Numbers) -> str:
    return "skewed, and few trials: for a typical run rely on the median and its interval"


_SHORT: Mapping[str, Callable[[DataWarning, Numbers], str]] = {
    "no-match": _no_match,
    "failed": _failed,
    "mixed-failures": _failed,
    "outliers": _outliers,
    "heavy-tail": _heavy_tail,
    "bimodal": _bimodal,
    "autocorrelated": _autocorrelated,
    "drift": _drift,
    "never-steady": _never_steady,
    "warm-up": _warm_up,
    "late-level": _late_level,
    "leak": _leak,
    "others": _others,
    "too-short": _too_short,
    "coarse-clock": _coarse_clock,
    "all-equal": _all_equal,
    "too-few": _too_few,
    "missing-values": _missing,
    "not-normal": _not_normal,
}


MOST = 3
"""Maximum number of notes that are shown by default."""

NAMED = 3
"""Tests that a note names; of more it has the text of the first one only."""


@dataclass(frozen=True)
class Note:
    """The warnings of one kind, of one test or several, or of the whole experiment."""

    firsts: tuple[DataWarning, ...]
    """The first warning of each test, in the order of the tests; one, without a test, on the whole experiment."""
    stands_for: int = 1
    """Number of warnings that it stands for: all of its kind where it names more tests than it has texts for."""

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
