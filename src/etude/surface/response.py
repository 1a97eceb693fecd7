"""What is measured in a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from etude.machine.resources.resource import Setting
from etude.surface.next_configuration import Visit
from etude.surface.samples import Sample

Tell = Callable[[str], None]
"""Is told in a few words how a measurement stands."""


@dataclass(frozen=True)
class ConfigurationRequest:
    """One cell that is to be measured."""

    visit: Visit
    settings: Mapping[str, str]
    """Each factor's level."""
    setting: Setting
    """What its resources are for commands."""
    place: Path
    """The cell's directory, for all that is kept; it may hold what an interrupted measurement left."""
    left_s: float | None
    """Benchmarking time that it may take, s, with what was spent on it before it was interrupted."""
    until_s: float = math.inf
    """Until the deadline, s."""


class Response(Protocol):
    """Measures cells, one after the other. What it kept of an interrupted cell it goes on with."""

    @property
    def name(self) -> str:
        """As `peak rate`."""
        ...

    @property
    def unit(self) -> str:
        """As `1/s`."""
        ...

    @property
    def better(self) -> Literal["higher", "lower"]: ...

    @property
    def text(self) -> str:
        """All that it depends on: a map is gone on with only while this is the same."""
        ...

    @property
    def nodes(self) -> int:
        """So many nodes of a pool a cell wants: one more where the system has its own."""
        ...

    def learn(self, place: Path) -> None:
        """A cell that was measured in an earlier session may teach something of the next."""
        ...

    @property
    def lesson(self) -> Any:
        """What the cells so far have taught of the next, as plain data: for whoever measures it on another machine."""
        ...

    def recall(self, lesson: Any) -> None:
        """What `lesson` was elsewhere. Raises ValueError, TypeError for what it never is."""
        ...

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        """One cell. Raises EtudeError: it cannot be measured; the map goes on with others."""
        ...
