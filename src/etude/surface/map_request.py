"""A requested map: its definition, response and budget, and its results directory, opened or resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude.cluster.pool.journal import FILE, Journal
from etude.errors import InputError, UsageError
from etude.osutil.processes import naming_results
from etude.peak.search_session import resumed_by_same_command
from etude.surface.map_store import MapDefinition, MapStore, define_map, open_map
from etude.surface.next_configuration import Rules, contradiction
from etude.surface.peaks import response_of, simulated_response
from etude.surface.response import Response
from etude.surface.run_map import Display, MapBudget, run_map
from etude.surface.spec import read_spec
from etude.units.formatting import counted


@dataclass(frozen=True)
class MapRequest:
    """A map, how its configurations are measured, and for how long."""

    definition: MapDefinition
    response: Response
    budget: MapBudget


def request_map(
    spec: Path | None,
    simulate: str,
    changes: Mapping[str, Any],
    *,
    budget_s: float | None = None,
    deadline: datetime | None = None,
    over_pool: bool = False,
) -> MapRequest:
    """The map of a SPEC.toml, or of a simulated system (`DB_TP:7`) if there is none.

    changes: rules in place of those of SPEC, None: as there. over_pool: configurations are measured on other machines.

    Raises:
        UsageError: rules that do not fit, or a factor that cannot be set here; InputError: an invalid SPEC.
    """
    budget = MapBudget({}, budget_s)
    if deadline is not None:
        budget = replace(budget, left_s=lambda: (deadline - datetime.now(UTC)).total_seconds())
    if spec is None:
        system, response = simulated_response(simulate)
        rules = changed_rules(Rules(), changes, system.space.size)
        return MapRequest(define_map(system.law.name, system.space, rules, response, ""), response, budget)
    read = read_spec(spec)
    for name, resource in () if over_pool else read.resources.items():
        if (why := resource.check()) is not None:
            raise UsageError(f"{read.path}: factor {name} ({resource.name}) cannot be set here: {why}")
    response = response_of(read, deadline)
    budget = replace(
        budget,
        resources=read.resources,
        budget_s=read.budget_s if budget_s is None else budget_s,
        cell_s=read.cell_s,
    )
    rules = changed_rules(read.rules, changes, read.space.size)
    return MapRequest(define_map(read.name, read.space, rules, response, read.text), response, budget)


def changed_rules(rules: Rules, changes: Mapping[str, Any], size: int) -> Rules:
    """The rules with changes, None: as they are; `size`: number of configurations. Raises UsageError: they contradict
    each other."""
    given = {name: value for name, value in changes.items() if value is not None}
    plan = given.get("plan", rules.plan)
    if plan != rules.plan:  # the rest belongs to the plan of SPEC
        rules = replace(rules, error=None, base=None, skip=rules.skip and plan != "in-order")
    changed = replace(rules, **given)
    if (wrong := contradiction(changed, size)) is not None:
        raise UsageError(f"--{' '.join(wrong)}")
    return changed


def map_here(
    directory: Path,
    asked: MapRequest,
    *,
    command_line: Sequence[str] = (),
    retry: bool = False,
    watch: Callable[[MapStore], AbstractContextManager[Display]] = lambda kept: nullcontext(Display()),
) -> MapStore:
    """Map on this machine, after the configurations on disk. `retry`: those that failed are measured again.

    Raises:
        InputError: the directory holds another map, or jobs of it are under way in a pool; EtudeError: from `run_map`,
        with how to resume.
    """
    if (directory / FILE).exists() and (count := len(Journal(directory).unfinished())):
        jobs = "a job" if count == 1 else f"{count} jobs"
        raise InputError(
            f"{directory}: {jobs} of it may be under way in a pool: resume with the same --pool, which waits for them"
        )
    with open_map(directory, asked.definition, command_line) as kept:
        if retry:
            kept.forget_failed()
        with naming_configurations(kept), watch(kept) as display:
            run_map(kept, asked.response, asked.budget, display)
    return kept


def naming_configurations(kept: MapStore) -> AbstractContextManager[None]:
    """An error, or a signal, names the configurations on disk, and how to resume."""
    return naming_results(
        lambda _: resumed_by_same_command(counted(len(kept.samples()), "configuration"), kept.directory)
    )
