"""Running a plan from its directory's creation to its last line; going on with one, or with more tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.errors import InputError, UsageError
from etude.experiment import loop
from etude.experiment.bench import Bench, Event
from etude.experiment.monitoring import USUAL, Monitoring
from etude.experiment.new_limits import NewLimits, extended_rule
from etude.experiment.origin import begun_directory
from etude.experiment.plan import Plan, digest, groups, plan_to_resume, to_document
from etude.experiment.progress import Progress
from etude.experiment.remote_engine import check_plan, engine_maker
from etude.experiment.session import (
    EngineMaker,
    SessionContext,
    asks_anew,
    existing_results,
    holds_results,
    is_complete,
    ledger_of,
    new_directory,
    new_document,
    run_session,
)
from etude.experiment.test import MetricPattern, Test
from etude.machine.boot import record, restart
from etude.machine.cool.methods import REBOOTS
from etude.results.reader import load_results, read_experiment, read_trusted_experiment
from etude.results.results import Results
from etude.results.units import kind_of, unit_kept
from etude.results.writer import directory_name, sole_writer, write_experiment

if TYPE_CHECKING:
    from etude.stats.stopping import Decision

Observer = Callable[[Event, Progress], None]


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment and the stop rule's last word on each group of tests."""

    results: Results
    decisions: tuple[Decision, ...]


def silent(event: Event, ledger: Progress) -> None:
    """An observer that says nothing."""


def run(
    plan: Plan,
    directory: str | os.PathLike[str] | None = None,
    *,
    observe: Observer = silent,
    make_engine: EngineMaker | None = None,
    command_line: Sequence[str] = (),
    verb: str = "run",
    monitor: Monitoring | None = USUAL,
) -> Outcome:
    """Run a plan into a new results directory (default `etude-results/NAME-UTCTIME`), with the monitor beside it.

    make_engine: where the engine is; here, unless the environment names a node (`etude.experiment.remote_engine`).

    Raises:
        EtudeError: as the classes of etude.errors say; what was measured is on disk.
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
    observe: Observer = silent,
    make_engine: EngineMaker | None = None,
) -> Outcome:
    """Resume an experiment that was interrupted, in a new session and in the directory in which it was begun; one that
    is complete gets one only where `limits` ask for trials that it lacks.

    Raises:
        EtudeError: as `run`; InputError where there is nothing that can be resumed, or a program is another than
            before; UsageError for limits that do not fit its stop rule, or are used up.
    """
    path = Path(directory)
    read_trusted_experiment(path)
    with sole_writer(path):
        document = read_experiment(path)  # as whoever wrote here last left it
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
        with begun_directory(path, document) as there:
            return _run_session(plan, there, document, observe, make_engine)


def _nothing_to_add(plan: Plan, path: Path, document: dict[str, Any]) -> tuple[Decision, ...] | None:
    """The stop rule's words on a complete experiment that meets new limits as it is; None where trials are missing.

    Raises:
        UsageError: it misses its target, and these limits allow no more.
    """
    ledger = ledger_of(path, document)
    decisions = [loop.stop_decision(plan, ledger, group) for group in groups(plan.schedule, plan.tests)]
    found = tuple(each for each in decisions if each is not None)
    if len(found) < len(decisions):
        return None
    for each in found:
        if each.converged is False:
            raise UsageError(f"these limits allow no more than there is: {each.why}; give more")
    return found


def _note_limits(plan: Plan, document: dict[str, Any]) -> None:
    """Let the document hold the plan with its new limits, beside those that its sessions had."""
    before = {"sitting": len(document["sittings"]), "rule": document["plan"]["rule"]}
    earlier = document.setdefault("earlier_rules", [])
    if before["sitting"] not in [each["sitting"] for each in earlier]:
        earlier.append(before)
    asks_anew(document, to_document(plan), digest(plan))


def extend(
    directory: str | os.PathLike[str],
    tests: Sequence[Test],
    *,
    observe: Observer = silent,
    make_engine: EngineMaker | None = None,
) -> Outcome:
    """Give a complete experiment more tests, and run what they lack in a new session; the stop rule stays.

    Raises:
        EtudeError: as `run`; UsageError for a name that is taken.
    """
    path = Path(directory)
    with sole_writer(path):
        document = read_trusted_experiment(path)
        plan = plan_to_resume(document, str(path / "experiment.json"))
        plan = replace(plan, tests=(*plan.tests, *tests))
        asks_anew(document, to_document(plan), digest(plan))
        document["tests"] += _entries(tests, [entry["directory"] for entry in document["tests"]])
        with begun_directory(path, document) as there:
            return _run_session(plan, there, document, observe, make_engine)


def _new_document(
    plan: Plan, verb: str, command_line: Sequence[str], monitor: Monitoring | None
) -> dict[str, Any]:
    tests = _entries((*plan.tests, *loop.added_tests(plan)), ())
    own = {p.name: _own_metric(p) for test in plan.tests for p in test.metrics}
    return new_document(plan.name, verb, command_line, to_document(plan), digest(plan), tests, own, monitor)


def _entries(tests: Sequence[Test], taken: Sequence[str]) -> list[dict[str, Any]]:
    """What experiment.json says of tests, each with a directory of its own."""
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
    unit = unit_kept(pattern.unit).base
    return {"unit": unit, "kind": kind_of(unit)}


def _run_session(
    plan: Plan, path: Path, document: dict[str, Any], observe: Observer, make_engine: EngineMaker | None
) -> Outcome:
    check_plan(plan)
    decisions: list[Decision] = []

    def work(context: SessionContext) -> list[str]:
        bench = Bench(
            plan,
            context.writer,
            context.ledger,
            context.sitting,
            context.watch,
            context.engine,
            context.make_engine,
            observe,
            context.kernel,
            entries={test["name"]: test for test in context.document["tests"]},
        )
        if context.resumed:
            bench.tell("resumed", detail=context.resumed_with())
        decisions.extend(loop.run_groups(bench))
        record.forget(path)
        return [decision.why for decision in decisions]

    ledger = run_session(path, document, make_engine or engine_maker(), work)
    return Outcome(Results(path, read_experiment(path), ledger.measurements(), ()), tuple(decisions))
