"""What the store gives back: one metric of one test in one stored result on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured."""

    name: str
    """As people call it: the host, unless said otherwise."""
    digest: str
    """Of what of it changes numbers (hardware, kernel); two results with the same one were made on equal machines."""
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
