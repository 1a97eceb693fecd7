"""One metric of one test on one machine over time: its steps, its drift, and whether code or machine changed there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from etude.errors import InputError
from etude.stats.changes import Drift, Step, StepFit, fit_steps
from etude.stats.samples import exponential
from etude.store.entry import Entry, Machine
from etude.store.repository import DIRTY
from etude.units.formatting import percent, quantity

if TYPE_CHECKING:
    from etude.store.database import Store

Floats = NDArray[np.float64]
Cause = Literal["commit", "test", "machine", "neither", "not known"]
"""Cause of a step. test: the measured command changed; commit: the commit, or files that were not committed; neither:
commit and command are the same, and nothing that is recorded of the machine differs; not known: a result has no
commit."""


class Mark(Protocol):
    """A change that somebody said is expected."""

    @property
    def test(self) -> str: ...
    @property
    def metric(self) -> str | None:
        """None: of all metrics."""

    @property
    def commit(self) -> str: ...
    @property
    def why(self) -> str: ...


@dataclass(frozen=True)
class Change:
    """A step with what is known of it."""

    step: Step
    last: Entry
    """The last result before it."""
    first: Entry
    """The first result of the new level."""
    size: float
    """Relative (0.05: 5 % more) where all values are above zero; else in the metric's unit."""
    low: float
    high: float
    """Upper limit of the size, at 95 %."""
    worse: bool | None
    """None where the metric's kind does not tell, and where the interval holds 0."""
    cause: Cause
    differences: tuple[str, ...]
    """Facts of the machine and of the measured command that differ where the step may begin."""
    expected: str | None
    """The reason, in the words of the person who marked it."""


@dataclass(frozen=True)
class SlowChange:
    """A drift with what is known of it. It begins at no commit, so no rule is about it."""

    drift: Drift
    size: float
    """Change from the first to the last result; relative, or in the metric's unit, as a step's."""
    low: float
    high: float
    """Upper limit of the size, at 95 %."""
    worse: bool | None
    """None where the metric's kind does not tell, and where the interval holds 0."""


@dataclass(frozen=True, eq=False)
class Course:
    """Results in order, on one machine: those of machines with other names are courses of their own."""

    entries: tuple[Entry, ...]
    levels: Floats
    """One a result, shape (n,): the mean of its values, or of their logarithms."""
    relative: bool
    """True if levels are logarithms."""
    found: StepFit
    changes: tuple[Change, ...]
    drift: SlowChange | None
    machines: tuple[tuple[int, tuple[str, ...]], ...]
    """Places at which the machine is not what it was at the result before, and how it differs."""
    commands: tuple[tuple[int, str], ...]
    """Places at which the measured command is not that of the result before, and how it differs."""
    within: float | None
    """The share of the variance between results that their trials' own spread explains; None where that is unknown."""

    @property
    def test(self) -> str:
        """Its name."""
        return self.entries[0].test

    @property
    def metric(self) -> str:
        """Its name."""
        return self.entries[0].metric

    @property
    def unit(self) -> str:
        """Unit of the values."""
        return self.entries[0].unit

    @property
    def machine(self) -> Machine:
        """The machine as the newest result describes it."""
        return self.entries[-1].machine

    def value(self, level: float) -> float:
        """A level in the unit of the values."""
        return exponential(level) if self.relative else level

    def size_text(self, size: float) -> str:
        """A change with its sign: `+5.0 %`, or in the metric's unit."""
        sign = "−" if size < 0 else "+"
        return sign + (percent(abs(size)) if self.relative else quantity(abs(size), self.unit))


def stored_courses(
    store: Store, test: str, metric: str, *, machine: str | None = None, branch: str | None = None
) -> tuple[Course, ...]:
    """The courses of a test in a store, one per metric and machine. Raises InputError: it has no result with values."""
    entries = store.history(test, metric, machine=machine, branch=branch)
    if not (found := courses(entries, store.marks())):
        given = {"machine": machine, "branch": branch}
        chosen = " and ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        where = f" for {chosen}" if chosen else ""
        raise InputError(f"{test}: the store has no result with values{where}; etude store list names all")
    return tuple(found)


def courses(entries: Iterable[Entry], marks: Sequence[Mark] = ()) -> tuple[Course, ...]:
    """A course for each test, metric, unit and name of a machine, in the order in which they are met.

    Results are taken in the order in which they come. Results without a finite value are left out.
    """
    groups: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in entries:
        if entry.values and all(map(math.isfinite, entry.values)):
            key = (entry.test, entry.metric, entry.unit, entry.machine.name)
            groups.setdefault(key, []).append(entry)
    return tuple(course_of(group, marks) for group in groups.values())


