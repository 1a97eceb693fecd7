"""Two sides of the store, selected by a word, compared: every test and metric that both have, machine by machine.

What changes between sessions is in all trials of a session alike. It is taken from the history of that test on that
machine, steps taken out; where that is too short, from several results a side; else the comparison is refused.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import cast

import numpy as np

from etude.errors import InputError, UsageError
from etude.experiment.session import holds_results
from etude.history.metric_history import (
    Course,
    commands_that_differ,
    course_of,
    facts_that_differ,
    is_other_machine,
)
from etude.stats.cross_session import FEWEST, CrossSessionRatio, NotSupported, SessionSpread, compare_sessions
from etude.stats.means import Kind, average
from etude.stats.ratio import Ratio, ratio_of_fitting_means, unpaired_mean_ratio, unpaired_ratio
from etude.store.database import open_store
from etude.store.entry import Entry, Selector
from etude.store.queries import unknown_test

KINDS = ("commit", "tag", "date", "machine")


@dataclass(frozen=True)
class Selection:
    """Results of one side of a comparison."""

    text: str
    """The selection as it was typed."""
    entries: tuple[Entry, ...]


def compare_stored(
    base: str,
    other: str,
    store: str | os.PathLike[str] | None = None,
    *,
    test: str | None = None,
    metric: str | None = None,
) -> tuple[Compared, ...]:
    """Two selections of a store (`select_results`), compared; None: all tests, all metrics.

    Raises:
        UsageError: a selection says nothing that can be looked up; InputError: the store has no such results, or none
        that both have.
    """
    try:
        with open_store(store) as opened:
            stored = opened.entries(Selector(test=test, metric=metric))
            if not stored and test is not None and test not in (tests := opened.tests()):
                raise unknown_test(opened.where, test, tests)
            if not stored:
                what = f" test {test!r} with" if test else ""
                raise InputError(
                    f"{opened.where}: has no{what} {metric or 'all'}; name another metric, or all"
                )
        found = compare_sides(select_results(base, stored), select_results(other, stored), stored)
    except InputError as error:
        if all(map(holds_results, map(Path, (base, other)))):
            command = shlex.join(["etude", "stats", base, other])
            error.args = (f"{error}; directories are compared by {command}",)
        raise
    if not found:
        raise InputError(f"{base} and {other} have no test in common with values that have a ratio")
    return found


def select_results(text: str, entries: Sequence[Entry]) -> Selection:
    """The entries that `KIND:VALUE` means, or several of these between commas, of all of which are stored.

    commit: the beginning of it suffices. date: `2026-11-01`, the newest results of each test, metric and machine up to
    the end of that day, UTC. A word without a kind is looked up as each of these, in this order.

    Raises:
        UsageError: it says nothing that can be looked up; InputError: nothing is meant, or more than one thing.
    """
    found = list(entries)
    for part in text.split(","):
        kind, colon, value = part.strip().partition(":")
        if not colon:
            kind, value = _kind_of(part.strip(), found)
        if kind not in KINDS or not value:
            where = "" if part == text else f"{text!r}: "
            raise UsageError(f"{where}{part!r}: expected {', '.join(f'{k}:…' for k in KINDS)}")
        found = _FINDERS[kind](value, found)
        if not found:
            raise InputError(
                f"{text!r}: the store has no result of {kind} {value}; etude store list names all"
            )
    return Selection(text, tuple(found))


def _kind_of(word: str, entries: Sequence[Entry]) -> tuple[str, str]:
    there = [kind for kind in KINDS if not (kind == "date" and _day(word) is None)]
    meant = [kind for kind in there if word and _FINDERS[kind](word, entries)]
    if not meant:
        raise InputError(
            f"{word!r}: the store has no such commit, tag, date or machine; etude store list names all"
        )
    if len(meant) > 1:
        ways = " or ".join(f"{kind}:{word}" for kind in meant)
        raise InputError(f"{word!r} is ambiguous: write {ways}")
    return meant[0], word


def _of_commit(value: str, entries: Sequence[Entry]) -> list[Entry]:
    found = [e for e in entries if e.commit is not None and e.commit.startswith(value)]
    commits = sorted({e.commit for e in found if e.commit})
    if len(commits) > 1 and value not in commits:
        raise InputError(
            f"{value!r} is ambiguous: {len(commits)} commits begin so, such as {', '.join(commits[:2])}"
        )
    return [e for e in found if e.commit == commits[0]] if commits else []


def _of_date(value: str, entries: Sequence[Entry]) -> list[Entry]:
    day = _day(value)
    if day is None:
        raise UsageError(f"{value!r} is no date; expected such as 2026-11-01")
    end = datetime.combine(day, time.max, UTC)
    newest: dict[tuple[str, str, str], Entry] = {}
    for entry in sorted((e for e in entries if _time(e) <= end), key=_time):
        newest[entry.test, entry.metric, entry.machine.name] = entry
    return list(newest.values())


_FINDERS: dict[str, Callable[[str, Sequence[Entry]], list[Entry]]] = {
    "commit": _of_commit,
    "tag": lambda value, entries: [e for e in entries if value in e.tags],
    "date": _of_date,
    "machine": lambda value, entries: [e for e in entries if value in (e.machine.name, e.machine.digest)],
}


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _time(entry: Entry) -> datetime:
    return entry.committed or entry.measured


FEWEST_A_SIDE = 2
"""Results of either side from which the spread between results is taken, where the history is too short."""


@dataclass(frozen=True)
class Compared:
    """One metric of one test, other/base."""

    test: str
    metric: str
    unit: str
    kind: str
    base: tuple[Entry, ...]
    other: tuple[Entry, ...]
    found: CrossSessionRatio | Ratio | NotSupported
    """The ratio, as one of all that are judged at once: their intervals hold together."""
    differences: tuple[str, ...]
    """Differing facts of the machines; differing names first."""
    command: str = ""
    """`command: sort a → sort b` where the measured command changed; empty where it did not, or is not known."""

    @property
    def same_machine(self) -> bool:
        """True if both sides were measured on one machine that nothing recorded has changed."""
        return not self.differences


def compare_sides(base: Selection, other: Selection, stored: Sequence[Entry]) -> tuple[Compared, ...]:
    """All that both have: on each machine that both have; and where they share none, over machines, which is told.

    stored: all entries, ordered as histories, from which the spread between sessions is known.
    """
    found = []
    for key, before in _groups(base.entries).items():
        after = _groups(other.entries).get(key, {})
        names = [name for name in before if name in after]
        pairs = [(name, name) for name in names] or [
            (a, b) for a in list(before)[:1] for b in list(after)[:1]
        ]
        for name, its in pairs:
            found += list(_compared(before[name], after[its], stored))
    judged = sum(not isinstance(each.found, NotSupported) for each in found)
    return tuple(
        each if isinstance(each.found, NotSupported) else replace(each, found=each.found.among(judged))
        for each in found
    )


def newest_with_before(course: Course) -> Compared | None:
    """The newest result of a history with the one before it; None where there is one only, or no ratio of them."""
    if len(course.entries) < 2:
        return None
    before, newest = (Selection("", (entry,)) for entry in course.entries[-2:])
    return next(iter(compare_sides(before, newest, course.entries)), None)


Key = tuple[str, str, str]


def _groups(entries: Sequence[Entry]) -> dict[Key, dict[str, list[Entry]]]:
    found: dict[Key, dict[str, list[Entry]]] = {}
    for entry in entries:
        if entry.values:
            key = (entry.test, entry.metric, entry.unit)
            found.setdefault(key, {}).setdefault(entry.machine.name, []).append(entry)
    return found


def _compared(base: Sequence[Entry], other: Sequence[Entry], stored: Sequence[Entry]) -> Iterator[Compared]:
    first, last = base[0], other[-1]
    if first.kind == "binary" or min(min(e.values) for e in (*base, *other)) <= 0.0:
        return
    differs: tuple[str, ...] = ()
    if first.machine.name != last.machine.name:
        differs = (f"machine: {first.machine.name} → {last.machine.name}",)
    if is_other_machine(first.machine, last.machine):
        differs += facts_that_differ(first.machine, last.machine) or ("what is not recorded",)
    ratio = _ratio(base, other, stored, same=not differs)
    changed = commands_that_differ((first, last))
    command = changed[0][1] if changed else ""
    yield Compared(
        first.test, first.metric, first.unit, first.kind, tuple(base), tuple(other), ratio, differs, command
    )


def _ratio(
    base: Sequence[Entry], other: Sequence[Entry], stored: Sequence[Entry], *, same: bool
) -> CrossSessionRatio | Ratio | NotSupported:
    kind = cast(Kind, base[0].kind)
    if shared := sorted({e.result for e in base} & {e.result for e in other}):
        which = f"result{'s' * (len(shared) > 1)} {', '.join(map(str, shared))}"
        verb = "is" if len(shared) == 1 else "are"
        return NotSupported(
            f"{which} {verb} on both sides", len(shared), 1, "name sides of different results"
        )
    if min(len(base), len(other)) >= FEWEST_A_SIDE:
        before, after = ([average(e.values, kind).mean for e in side] for side in (base, other))
        return ratio_of_fitting_means(before, after, kind, unpaired_mean_ratio) or unpaired_ratio(
            before, after
        )
    samples = [np.concatenate([np.asarray(e.values) for e in side]) for side in (base, other)]
    if min(sample.size for sample in samples) < 2:
        return NotSupported("a result of one trial has no spread", 1, 1, "measure each at least twice")
    between = _between(base[0], other[-1], stored, same)
    return compare_sessions(samples[0], samples[1], between, kind=kind)


def _between(base: Entry, other: Entry, stored: Sequence[Entry], same: bool) -> SessionSpread | NotSupported:
    """Spread of this test's results around their level on the base's machine, from its history without its steps."""
    alike = [
        e
        for e in stored
        if (e.test, e.metric, e.unit, e.machine.name)
        == (base.test, base.metric, base.unit, base.machine.name)
        and e.values
        and min(e.values) > 0.0
    ]
    if len(alike) < FEWEST:
        reason = f"the variation between sessions is unknown from {len(alike)} stored results on {base.machine.name}"
        remedy = "store more results of it, or run both interleaved: etude bench"
        return NotSupported(reason, len(alike), FEWEST - len(alike), remedy)
    found = course_of(alike).found
    drift = 0.0 if found.drift is None else found.drift.change
    drifting = drift / math.sqrt(12.0)  # it parts results of different days
    return SessionSpread(math.hypot(found.noise.with_wild, drifting), found.noise.degrees, len(alike))
