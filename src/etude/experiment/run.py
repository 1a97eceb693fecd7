"""Runs a plan into a new directory; resumes an experiment, or adds tests to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.errors import InputError, UsageError
from etude.experiment import loop
from etude.experiment.bench import Event
from etude.experiment.monitoring import DEFAULT_MONITORING, Monitoring
from etude.experiment.origin import original_directory
from etude.experiment.plan import NewLimits, Plan, digest, extended_rule, groups, plan_to_resume, to_document
from etude.experiment.progress import Progress
from etude.experiment.remote_engine import check_plan, engine_maker
from etude.experiment.session import (
    EngineMaker,
    SessionContext,
    existing_results,
    holds_results,
    is_complete,
    new_directory,
    new_document,
    progress_of,
    replace_plan,
    run_session,
)
from etude.experiment.test import MetricPattern, Test
from etude.machine.boot import record, restart
from etude.machine.cool.methods import REBOOTS
from etude.results.reader import load_results, read_experiment, read_trusted_experiment
from etude.results.results import Results
from etude.results.trial_join import kind_of, stored_unit
from etude.results.writer import directory_name, sole_writer, write_experiment

if TYPE_CHECKING:
    from etude.stats.stopping import Decision

Observer = Callable[[Event, Progress], None]


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment and the stop rule's final decision on each group of tests."""

    results: Results
    decisions: tuple[Decision, ...]


def ignore_events(event: Event, progress: Progress) -> None:
    """An observer that does nothing."""


def run(
    plan: Plan,
    directory: str | os.PathLike[str] | None = None,
    *,
    observe: Observer = ignore_events,
    make_engine: EngineMaker | None = None,
    command_line: Sequence[str] = (),
    verb: str = "run",
    monitor: Monitoring | None = DEFAULT_MONITORING,
) -> Outcome:
    """Run a plan into a new results directory (default `etude-results/NAME-UTCTIME`), with the monitor.

    make_engine: factory of the engine; here, unless the environment names a node (`etude.experiment.remote_engine`).
    Raises EtudeError: see the classes of etude.errors; what was measured is on disk.
    """
    if any(test.cool in REBOOTS for test in plan.tests):
        restart.check(None)
    path = new_directory(directory, plan.name)
    with sole_writer(path):
        if holds_results(path):
            raise existing_results(path)
        return _run_session(
            plan, path, _new_document(plan, verb, command_line, monitor), observe, make_engine
        )


def resume(
    directory: str | os.PathLike[str],
    limits: NewLimits | None = None,
    *,
    observe: Observer = ignore_events,
    make_engine: EngineMaker | None = None,
) -> Outcome:
    """Resume an interrupted experiment, in a new session and in the directory in which it was started; a complete one
    is resumed only if `limits` require more trials. Raises EtudeError: same as `run`; InputError: nothing can be
    resumed, or a program has changed; UsageError: limits that do not fit its stop rule, or are used up."""
    path = Path(directory)
    read_trusted_experiment(path)
    with sole_writer(path):
        document = read_experiment(path)  # as the last writer left it
        if document.get("pool"):
            raise InputError(f"{path}: was begun over a pool; resume with: etude bench --resume {path}")
        before = plan_to_resume(document, str(path / "experiment.json"))
        plan = replace(before, rule=extended_rule(before.rule, limits)) if limits else before
        complete = is_complete(path, document)
        if plan == before and complete:
            return Outcome(load_results(path), ())
        if plan != before:
            decisions = _nothing_to_add(plan, path, document) if complete else None
            _note_limits(plan, document)
            if decisions is not None:
                write_experiment(path, document)
                return Outcome(load_results(path), decisions)
        with original_directory(path, document) as there:
            return _run_session(plan, there, document, observe, make_engine)


