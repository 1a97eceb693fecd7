"""One cell, where it is measured: its resources held at their levels, its response asked."""

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
"""Errors that are of the cell: the map goes on with others."""
RESOURCES = "resources"
"""Of a cell's directory: what is to be undone of its resources."""

Bounds = Callable[[], tuple[float | None, float]]
"""Benchmarking time that a cell may take from now on, and the time until the deadline, s."""


def measured_in(
    place: Path,
    response: Response,
    resources: Mapping[str, Resource],
    visit: Visit,
    settings: Mapping[str, str],
    bounds: Bounds,
    tell: Tell,
) -> Sample:
    """What is found of a cell in its directory, `place`.

    Raises:
        EtudeError: it cannot be measured; those of UNMEASURABLE are no reason not to measure others.
    """
    with applied_levels(resources, settings, place / RESOURCES) as setting:
        left_s, until_s = bounds()
        sample = response.measure(
            ConfigurationRequest(visit, settings, setting, place, left_s, until_s), tell
        )
    return replace(sample, why="; ".join(filter(None, (sample.why, *setting.notes))))


def failed_sample(cell: Cell, why: str, cost_s: float) -> Sample:
    """Of a cell that could not be measured."""
    return Sample(cell, "failed", None, 0.0, float("inf"), 0.95, cost_s, 0, False, why)
