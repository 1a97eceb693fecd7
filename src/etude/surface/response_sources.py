"""Response of a surface: configured by SPEC.toml, or of simulated servers."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from etude.peak.policies.policy import with_deadline
from etude.peak.sources import Source, of_harness
from etude.surface import peaks
from etude.surface.metric import Metric
from etude.surface.peaks import of_simulation, simulated
from etude.surface.response import Response
from etude.surface.simulated import SimulatedSurface
from etude.surface.spec import MetricOf, PeakOf, Spec


def response_of(spec: Spec, deadline: datetime | None) -> Response:
    """Response of a SPEC.toml; a search answers by the deadline. Raises InputError if its harness is invalid."""
    if isinstance(spec.response, MetricOf):
        return Metric(spec.response, spec.path.parent)
    source = source_of(spec.response, spec.path.parent)
    rest = spec.response.policy, spec.space, spec.resources, str(spec.path)
    if deadline is None:
        return peaks.of_harness(source, *rest)
    return peaks.of_harness(source, *rest, lambda policy: with_deadline(policy, deadline))


def source_of(response: PeakOf, base: Path) -> Source:
    """Source searched at each configuration; a file is relative to `base`. Raises InputError if it is invalid."""
    word = response.harness
    return of_harness(word if ":" in word and not (base / word).exists() else str(base / word))


def simulated_response(words: str) -> tuple[SimulatedSurface, Response]:
    """Response of `DB_TP`, or `DB_TP:7`. Raises UsageError for an unknown surface."""
    system = simulated(words)
    return system, of_simulation(system, "posterior")