def course_of(entries: Sequence[Entry], marks: Sequence[Mark] = ()) -> Course:
    """The course of one or more results of one metric, in order. Raises ValueError for none."""
    levels, relative = levels_of(entries)
    found = fit_steps(levels, blocks=days_of(entries))
    machines = tuple(
        (place, facts_that_differ(one.machine, other.machine))
        for place, (one, other) in enumerate(pairwise(entries), 1)
        if is_other_machine(one.machine, other.machine)
    )
    commands = commands_that_differ(entries)
    changes = tuple(_change(entries, step, relative, machines, commands, marks) for step in found.steps)
    return Course(
        tuple(entries),
        levels,
        relative,
        found,
        changes,
        _slow(found.drift, relative, entries[0].kind),
        machines,
        commands,
        _within(entries, relative, found),
    )


def days_of(entries: Sequence[Entry]) -> list[int]:
    """The day, UTC, on which each was measured: results of one day may have an offset in common."""
    return [entry.measured.toordinal() for entry in entries]


def levels_of(entries: Sequence[Entry]) -> tuple[Floats, bool]:
    """Each result's level, and whether these are means of logarithms: where all values are above zero."""
    relative = all(e.kind != "binary" and min(e.values) > 0.0 for e in entries)
    levels = [float(np.mean(np.log(e.values) if relative else np.asarray(e.values))) for e in entries]
    return np.array(levels), relative


def is_other_machine(one: Machine, other: Machine) -> bool:
    """True if two machines are known to be unequal: a machine without a digest is not."""
    return bool(one.digest and other.digest) and one.digest != other.digest


def facts_that_differ(one: Machine, other: Machine) -> tuple[str, ...]:
    """`kernel: 6.1 → 6.2` for each fact that is not the same."""
    then, now = dict(one.facts), dict(other.facts)
    names = sorted({*then, *now})
    return tuple(
        f"{name}: {then.get(name, 'not recorded')} → {now.get(name, 'not recorded')}"
        for name in names
        if then.get(name) != now.get(name)
    )


def commands_that_differ(entries: Sequence[Entry]) -> tuple[tuple[int, str], ...]:
    """Places and `command: sort a → sort b` of each change of the measured command; one not known says nothing."""
    known = [(place, entry.command) for place, entry in enumerate(entries) if entry.command is not None]
    return tuple(
        (place, f"command: {one} → {other}") for (_, one), (place, other) in pairwise(known) if one != other
    )


def is_worse(kind: str, size: float) -> bool | None:
    """True if a change by `size` is for the worse: more of a cost, less of a rate."""
    return {"cost": size > 0.0, "rate": size < 0.0}.get(kind)


def expected_why(entries: Sequence[Entry], marks: Sequence[Mark]) -> str | None:
    """Reason why a step that begins with one of these results was expected; None if it was not."""
    for mark in marks:
        for entry in entries:
            named = entry.commit is not None and entry.commit.startswith(mark.commit)
            if named and mark.test == entry.test and mark.metric in (None, entry.metric):
                return mark.why
    return None


def _by_commit(entries: Sequence[Entry], step: Step) -> Cause:
    """Cause of a step at which neither the machine nor the command is recorded to change."""
    around = entries[step.earliest - 1 : step.latest + 1]
    commits = {entry.commit for entry in around}
    if None in commits:
        return "not known"
    edited = any(DIRTY in entry.tags for entry in around)
    return "commit" if len(commits) > 1 or edited else "neither"


def _change(
    entries: Sequence[Entry],
    step: Step,
    relative: bool,
    machines: Sequence[tuple[int, tuple[str, ...]]],
    commands: Sequence[tuple[int, str]],
    marks: Sequence[Mark],
) -> Change:
    last, first = entries[step.at - 1], entries[step.at]
    size, low, high = (_size(v, relative) for v in (step.size, step.interval.low, step.interval.high))
    there = [facts for place, facts in machines if step.earliest <= place <= step.latest]
    tests = [text for place, text in commands if step.earliest <= place <= step.latest]
    cause: Cause = "machine" if there else "test" if tests else _by_commit(entries, step)
    differences = tuple(dict.fromkeys([*(fact for facts in there for fact in facts), *tests]))
    begins = entries[step.earliest : step.latest + 1]
    return Change(
        step,
        last,
        first,
        size,
        low,
        high,
        is_worse(first.kind, size) if step.shown else None,
        cause,
        differences,
        expected_why(begins, marks),
    )


def _slow(drift: Drift | None, relative: bool, kind: str) -> SlowChange | None:
    if drift is None:
        return None
    size, low, high = (_size(v, relative) for v in (drift.change, drift.interval.low, drift.interval.high))
    return SlowChange(drift, size, low, high, None if low <= 0.0 <= high else is_worse(kind, size))


def _size(difference: float, relative: bool) -> float:
    """The difference of two levels, as it is reported."""
    return exponential(difference) - 1.0 if relative else difference


def _within(entries: Sequence[Entry], relative: bool, found: StepFit) -> float | None:
    spreads = [np.log(e.values) if relative else np.asarray(e.values) for e in entries if len(e.values) > 1]
    if not spreads or found.noise.deviation == 0.0:
        return None
    own = float(np.mean([np.var(x, ddof=1) / x.size for x in spreads]))
    return min(1.0, own / found.noise.deviation**2)
