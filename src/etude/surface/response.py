"""Interface of a response, the quantity measured at a configuration, and its measurement with the resources set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from etude.errors import CommandFailed, InputError, MachineRefuses
from etude.machine.resources.resource import Resource, Setting, applied_levels
from etude.surface.factors import Configuration
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
    """Measures configurations one after the other. It resumes an interrupted one from disk.

    Without `learn` and the state that it changes, measurements do not influence later ones.
    """

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
        return

    @property
    def learned_state(self) -> Any:
        """State from the configurations so far, as plain data, for a measurement on another machine."""
        return None

    def restore(self, learned_state: Any) -> None:
        """Restore the state from `learned_state`. Raises ValueError or TypeError if it is invalid."""
        return

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        """Measure one configuration. Raises EtudeError if it cannot be measured; the map resumes with others."""
        ...


UNMEASURABLE = (CommandFailed, MachineRefuses, InputError)
"""Errors of a single configuration: the map resumes with others."""
RESOURCES = "resources"
"""Subdirectory with the state needed to undo its resources."""

Bounds = Callable[[], tuple[float | None, float]]
"""Returns the remaining budget of benchmarking time for the configuration, and the time until the deadline, s."""


def measure_configuration(
    place: Path,
    response: Response,
    resources: Mapping[str, Resource],
    visit: Visit,
    settings: Mapping[str, str],
    bounds: Bounds,
    tell: Tell,
) -> Sample:
    """Sample of a configuration, measured in its directory `place`. Raises EtudeError: it cannot be measured; errors of
    UNMEASURABLE concern only this configuration."""
    with applied_levels(resources, settings, place / RESOURCES) as setting:
        left_s, until_s = bounds()
        sample = response.measure(
            ConfigurationRequest(visit, settings, setting, place, left_s, until_s), tell
        )
    return replace(sample, why="; ".join(filter(None, (sample.why, *setting.notes))))


def failed_sample(configuration: Configuration, why: str, cost_s: float, trials: int = 0) -> Sample:
    """Sample of a configuration that could not be measured."""
    return Sample(configuration, "failed", None, 0.0, math.inf, 0.95, cost_s, trials, False, why)
