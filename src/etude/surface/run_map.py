"""Mapping a surface on this machine: configuration after configuration, until the rules are satisfied."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from etude.errors import EtudeError
from etude.machine.resources.resource import Resource, undo_left
from etude.peak.search import BUDGET_SPENT
from etude.surface.map_store import MapStore
from etude.surface.next_configuration import MapComplete, Visit, decide, fit_surrogate
from etude.surface.response import UNMEASURABLE, Response, Tell, failed_sample, measure_configuration
from etude.surface.samples import Sample

HOPELESS = 3
"""Number of failed configurations, without a measured one, that ends the map: the cause is common to all."""
LEAST_S = 1.0
"""Minimum time for a configuration, s."""


@dataclass(frozen=True)
class MapBudget:
    """Resources and budgets of a map."""

    resources: Mapping[str, Resource]
    """Resources by factor."""
    budget_s: float | None = None
    """Benchmarking time of all configurations together."""
    cell_s: float | None = None
    """Benchmarking time of one configuration."""
    left_s: Callable[[], float] = lambda: float("inf")
    """Time until the deadline, s."""


@dataclass(frozen=True)
class Display:
    """Callbacks for progress."""

    begins: Callable[[Visit], None] = lambda visit: None
    tell: Tell = lambda text: None
    made: Callable[[Visit, Sample], None] = lambda visit, sample: None


def run_map(kept: MapStore, response: Response, budget: MapBudget, display: Display) -> str:
    """Measure until the rules are satisfied, and return the reason; each sample is on disk before the next begins.
    Raises EtudeError: nothing can be measured at all, results cannot be written, or it was interrupted."""
    for file in kept.directory.glob("**/resources/resources.json"):
        undo_left(file.parent)
    restore_learned_state(kept, response)
    space, rules = kept.definition.space, kept.definition.rules
    while True:
        decision = decide(space, rules, kept.samples())
        why = decision.why if isinstance(decision, MapComplete) else _spent(kept, budget)
        if why:
            surrogate = fit_surrogate(space, tuple(kept.samples()))
            kept.ended(why, "" if surrogate is None else surrogate.name, findings(kept.samples()))
            return why
        assert isinstance(decision, Visit)  # nothing is under way here
        display.begins(decision)
        sample = forecast_of(_measured(kept, response, budget, decision, display.tell), decision)
        if sample.state == "failed" and budget.left_s() < LEAST_S:
            continue  # out of time: another session resumes it
        kept.keep(decision, sample)
        display.made(decision, sample)


MISSED = "did not meet their target"
"""End of the finding on missed targets."""


class Learner(Protocol):
    """A response, or configurations as jobs."""

    def learn(self, place: Path) -> None:
        """Update by a measured configuration."""
        ...


def restore_learned_state(kept: MapStore, response: Learner) -> None:
    """Restore the response's state of earlier sessions: from the last completed measurement."""
    for sample in reversed(kept.samples()):
        if sample.trials:
            response.learn(kept.attempt_place(sample.cell, last=True))
            return


def forecast_of(sample: Sample, visit: Visit) -> Sample:
    """The sample with its prediction, unless the response has set it."""
    if sample.expected is not None:
        return sample
    return replace(sample, expected=visit.expected, spread=visit.spread)


def findings(samples: list[Sample]) -> list[str]:
    """Reasons to doubt the surface, a line each."""
    doubtful = sum(each.state == "measured" and not each.kept for each in samples)
    said = []
    if doubtful:
        said.append(f"{doubtful} of {len(samples)} configurations {MISSED}")
    values = {each.value for each in samples if each.value is not None}
    if len(values) == 1 and len(samples) > 1:
        said.append("the response is the same in all configurations: no factor changes it")
    return said


def _spent(kept: MapStore, budget: MapBudget) -> str:
    if budget.left_s() < LEAST_S:
        return "the deadline has come"
    spent = sum(sample.cost_s for sample in kept.samples())
    return BUDGET_SPENT if budget.budget_s is not None and spent >= budget.budget_s else ""


def _left(kept: MapStore, budget: MapBudget) -> float | None:
    bounds = [] if budget.cell_s is None else [budget.cell_s]
    if budget.budget_s is not None:
        bounds.append(budget.budget_s - sum(sample.cost_s for sample in kept.samples()))
    return max(min(bounds), LEAST_S) if bounds else None


def _measured(kept: MapStore, response: Response, budget: MapBudget, visit: Visit, tell: Tell) -> Sample:
    place = kept.attempt_place(visit.cell)
    settings = kept.definition.space.settings(visit.cell)
    began = time.monotonic()

    def bounds() -> tuple[float | None, float]:
        return _left(kept, budget), budget.left_s()

    try:
        return measure_configuration(place, response, budget.resources, visit, settings, bounds, tell)
    except UNMEASURABLE as error:
        tried = kept.samples()
        if len(tried) + 1 >= HOPELESS and all(each.state == "failed" for each in tried):
            raise is_hopeless(
                error, len(tried) + 1, ", which is not on disk and will be tried again"
            ) from None
        return failed_sample(visit.cell, str(error), time.monotonic() - began)


def is_hopeless(error: EtudeError, count: int, last: str = "") -> EtudeError:
    """Error of a map without a measured configuration. `last`: clause on the last one."""
    return type(error)(f"the first {count} configurations could not be measured; the last{last}: {error}")
