"""Query results of the store, and the facts that identify a machine: one metric of one test in one stored result on
one machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from etude.store.column_encoding import clean, key

SHORT = 10
"""Characters of a commit that are shown."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of a measurement."""

    name: str
    """Name of the machine: the host, unless set by the user."""
    digest: str
    """Digest of the facts that influence performance (hardware, kernel): equal for equal machines. Empty if nothing is
    known."""
    facts: tuple[tuple[str, str], ...] = ()
    """Facts in the digest, by name: `processor`, `cores`, `memory`, `kernel`, … Sorted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One point of a history."""

    result: int
    """Number of its stored result."""
    test: str
    metric: str
    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    machine: Machine
    measured: datetime
    """Start time of the first of its trials, UTC."""
    values: tuple[float, ...]
    """Values of the included trials, in the order in which they were made."""
    commit: str | None = None
    committed: datetime | None = None
    """Time of that commit, UTC: the order of a history, if all its points have one."""
    branch: str | None = None
    tags: tuple[str, ...] = ()
    source: str = ""
    """The directory that was added."""
    sittings: tuple[int, ...] = ()
    """Session of each value; sessions between which the experiment itself restarted the machine share a number. Empty
    if unknown: one session."""
    command: str | None = None
    """The measured command of the first trial, on one line; None if unknown."""

    @property
    def day(self) -> str:
        """Date of the commit, or if unknown of the measurement, UTC: `2026-04-11`."""
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
    """Time of adding, or of the last replacement; UTC."""
    trials: int
    """Trials in it, of all its tests, excluded ones included."""
    machines: tuple[str, ...]
    """Names of the machines, sorted."""
    commit: str | None = None
    committed: datetime | None = None
    branch: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """Outcome of adding a result."""

    result: int
    new: bool
    """True if it was not stored before."""
    how: str = "added"
    """`added`; `already`: the same was stored; `replaced`: it has grown; `older`: a larger one is stored."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An expected change: from this commit on the test differs, and no alert is needed."""

    test: str
    metric: str | None
    """None: all its metrics."""
    commit: str
    why: str
    marked: datetime


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects the entries that meet all given conditions."""

    test: str | None = None
    metric: str | None = None
    result: int | None = None
    commit: str | None = None
    """Full commit, or its first characters (4 or more)."""
    tag: str | None = None
    branch: str | None = None
    machine: str | None = None
    """Name or digest of a machine."""
    since: datetime | None = None
    """Minimum time of the commit, or if unknown of the measurement."""
    until: datetime | None = None
    """Maximum time, likewise."""


_GIB = 2**30

_MEMBERS = {
    "architecture": "system.architecture",
    "caches": "cpu.caches",
    "cores": "cpu.online",
    "cores allowed": "cpu.allowed",
    "governor": "frequency.governors",
    "hypervisor": "virtualisation.hypervisor",
    "kernel": "system.kernel_release",
    "memory": "memory.total_bytes",
    "microcode": "cpu.microcode",
    "NUMA nodes": "cpu.numa_nodes",
    "processor": "cpu.model",
    "SMT": "cpu.smt",
    "sockets": "cpu.sockets",
    "turbo": "frequency.turbo",
}
"""Each fact, and the member of a snapshot that it is read from."""


def machine_of(name: str, snapshot: Mapping[str, Any] | None) -> Machine:
    """A machine by its snapshot (docs/howto/snapshot.md); without one it has no facts and no digest."""
    found = {fact: _text(fact, _member(snapshot or {}, path)) for fact, path in _MEMBERS.items()}
    return of_facts(name, {fact: text for fact, text in found.items() if text})


def of_facts(name: str, facts: Mapping[str, str]) -> Machine:
    """A machine by facts from another source."""
    ordered = tuple(sorted((fact, clean(text)) for fact, text in facts.items()))
    return Machine(clean(name), key(*(word for fact in ordered for word in fact)) if ordered else "", ordered)


def _member(part: Any, path: str) -> Any:
    for name in path.split("."):
        part = part.get(name) if isinstance(part, Mapping) else None
    return part


def _text(fact: str, value: Any) -> str:
    if value is None or value == []:
        return ""
    if fact == "memory" and isinstance(
        value, int
    ):  # the kernel reserves some, a little more or less each boot
        return f"{value / _GIB:.2g} GiB" if value < 10 * _GIB else f"{value / _GIB:.0f} GiB"
    if fact == "cores allowed" and isinstance(value, list):
        return str(len(value))
    if fact == "caches" and isinstance(value, list):
        return ", ".join(_cache(cache) for cache in value if isinstance(cache, Mapping))
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cache(cache: Mapping[str, Any]) -> str:
    size = cache.get("size_bytes")
    kib = f"{size // 1024} KiB" if isinstance(size, int) else "?"
    return f"L{cache.get('level')} {str(cache.get('type')).lower()} {kib}"
