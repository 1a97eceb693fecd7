"""What a surface is of: the response that SPEC.toml asks for, or that of simulated servers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etude.workbench.harnesses.surfaces import SimulatedSurface
    from etude.workbench.surfaces.response import Response
    from etude.workbench.surfaces.spec import Spec


def response_of(spec: Spec, deadline: datetime | None) -> Response:
    """Of SPEC.toml; a search answers by the deadline. Raises InputError: its harness cannot be meant."""
    from etude.workbench.surfaces.spec import MetricOf

    base = spec.path.parent
    if isinstance(spec.response, MetricOf):
        from etude.workbench.surfaces.metric import Metric

        return Metric(spec.response, base)
    from etude.workbench.sources import of_harness as source_of
    from etude.workbench.surfaces.peaks import of_harness

    word = spec.response.harness
    source = source_of(word if ":" in word and not (base / word).exists() else str(base / word))
    rest = spec.response.policy, spec.space, spec.resources, str(spec.path)
    if deadline is None:
        return of_harness(source, *rest)
    from etude.cli.peak import punctual

    return of_harness(source, *rest, lambda policy: punctual(policy, deadline))


def simulated_response(words: str) -> tuple[SimulatedSurface, Response]:
    """Of `DB_TP`, or `DB_TP:7`. Raises UsageError for what there is not."""
    from etude.workbench.surfaces.peaks import of_simulation, simulated

    system = simulated(words)
    return system, of_simulation(system, "posterior")
