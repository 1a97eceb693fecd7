"""Measurement of one configuration on its node: set the resources to its levels, measure its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from etude.errors import CommandFailed, InputError, MachineRefuses
from etude.machine.resources.resource import Resource, applied_levels
from etude.surface.factors import Cell
from etude.surface.next_configuration import Visit
from etude.surface.response import ConfigurationRequest, Response, Tell
from etude.surface.samples import Sample

UNMEASURABLE = (CommandFailed, MachineRefuses, InputError)
"""Errors of a single configuration: the map resumes with others."""
RESOURCES = "resources"
"""Subdirectory with the state needed to undo its resources."""

Bounds = Callable[[], tuple[float | None, float]]
"""Returns the remaining budget of benchmarking time for the configuration, and the time until the deadline, s."""


def measured_in(
    place: Path,
    response: Response,
    resources: Mapping[str, Resource],
    visit: Visit,
    settings: Mapping[str, str],
    bounds: Bounds,
    tell: Tell,
) -> Sample:
    """Sample of a configuration, measured in its directory `place`.

    Raises:
        EtudeError: it cannot be measured; errors of UNMEASURABLE concern only this configuration.
    """
    with applied_levels(resources, settings, place / RESOURCES) as setting:
        left_s, until_s = bounds()
        sample = response.measure(
            ConfigurationRequest(visit, settings, setting, place, left_s, until_s), tell
        )
    return replace(sample, why="; ".join(filter(None, (sample.why, *setting.notes))))


def failed_sample(cell: Cell, why: str, cost_s: float) -> Sample:
    """Sample of a configuration that could not be measured."""
    return Sample(cell, "failed", None, 0.0, float("inf"), 0.95, cost_s, 0, False, why)
