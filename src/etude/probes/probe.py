"""What a probe is: it takes metrics before and after a measured command.

Nothing of it may run in between. How to write one is in docs/extending.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from etude.results.model import MetricValue


@dataclass(frozen=True)
class ProbeBlock:
    """Lines of text that are kept with the trial under a name."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """What a probe found: metrics by name, blocks, and notes on what a reader should know."""

    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    blocks: tuple[ProbeBlock, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """What is measured: one EXEC of a trial, all its workers. Before the launch `elapsed_s` is None.

    All measured processes descend from `engine_pid`. `environment` is what the trial's scripts are given
    beside the environment that Étude was started in (docs/language.md).
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
    """Why a probe has nothing to give this time, in one line. Any other exception is told with its type."""


class Probe(Protocol):
    """One probe. It may raise whatever it likes: that is a warning, never a lost trial.

    A probe that also has `gives`, a mapping of its metrics' names to their units, has them reported as null
    with the reason when it cannot be used or fails before it gave any.
    """

    name: str

    def unavailable(self) -> str | None:
        """Why it cannot be used on this machine; None if it can."""

    def start(self, context: Context) -> Any:
        """Read what is needed before the launch; `end` gets it back."""

    def end(self, state: Any, context: Context) -> Reading:
        """Read again, and say what has changed."""


def value(number: float, unit: str) -> list[Any]:
    """A metric."""
    return [number, unit]


def missing(unit: str, reason: str) -> list[Any]:
    """A metric that could not be measured."""
    return [None, unit, reason]
