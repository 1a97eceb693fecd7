"""Interface of a probe, which takes metrics before and after a measured command.

Nothing of it may run in between. docs/howto/extending.md explains how to write one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from etude.results.model import MetricValue


@dataclass(frozen=True)
class ProbeBlock:
    """Lines of text that are stored with the trial under a name."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """Result of a probe: metrics by name, blocks, and notes for the reader."""

    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    blocks: tuple[ProbeBlock, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """The measured EXEC of a trial, all its workers. Before the launch `elapsed_s` is None.

    All measured processes descend from `engine_pid`. `environment` holds the variables that the trial's scripts get
    in addition to the environment that Étude was started in (docs/reference/language.md).
    """

    engine_pid: int = 0
    cgroup: str | None = None
    directory: str | None = None
    elapsed_s: float | None = None
    test: str = ""
    trial: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)

    def variable(self, name: str) -> str | None:
        """An environment variable as the trial's scripts see it."""
        return self.environment.get(name, os.environ.get(name))


class ProbeFailed(Exception):
    """Reason why a probe has no result this time, in one line. Any other exception is reported with its type."""


class Probe(Protocol):
    """One probe. Any exception that it raises is a warning, never a lost trial.

    If a probe has `gives`, a mapping of its metrics' names to their units, these metrics are reported as null
    with the reason when it is unavailable or fails.
    """

    name: str

    def unavailable(self) -> str | None:
        """Reason why it is unavailable on this machine; None if it is available."""

    def start(self, context: Context) -> Any:
        """Read what is needed before the launch; `end` receives the returned state."""

    def end(self, state: Any, context: Context) -> Reading:
        """Read again, and return the changes."""


State = TypeVar("State")


class CounterProbe(Generic[State]):
    """Base of probes that read the same files twice, below a directory laid out like `/`."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def start(self, context: Context) -> State:
        return self._read()

    def _read(self) -> State:
        raise NotImplementedError


def value(number: float, unit: str) -> list[Any]:
    """A metric."""
    return [number, unit]


def missing(unit: str, reason: str) -> list[Any]:
    """A metric that could not be measured."""
    return [None, unit, reason]


def growth(
    before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """Increase of each row of counters; rows without any increase are left out.

    A row that is new, or in which a counter fell, belongs to something that was created in between and counts from 0.
    """
    grown = {}
    for name, late in after.items():
        early = before.get(name, ())
        change = tuple(b - a for a, b in zip(early, late, strict=False))
        if len(early) != len(late) or any(by < 0 for by in change):
            change = tuple(late)
        if any(change):
            grown[name] = change
    return grown


def to_ints(words: Sequence[str]) -> tuple[int, ...] | None:
    """The words as whole numbers of 0 or more; None if one is not."""
    return tuple(map(int, words)) if all(word.isascii() and word.isdecimal() for word in words) else None
