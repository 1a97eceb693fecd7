"""What the store gives back: one metric of one test in one stored result on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

SHORT = 10
"""Characters of a commit that are shown."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured."""

    name: str
    """As people call it: the host, unless said otherwise."""
    digest: str
    """Of what of it changes numbers (hardware, kernel); two results with the same one were made on equal machines.
    Empty where nothing is known of it: then it says nothing."""
    facts: tuple[tuple[str, str], ...] = ()
    """What the digest is of, by name: `processor`, `cores`, `memory`, `kernel`, … Sorted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One point of a history."""

    result: int
    """Number of the stored result that it is of."""
    test: str
    metric: str
    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    machine: Machine
    measured: datetime
    """When the first of its trials began, UTC."""
    values: tuple[float, ...]
    """Of the kept trials, in the order in which they were made."""
    commit: str | None = None
    committed: datetime | None = None
    """When that commit was made, UTC: the order of a history, where all its points have one."""
    branch: str | None = None
    tags: tuple[str, ...] = ()
    source: str = ""
    """The directory that was added."""
    sittings: tuple[int, ...] = ()
    """In which session each value was measured; sessions between which the experiment itself restarted the machine
    have one number. Empty where that is not known: then it was one."""
    command: str | None = None
    """The measured command on one line, of the first trial; None where it is not known."""

    @property
    def day(self) -> str:
        """Of the commit, or where none is known of the measurement, UTC: `2026-04-11`."""
        return (self.committed or self.measured).strftime("%Y-%m-%d")

    def __str__(self) -> str:
        """`2026-04-11 (commit 0064ab, v1.2)`."""
        known = f"commit {self.commit[:SHORT]}" if self.commit else f"result {self.result}"
        return f"{self.day} ({', '.join([known, *self.tags])})"


@dataclass(frozen=True, slots=True)
class Result:
    """One stored result: a results directory, or a file of another program."""

    number: int
    source: str
    measured: datetime
    added: datetime
    """When it was added, or replaced by more of it; UTC."""
    trials: int
    """Measured trials in it, of all its tests, kept or not."""
    machines: tuple[str, ...]
    """Their names, sorted."""
    commit: str | None = None
    committed: datetime | None = None
    branch: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a result that was to be added."""

    result: int
    new: bool
    """Whether it was not there before."""
    how: str = "added"
    """`added`; `already`: the same was there; `replaced`: it had grown since; `older`: more of it is there."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A change that a user expects: from this commit on the test is another one, and nobody needs an alert."""

    test: str
    metric: str | None
    """None: all its metrics."""
    commit: str
    why: str
    marked: datetime


@dataclass(frozen=True, slots=True)
class Selector:
    """Which entries are meant: those for which all that is given holds."""

    test: str | None = None
    metric: str | None = None
    result: int | None = None
    commit: str | None = None
    """All of it, or its first characters (4 or more)."""
    tag: str | None = None
    branch: str | None = None
    machine: str | None = None
    """Its name, or its digest."""
    since: datetime | None = None
    """Committed, or where no commit is known measured, at that time or later."""
    until: datetime | None = None
    """… or earlier."""