def _nothing_to_add(plan: Plan, path: Path, document: dict[str, Any]) -> tuple[Decision, ...] | None:
    """The stop rule's decisions on a complete experiment that meets new limits unchanged; None if trials are missing.
    Raises UsageError: it misses its target, and these limits allow no more."""
    progress = progress_of(path, document)
    decisions = [loop.stop_decision(plan, progress, group) for group in groups(plan.schedule, plan.tests)]
    found = tuple(each for each in decisions if each is not None)
    if len(found) < len(decisions):
        return None
    for each in found:
        if each.converged is False:
            raise UsageError(f"these limits allow no more than there is: {each.why}; give more")
    return found


def _note_limits(plan: Plan, document: dict[str, Any]) -> None:
    before = {"sitting": len(document["sittings"]), "rule": document["plan"]["rule"]}
    earlier = document.setdefault("earlier_rules", [])
    if before["sitting"] not in [each["sitting"] for each in earlier]:
        earlier.append(before)
    replace_plan(document, to_document(plan), digest(plan))


def extend(
    directory: str | os.PathLike[str],
    tests: Sequence[Test],
    *,
    observe: Observer = ignore_events,
    make_engine: EngineMaker | None = None,
) -> Outcome:
    """Add tests to a complete experiment, and run their missing trials in a new session; the stop rule is unchanged.
    Raises EtudeError: same as `run`; UsageError: a name is taken."""
    path = Path(directory)
    with sole_writer(path):
        document = read_trusted_experiment(path)
        plan = plan_to_resume(document, str(path / "experiment.json"))
        plan = replace(plan, tests=(*plan.tests, *tests))
        replace_plan(document, to_document(plan), digest(plan))
        document["tests"] += _entries(tests, [entry["directory"] for entry in document["tests"]])
        with original_directory(path, document) as there:
            return _run_session(plan, there, document, observe, make_engine)


def drop_tests(directory: str | os.PathLike[str], names: Collection[str]) -> None:
    """Take tests out of the plan of an interrupted experiment; what they have measured stays.

    Raises:
        InputError: it cannot be read; UsageError: no test is left.
    """
    path = Path(directory)
    with sole_writer(path):
        document = read_trusted_experiment(path)
        plan = plan_to_resume(document, str(path / "experiment.json"))
        plan = replace(plan, tests=tuple(test for test in plan.tests if test.name not in names))
        replace_plan(document, to_document(plan), digest(plan))
        write_experiment(path, document)


def _new_document(
    plan: Plan, verb: str, command_line: Sequence[str], monitor: Monitoring | None
) -> dict[str, Any]:
    tests = _entries((*plan.tests, *loop.added_tests(plan)), ())
    own = {p.name: _own_metric(p) for test in plan.tests for p in test.metrics}
    return new_document(plan.name, verb, command_line, to_document(plan), digest(plan), tests, own, monitor)


def _entries(tests: Sequence[Test], taken: Sequence[str]) -> list[dict[str, Any]]:
    """Entries of tests in experiment.json, each with a directory of its own."""
    found: list[dict[str, Any]] = []
    for test in tests:
        name = directory_name(test.name, [*taken, *(entry["directory"] for entry in found)])
        found.append(
            {
                "name": test.name,
                "directory": name,
                "role": test.role,
                "parameters": dict(test.parameters),
                "workers": test.workers,
            }
        )
    return found


def _own_metric(pattern: MetricPattern) -> dict[str, str]:
    unit = stored_unit(pattern.unit).base
    return {"unit": unit, "kind": kind_of(unit)}


def _run_session(
    plan: Plan, path: Path, document: dict[str, Any], observe: Observer, make_engine: EngineMaker | None
) -> Outcome:
    check_plan(plan)
    decisions: list[Decision] = []

    def work(context: SessionContext) -> list[str]:
        bench = context.bench(plan, observe)
        if context.resumed:
            bench.notify("resumed", detail=context.resumed_with())
        decisions.extend(loop.run_groups(bench))
        record.forget(path)
        return [decision.why for decision in decisions]

    progress = run_session(path, document, make_engine or engine_maker(), work)
    return Outcome(Results(path, read_experiment(path), progress.measurements(), ()), tuple(decisions))
