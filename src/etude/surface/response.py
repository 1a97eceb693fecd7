"""Interface of a response: the quantity measured at a configuration."""

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
"""Reports the progress of a measurement in a few words."""


@dataclass(frozen=True)
class ConfigurationRequest:
    """Request to measure one configuration."""

    visit: Visit
    settings: Mapping[str, str]
    """Level of each factor."""
    setting: Setting
    """Values of its resources for commands."""
    place: Path
    """The configuration's directory; it may contain an interrupted measurement."""
    left_s: float | None
    """Budget of benchmarking time, s, including what was spent before an interruption."""
    until_s: float = math.inf
    """Time until the deadline, s."""


class Response(Protocol):
    """Measures configurations one after the other. It resumes an interrupted one from disk."""

    @property
    def name(self) -> str:
        """Name, such as `peak rate`."""
        ...

    @property
    def unit(self) -> str:
        """Unit, such as `1/s`."""
        ...

    @property
    def better(self) -> Literal["higher", "lower"]: ...

    @property
    def text(self) -> str:
        """All that it depends on: a map is only resumed while this is unchanged."""
        ...

    @property
    def nodes(self) -> int:
        """Nodes of a pool that a configuration needs: one more if the system has its own."""
        ...

    def learn(self, place: Path) -> None:
        """Update by a configuration measured in an earlier session."""
        ...

    @property
    def lesson(self) -> Any:
        """State from the configurations so far, as plain data, for a measurement on another machine."""
        ...

    def recall(self, lesson: Any) -> None:
        """Restore the state from `lesson`. Raises ValueError or TypeError if it is invalid."""
        ...

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        """Measure one configuration. Raises EtudeError if it cannot be measured; the map resumes with others."""
        ...
